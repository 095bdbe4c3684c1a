"""A population on a CPU: every core trains members of its own."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn

from dssgnn.nn.dropout import drawing_alone
from dssgnn.training.config import TrainingConfig
from dssgnn.training.epoch import Epoch
from dssgnn.training.members import Single
from dssgnn.training.state import RunState
from dssgnn.training.task import NodeTask

__all__ = ["Crew"]


class Crew:
    """Like `Epoch`, for members that are trained each by itself, as many at a time as torch has threads.

    A member draws from a generator of its own. Random operations that know only torch's default generator would
    draw from it in whatever order the threads come; in a phase (``warming_up``) in which a model has such, it is
    trained member after member, each with the default generator as it left it.
    """

    generators: Sequence[torch.Generator] = ()

    def __init__(
        self,
        models: Sequence[nn.Module],
        tasks: Sequence[NodeTask],
        configs: Sequence[TrainingConfig],
        node_scores: bool = False,
    ) -> None:
        self.models, self.config, self.device = list(models), configs[0], tasks[0].x.device
        self._epochs = [
            Epoch(Single(model, config), [task], [config], node_scores=node_scores)
            for model, task, config in zip(models, tasks, configs, strict=True)
        ]
        self._active = [True] * len(self._epochs)
        self._own = [torch.Generator().manual_seed(config.seed) for config in configs]
        self._threads = torch.get_num_threads()
        self._pool: ThreadPoolExecutor | None = None
        self._phase: object = self  # none yet

    def __call__(self) -> Tensor:
        """One epoch of every member that is active; the rows of others are not numbers."""
        phase = getattr(self.models[0], "warming_up", None)
        if phase != self._phase:
            self._close()
            if not _draws_by_default(self.models[0], self._epochs[0].task):
                self._pool = ThreadPoolExecutor(
                    self._threads, initializer=torch.set_num_threads, initargs=(1,)
                )
            self._phase = phase
        columns = max(epoch.columns for epoch in self._epochs)
        rows = torch.full((len(self._epochs), columns), torch.nan, dtype=torch.float64)
        chosen = [i for i, active in enumerate(self._active) if active]
        results = (
            map(self._in_turn, chosen) if self._pool is None else self._pool.map(self._in_thread, chosen)
        )
        for i, row in zip(chosen, results, strict=True):
            rows[i, : len(row)] = row
        return rows

    def _in_turn(self, member: int) -> Tensor:
        torch.set_rng_state(self._own[member].get_state())
        try:
            return self._epochs[member]()[0]
        finally:
            self._own[member].set_state(torch.get_rng_state())

    def _in_thread(self, member: int) -> Tensor:
        with drawing_alone(self._own[member]):
            return self._epochs[member]()[0]

    def follow(self, states: Sequence[RunState]) -> None:
        """See `Epoch.follow`."""
        for epoch, state in zip(self._epochs, states, strict=True):
            epoch.follow([state])

    def stop(self, member: int) -> None:
        """Train a member no more."""
        self._active[member] = False

    def release(self) -> None:
        """See `Epoch.release`."""
        self._close()
        for epoch in self._epochs:
            epoch.release()

    def _close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
            torch.set_num_threads(self._threads)  # what a thread sets, the whole process has


@torch.no_grad()
def _draws_by_default(model: nn.Module, task: NodeTask) -> bool:
    """Whether a training step draws from torch's default generator, found out by making one forward pass."""
    kept = [(buffer, buffer.clone()) for buffer in model.buffers()]
    modes = [(module, module.training) for module in model.modules()]
    before = torch.get_rng_state()
    try:
        with drawing_alone(torch.Generator()):
            model.train()(task.x, task.graph)
        return not torch.equal(before, torch.get_rng_state())
    finally:
        torch.set_rng_state(before)
        for buffer, value in kept:
            buffer.copy_(value)
        for module, training in modes:
            module.training = training
