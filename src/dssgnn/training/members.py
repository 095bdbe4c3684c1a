"""What an epoch is computed for: one model by a plain call, or a population as one block."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from dssgnn.nn.dropout import drawing_from
from dssgnn.training.config import TrainingConfig
from dssgnn.training.optimizer import make_optimizer, make_population_optimizer

__all__ = ["Block", "Single"]


class Single:
    """One model, whatever it is made of."""

    generators: Sequence[torch.Generator] = ()

    def __init__(self, model: nn.Module, config: TrainingConfig) -> None:
        self.models = [model]
        self.optimizer = make_optimizer(model, config)

    def bind(self) -> None:
        """Begin: from here until `release` the models are the run's. Nothing to do for one."""

    def each(self, function: Callable[..., Tensor], *arguments: Any) -> Tensor:
        """``function(model, ...)`` of every member with its entry of the arguments, ``[B, ...]``."""
        return function(self.models[0], *tree_map(lambda t: t[0], arguments))[None]

    def state(self) -> dict[str, Tensor]:
        """What a member's ``state_dict`` holds, ``[B, ...]``."""
        return {name: value.detach()[None] for name, value in self.models[0].state_dict().items()}

    def backward(self, losses: Tensor) -> None:
        """Gradients of every member's own loss."""
        self.optimizer.zero_grad(set_to_none=True)
        losses.sum().backward()  # type: ignore[no-untyped-call]

    def clip(self, largest: float) -> None:
        """Bound the norm of every member's gradient."""
        nn.utils.clip_grad_norm_(self.models[0].parameters(), largest)

    def release(self, best: dict[str, Tensor]) -> None:
        """Leave every model in eval mode with the weights ``best``, ``[B, ...]``."""
        self.models[0].load_state_dict({name: value[0] for name, value in best.items()})
        self.models[0].eval()


class Block:
    """Models of one structure, their parameters and buffers stacked.

    The stacked tensors are what is computed with and learned; a member's own parameters and buffers are views
    of its slice from `bind` to `release`. The first model lends its code.
    """

    def __init__(self, models: Sequence[nn.Module], configs: Sequence[TrainingConfig]) -> None:
        self.models = list(models)
        first = models[0]
        self.parameters = {
            name: nn.Parameter(
                torch.stack([model.get_parameter(name).detach() for model in models]), own.requires_grad
            )
            for name, own in first.named_parameters()
        }
        self.buffers = {
            name: torch.stack([model.get_buffer(name) for model in models])
            for name, _ in first.named_buffers()
        }
        # A tensor that has several names is stacked, and learned, once. Two names can be one place: a module's that
        # is registered twice.
        tensors = (*first.named_parameters(), *first.named_buffers())
        one = {id(value): name for name, value in tensors}
        self._places = {
            f"{path}.{name}".removeprefix("."): one[id(value)]
            for path, module in first.named_modules()
            for name, value in (*module._parameters.items(), *module._buffers.items())
            if value is not None
        }
        state = first.state_dict(keep_vars=True)
        self._names = {name: one[id(value)] for name, value in state.items()}
        self.optimizer = make_population_optimizer(self.parameters, models, configs)
        device = next(iter(self.parameters.values())).device
        self.numbers = torch.arange(len(models), device=device)
        self.generators = [torch.Generator(device).manual_seed(config.seed) for config in configs]
        learned = self.optimizer.param_groups[0]["params"][0]
        self._apart = all(learned is not stacked for stacked in self.parameters.values())

    def bind(self) -> None:
        """See `Single.bind`; a member's tensors are views of its slice from now on."""
        for i, model in enumerate(self.models):
            for name, stacked in self.parameters.items():
                parameter = model.get_parameter(name)
                parameter.data, parameter.grad = stacked.detach()[i], None
            self._set_buffers(model, {name: stacked[i] for name, stacked in self.buffers.items()})

    def each(self, function: Callable[..., Tensor], *arguments: Any) -> Tensor:
        """See `Single.each`; the model is given as a function of its inputs."""

        def member(tensors: Any, number: Tensor, *own: Any) -> Tensor:
            placed = {place: tensors[name] for place, name in self._places.items()}

            def call(*inputs: Any) -> Any:
                # Torch's own search for ties puts back the wrong tensors where a module has two names.
                return torch.func.functional_call(self.models[0], placed, inputs, tie_weights=False)

            with drawing_from(self.generators, number):
                return function(call, *own)

        batched = torch.func.vmap(member, randomness="different")
        return batched({**self.parameters, **self.buffers}, self.numbers, *arguments)

    def state(self) -> dict[str, Tensor]:
        """See `Single.state`."""
        everything = {**self.parameters, **self.buffers}
        return {name: everything[one].detach() for name, one in self._names.items()}

    def backward(self, losses: Tensor) -> None:
        """See `Single.backward`; no member's loss reads another's parameters, so one pass serves all."""
        for stacked in self.parameters.values():
            stacked.grad = None
        losses.sum().backward()  # type: ignore[no-untyped-call]
        if self._apart:
            for name, stacked in self.parameters.items():
                for i, model in enumerate(self.models):
                    model.get_parameter(name).grad = None if stacked.grad is None else stacked.grad[i]

    def clip(self, largest: float) -> None:
        """See `Single.clip`; the same formula as torch's."""
        gradients = [p.grad for p in self.parameters.values() if p.grad is not None]
        norms = torch.stack([torch.linalg.vector_norm(g.flatten(1), dim=1) for g in gradients])  # [P, B]
        factor = (largest / (torch.linalg.vector_norm(norms, dim=0) + 1e-6)).clamp_max(1)
        for gradient in gradients:
            gradient.mul_(_align(factor, gradient))

    def release(self, best: dict[str, Tensor]) -> None:
        """See `Single.release`; every model owns its tensors again."""
        for i, model in enumerate(self.models):
            for parameter in model.parameters():
                parameter.data, parameter.grad = parameter.detach().clone(), None
            self._set_buffers(model, {name: model.get_buffer(name).clone() for name in self.buffers})
            model.load_state_dict({name: value[i] for name, value in best.items()})
            model.eval()

    def _set_buffers(self, model: nn.Module, values: dict[str, Tensor]) -> None:
        for place, name in self._places.items():
            if name in values:
                path, _, last = place.rpartition(".")
                model.get_submodule(path)._buffers[last] = values[name]


def _align(member: Tensor, value: Tensor) -> Tensor:
    """``[B]`` as ``[B, 1, ...]``, to go with ``value [B, ...]``."""
    return member.view(-1, *[1] * (value.dim() - 1))
