"""One polynomial filter alone, against the bytes it must gather."""

import statistics
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import torch
from torch import Tensor

from dssgnn.benchmarks.records import Record, device_name
from dssgnn.benchmarks.speed.measure import Say, alternate, attempt, captured, copy_bandwidth
from dssgnn.benchmarks.speed.shapes import SHAPES, Degrees
from dssgnn.graph import GraphOperator

__all__ = ["filter_records"]

_ORDERS, _WIDTH, _DEGREE = 3, 64, 4  # three orders of 64 channels: the state of P = 2, 192 wide
_STATES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def filter_records(
    shapes: Iterable[str], degrees: Degrees, device: torch.device, repeats: int, say: Say
) -> Iterator[list[Record]]:
    """Time a filter of width 192 and ``K = 4``, forward and with its backward pass, in fp32 and bf16.

    The bound: each of the ``K`` products gathers one row of the state an entry, whatever else it does; so many
    bytes, over the bandwidth of a copy measured in the same run.
    """
    # Many calls between two looks at the clock: the GPU must not wait for Python.
    calls = 10 if device.type == "cuda" else 1
    for shape in shapes:
        _, edge_index, _ = SHAPES[shape].draw(degrees)
        operator = GraphOperator.from_edge_index(edge_index, SHAPES[shape].nodes).to(device)
        entries = operator.matrix.values().numel()
        bandwidth = copy_bandwidth(device)
        functions = _functions(operator, say)
        if device.type == "cuda":
            functions = {name: captured(function) for name, function in functions.items()}
        times = alternate(functions, device, repeats, say, calls)
        records = []
        for state, dtype in _STATES.items():
            if state not in times or f"{state} backward" not in times:
                continue
            gathered = entries * _ORDERS * _WIDTH * dtype.itemsize * _DEGREE
            metrics = {
                "forward_ms": statistics.median(times[state]),
                "both_ms": statistics.median(times[f"{state} backward"]),
                "gathered_gb": gathered / 1e9,
                "copy_gbs": bandwidth,
                "bound_ms": gathered / (bandwidth * 1e6),
            }
            metrics["share_of_bound"] = metrics["bound_ms"] / metrics["forward_ms"]
            config = {"part": "filter", "shape": shape, "degrees": degrees, "width": _ORDERS * _WIDTH}
            records.append(
                Record(
                    benchmark="speed",
                    setting=f"filter, {shape}, {degrees}",
                    method="dss-gnn",
                    variant=f"filter-{state}",
                    metrics=metrics,
                    config=config | {"degree": _DEGREE, "entries": entries, "repeats": repeats},
                    device=device_name(device),
                    seed=0,
                )
            )
            say(f"filter {state}: " + ", ".join(f"{key} {value:.4g}" for key, value in metrics.items()))
        yield records


def _functions(operator: GraphOperator, say: Say) -> dict[str, Callable[[], object]]:
    """The filter on both kinds of state: ``fp32``, ``fp32 backward`` (with the forward pass), and bf16."""
    generator = torch.Generator().manual_seed(0)
    full = torch.randn(operator.num_nodes, _ORDERS, _WIDTH, generator=generator)
    theta = torch.randn(1, _ORDERS, _DEGREE + 1, generator=generator).to(operator.device).requires_grad_()

    def pair(h: Tensor) -> tuple[Callable[[], object], Callable[[], object]]:
        gradient = torch.ones_like(operator.filter(h, theta))

        def forward() -> None:
            with torch.no_grad():
                operator.filter(h, theta)

        def backward() -> None:
            torch.autograd.grad(operator.filter(h, theta), (h, theta), gradient)

        return forward, backward

    functions: dict[str, Callable[[], object]] = {}
    for state, dtype in _STATES.items():
        h = full.to(operator.device, dtype).requires_grad_()
        made = attempt(f"filter {state}", partial(pair, h), say)
        if made is not None:
            functions[state], functions[f"{state} backward"] = made
    return functions
