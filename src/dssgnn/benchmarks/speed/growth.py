"""How a step's time and memory grow with the nodes, the chaos order and the filters' degree."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch

from dssgnn.benchmarks.records import Record
from dssgnn.benchmarks.speed.contenders import CONTENDERS, Problem
from dssgnn.benchmarks.speed.measure import Say, attempt
from dssgnn.benchmarks.speed.shapes import SHAPES, Degrees, draw_operator, draw_pairs
from dssgnn.benchmarks.speed.steps import as_records, compare, problem_of, train_part

__all__ = ["AXES", "growing_problem", "growth_records"]

AXES = ("nodes", "P", "K")

_NODES = (10**4, 10**5, 10**6, 10**7)
_ENTRIES_A_NODE, _FEATURES, _CLASSES = 10, 32, 8
_ORDERS = tuple(range(9))
_DEGREES = (1, 2, 4, 8, 16)


def growing_problem(nodes: int, degrees: Degrees, device: torch.device, seed: int = 0) -> Problem:
    """A graph of ``10 N`` entries drawn on the device; hidden 32, ``P = 1``, ``K = 4``."""
    generator = torch.Generator(device).manual_seed(seed)
    largest = SHAPES["ogbn-arxiv"].largest_degree
    pairs = draw_pairs(nodes, nodes * _ENTRIES_A_NODE // 2, generator, degrees, largest)
    x = torch.randn(nodes, _FEATURES, generator=generator, device=device)
    y = torch.randint(_CLASSES, (nodes,), generator=generator, device=device)
    operator = draw_operator(pairs, nodes)
    return Problem(x, operator, y, train_part(nodes, generator, device), _CLASSES, chaos_order=1, hidden=32)


def growth_records(
    shape: str,
    contenders: Iterable[str],
    degrees: Degrees,
    device: torch.device,
    repeats: int,
    largest: int,
    say: Say,
    axes: Sequence[str] = AXES,
) -> Iterator[list[Record]]:
    """Grow the nodes up to ``largest``; then ``P`` from 0 to 8 and ``K`` from 1 to 16 on a known shape."""
    names = [name for name in contenders if CONTENDERS[name].chaotic]

    def records(axis: str, value: int, problem: Problem) -> list[Record]:
        setting = f"growth, {axis}={value}, {degrees}" + ("" if axis == "nodes" else f", {shape}")
        metrics = compare(problem, names, repeats, lambda text: say(f"{setting}, {text}"))
        config = {"part": "growth", "axis": axis, "value": value, "degrees": degrees, "repeats": repeats}
        return as_records(setting, metrics, config | problem.config, device)

    def grown(nodes: int) -> list[Record]:
        return records("nodes", nodes, growing_problem(nodes, degrees, device))

    for nodes in [n for n in _NODES if n <= largest and "nodes" in axes]:
        yield attempt(f"{nodes} nodes", partial(grown, nodes), say) or []
    known = problem_of(shape, degrees, device)
    for order in _ORDERS if "P" in axes else ():
        yield records("P", order, replace(known, chaos_order=order))
    for degree in _DEGREES if "K" in axes else ():
        yield records("K", degree, replace(known, degree=degree))
