"""The parts of the benchmark, one after another."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from dssgnn.benchmarks.records import Record
from dssgnn.benchmarks.speed.contenders import CONTENDERS
from dssgnn.benchmarks.speed.filters import filter_records
from dssgnn.benchmarks.speed.growth import AXES, growth_records
from dssgnn.benchmarks.speed.measure import Say
from dssgnn.benchmarks.speed.population import population_records
from dssgnn.benchmarks.speed.shapes import SHAPES, Degrees
from dssgnn.benchmarks.speed.steps import step_records

__all__ = ["PARTS", "Plan", "run"]

PARTS = ("steps", "filter", "growth", "population")


@dataclass(frozen=True)
class Plan:
    """What to measure; what is left ``None`` is what the device can do in minutes.

    Attributes:
        device: where.
        parts: of `PARTS`.
        shapes: of `SHAPES`; all on a GPU. The filter runs on each, growth in P and K on the last.
        orders: chaos orders of the steps.
        contenders: of `CONTENDERS`; growth leaves out those without a chaos axis.
        repeats: timed calls, of which the median counts.
        degrees: of the random graphs.
        axes: of growth.
        largest: nodes at which growth stops.
        epochs: of the populations.
    """

    device: torch.device
    parts: tuple[str, ...] = ("steps",)
    shapes: tuple[str, ...] | None = None
    orders: tuple[int, ...] = (0, 1, 2, 3)
    contenders: tuple[str, ...] | None = None
    repeats: int | None = None
    degrees: Degrees = "power"
    axes: tuple[str, ...] = AXES
    largest: int | None = None
    epochs: int | None = None


def run(plan: Plan, say: Say = lambda text: None) -> Iterator[list[Record]]:
    """Measure, and yield the records of each setting as soon as they are there."""
    device, cuda = plan.device, plan.device.type == "cuda"
    shapes = plan.shapes or (tuple(SHAPES) if cuda else ("amazon-ratings",))
    largest_shape = plan.shapes or (("ogbn-arxiv",) if cuda else ("amazon-ratings",))
    repeats = plan.repeats or (21 if cuda else 7)
    # On a CPU published-csr and published say the same, and take their time.
    contenders = plan.contenders or tuple(
        name for name, c in CONTENDERS.items() if cuda or not (c.cuda_only or name == "published-csr")
    )
    growing = plan.contenders or ("published", "ours")
    for part in plan.parts:
        say(f"{part} on {device}")
        if part == "steps":
            yield from step_records(shapes, plan.orders, contenders, plan.degrees, device, repeats, say)
        elif part == "filter":
            yield from filter_records(largest_shape, plan.degrees, device, repeats, say)
        elif part == "growth":
            largest = plan.largest or (10**7 if cuda else 10**5)
            few = min(repeats, 5)  # the largest steps take seconds
            shape = largest_shape[-1]
            yield from growth_records(shape, growing, plan.degrees, device, few, largest, say, plan.axes)
        else:
            yield from population_records(
                ("cora", "chameleon"), device, plan.epochs or (200 if cuda else 15), say
            )
