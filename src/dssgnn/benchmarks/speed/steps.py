"""Training steps of the contenders on graphs of known shapes."""

import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from dssgnn.benchmarks.records import Record, device_name
from dssgnn.benchmarks.speed.contenders import (
    CONTENDERS,
    TRAIN_SHARE,
    Network,
    Problem,
    make_step,
    paper_loss,
)
from dssgnn.benchmarks.speed.measure import Say, alternate, attempt, captured, peak_memory, saved_bytes
from dssgnn.benchmarks.speed.shapes import SHAPES, Degrees
from dssgnn.graph import GraphOperator
from dssgnn.training import Part

__all__ = ["compare", "problem_of", "step_records"]


def problem_of(
    shape: str,
    degrees: Degrees,
    device: torch.device,
    chaos_order: int = 2,
    degree: int = 4,
    hidden: int = 64,
) -> Problem:
    """A random graph of a known shape, as a problem."""
    counts = SHAPES[shape]
    x, edge_index, y = (t.to(device) for t in counts.draw(degrees))
    operator = GraphOperator.from_edge_index(edge_index, counts.nodes)
    train = train_part(counts.nodes, torch.Generator().manual_seed(1), device)
    return Problem(x, operator, y, train, counts.classes, chaos_order, degree, hidden)


def train_part(nodes: int, generator: torch.Generator, device: torch.device) -> Part:
    """The training nodes, drawn at random."""
    order = torch.randperm(nodes, generator=generator, device=generator.device).to(device)
    mask = torch.zeros(nodes, dtype=torch.bool, device=device)
    mask[order[: int(TRAIN_SHARE * nodes)]] = True
    return Part.of(mask)


def step_records(
    shapes: Iterable[str],
    orders: Iterable[int],
    contenders: Iterable[str],
    degrees: Degrees,
    device: torch.device,
    repeats: int,
    say: Say,
) -> Iterator[list[Record]]:
    """Time a step of every contender; one list of records a shape and chaos order.

    PyG's networks have no chaos axis and run at ``P = 0`` alone.
    """
    for shape in shapes:
        problem = problem_of(shape, degrees, device)
        for order in orders:
            given = replace(problem, chaos_order=order)
            names = [name for name in contenders if CONTENDERS[name].chaotic or order == 0]
            setting = f"{shape}, P={order}, {degrees}"
            metrics = compare(given, names, repeats, lambda text, s=setting: say(f"{s}, {text}"))  # type: ignore[misc]
            config = {"part": "steps", "shape": shape, "degrees": degrees, "repeats": repeats}
            yield as_records(setting, metrics, config | given.config, device)


def as_records(
    setting: str, metrics: dict[str, dict[str, float]], config: dict[str, object], device: torch.device
) -> list[Record]:
    """One record a contender."""
    return [
        Record(
            benchmark="speed",
            setting=setting,
            method=CONTENDERS[name].method,
            variant=name,
            metrics=values,
            config=config,
            device=device_name(device),
            seed=0,
        )
        for name, values in metrics.items()
    ]


def compare(problem: Problem, names: Iterable[str], repeats: int, say: Say) -> dict[str, dict[str, float]]:
    """The metrics of every contender that runs.

    Those that compute the same thing are first checked to do so. Memory is measured with each contender alone on
    the device; then their steps are timed in turns, as they are and as CUDA graphs.
    """
    device = problem.device
    cuda = device.type == "cuda"
    metrics = _checked([name for name in names if cuda or not CONTENDERS[name].cuda_only], problem, say)
    for name in list(metrics):
        memory = attempt(name, partial(_memory, name, problem), say)
        if memory is None:
            del metrics[name]
        else:
            metrics[name] |= memory
    networks = {name: CONTENDERS[name].make(problem) for name in metrics}
    steps = {name: make_step(network, problem) for name, network in networks.items()}
    times = alternate(steps, device, repeats, say)
    metrics = {name: metrics[name] for name in times}
    for name, taken in times.items():
        metrics[name] |= {"step_ms": statistics.median(taken), "step_ms_best": min(taken)}
        if not CONTENDERS[name].exact and "ours" in times:  # both have made the same number of steps
            difference = _difference(*(_outcome(networks[n], problem)[1] for n in (name, "ours")))
            metrics[name]["trained_loss_difference"] = difference
    if cuda:
        replays: dict[str, Callable[[], object]] = {}
        for name in [name for name in metrics if CONTENDERS[name].capturable]:
            replay = attempt(f"{name} captured", partial(captured, steps[name]), say)
            if replay is not None:
                replays[name] = replay
        for name, taken in alternate(replays, device, repeats, say).items():
            metrics[name]["captured_ms"] = statistics.median(taken)
    for name, values in metrics.items():
        say(f"{name}: " + ", ".join(f"{key} {value:.4g}" for key, value in values.items()))
    return metrics


def _checked(names: Iterable[str], problem: Problem, say: Say) -> dict[str, dict[str, float]]:
    """Those of the contenders that may be compared; how far the loss is off where rounding is not all."""
    reference = attempt("reference", lambda: _outcome(CONTENDERS["ours"].make(problem), problem), say)

    def check(name: str) -> dict[str, float]:
        contender = CONTENDERS[name]
        if not contender.chaotic or reference is None:  # without ours there is nothing to be compared with
            return {}
        coefficients, loss = _outcome(contender.make(problem), problem)
        if not contender.exact:
            return {"loss_difference": _difference(loss, reference[1])}
        error = float((coefficients - reference[0]).norm() / reference[0].norm())
        if not error < 1e-4:
            raise RuntimeError(f"differs from ours by {error:.2g}, their times cannot be compared")
        return {}

    checks = {name: attempt(name, partial(check, name), say) for name in names}
    return {name: found for name, found in checks.items() if found is not None}


def _memory(name: str, problem: Problem) -> dict[str, float]:
    network = CONTENDERS[name].make(problem)
    step = make_step(network, problem)
    for _ in range(2):  # kernels are compiled and the optimiser's state is made
        step()
    memory = peak_memory(step, problem.device)
    return memory | {"saved_mib": saved_bytes(network.forward) / 2**20}


@torch.no_grad()
def _outcome(network: Network, problem: Problem) -> tuple[Tensor, float]:
    expansion = network.forward()
    return expansion.coefficients, float(paper_loss(expansion, problem))


def _difference(value: float, reference: float) -> float:
    return abs(value - reference) / abs(reference)
