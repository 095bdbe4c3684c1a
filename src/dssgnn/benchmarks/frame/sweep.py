"""A sweep over rows and splits that goes on where it was stopped."""

import json
import math
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from dssgnn.benchmarks.frame.rows import LISTS
from dssgnn.benchmarks.frame.setup import Setup
from dssgnn.benchmarks.records import Record, device_name, merge_records, read_records
from dssgnn.errors import InputError

__all__ = ["Benchmark", "SweepRow", "config_of", "missing_splits", "place_of", "sweep"]


class SweepRow(NamedTuple):
    """A system on a graph.

    Attributes:
        setting: the graph, or what is done to it.
        method: the system.
        variant: its configuration, in a word.
        make: its setup, made when it is its turn, as a search may have to choose it.
        group: rows of one group are run in one process, before those of none.
        splits: the only ones that it is of, if not of all.
    """

    setting: str
    method: str
    variant: str
    make: Callable[[], Setup]
    group: Hashable = None
    splits: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Benchmark:
    """What is measured of a row, and under which name it is kept.

    Attributes:
        name: of its records.
        measure: ``measure(setups, setting, splits, device)``, the metrics of every split for each of some setups that
            differ in their seeds alone.
        metrics: that a record must have; one that lacks any is measured again.
        told: the one that is said when a row is done.
    """

    name: str
    measure: Callable[[list[Setup], str, Sequence[int], torch.device], list[list[dict[str, float]]]]
    metrics: tuple[str, ...]
    told: str

    def __post_init__(self) -> None:
        if self.told not in self.metrics:
            raise InputError(f"told must be one of {', '.join(self.metrics)}, got {self.told!r}")


def sweep(
    benchmark: Benchmark,
    rows: Iterable[SweepRow],
    splits: Sequence[int],
    out: Path,
    device: torch.device,
    say: Callable[[str], None] = lambda text: None,
    seeds: int = 1,
) -> None:
    """Measure rows and add their records to ``out``, one row at a time.

    Splits that ``out`` holds already, of the same configuration, are not run again, so a sweep that was stopped goes on
    where it was. A row that does not fit the device is said, and the next one is run.

    ``seeds`` above 1 repeats every row with other weights and masks; the tables show means.
    """
    place = place_of(device)
    for setting, method, variant, make, _, only in rows:
        made, row = make(), (benchmark.name, setting, method, variant)
        asked = [split for split in splits if only is None or split in only]
        setups = [replace(made, seed=partial(_moved, made.seed, number)) for number in range(seeds)]
        pending: dict[tuple[int, ...], list[int]] = {}
        for number, setup in enumerate(setups):
            if missing := missing_splits(setup, row, asked, out, place, number, benchmark.metrics):
                pending.setdefault(tuple(missing), []).append(number)
        for missing_here, numbers in pending.items():
            start = time.perf_counter()
            try:
                measured = benchmark.measure([setups[i] for i in numbers], setting, missing_here, device)
            except torch.OutOfMemoryError as error:
                say(f"{setting} {method} {variant}: left out, {str(error).partition('.')[0]}")
                break
            seconds = (time.perf_counter() - start) / len(missing_here)  # of all seeds together
            for number, own in zip(numbers, measured, strict=True):
                again = f", seed {number}" if number else ""
                if lacking := {name for name in benchmark.metrics for metrics in own if name not in metrics}:
                    raise InputError(
                        f"{benchmark.name} measures no {', '.join(sorted(lacking))}, as its metrics say"
                    )
                if not all(math.isfinite(value) for metrics in own for value in metrics.values()):
                    say(f"{setting} {method} {variant}{again}: left out, a metric is not finite")
                    continue
                merge_records(
                    out,
                    [
                        Record(
                            *row,
                            metrics=metrics | {"seconds": seconds},
                            config=config_of(setups[number], split),
                            device=place,
                            split=split,
                            seed=number,
                            selected_on=f"validation {made.training.monitor}",
                        )
                        for split, metrics in zip(missing_here, own, strict=True)
                    ],
                )
                mean = sum(metrics[benchmark.told] for metrics in own) / len(own)
                say(
                    f"{setting} {method} {variant}{again}: {benchmark.told} {mean:.4f} over {len(own)} splits"
                )


def place_of(device: torch.device) -> str:
    """A device in words; a CPU's threads, which only the time depends on, do not make another of it."""
    return "cpu" if device.type == "cpu" else device_name(device)


def _moved(seed: Callable[[int, int], int], number: int, split: int, member: int) -> int:
    """The seeds of a repetition: apart from all that the first uses."""
    return seed(split, member) + 100_000 * number


def config_of(setup: Setup, split: int) -> dict[str, Any]:
    """What repeats a row on a split, as a results file gives it back."""
    training = asdict(setup.training)
    del training["seed"]
    config = {
        **setup.config,
        "operator": dict(setup.operator),
        "preparation": dict(setup.preparation),
        "training": training,
        "members": setup.members,
        "seeds": [setup.seed(split, member) for member in range(setup.members)],
    }
    plain: dict[str, Any] = json.loads(json.dumps(config))
    return plain


def missing_splits(
    setup: Setup,
    row: tuple[str, str, str, str],
    splits: Sequence[int],
    out: Path,
    place: str,
    seed: int = 0,
    metrics: Sequence[str] = (),
) -> list[int]:
    """The splits of a row (benchmark, setting, method, variant) that ``out`` does not hold in this configuration.

    Nor those whose records lack one of ``metrics``.
    """
    done = {record.key: record for record in read_records(out)} if out.exists() else {}

    def held(split: int) -> bool:
        record = done.get((*row, split, seed, place))
        if record is None or not record.metrics.keys() >= set(metrics):
            return False
        return {k: v for k, v in record.config.items() if k != LISTS} == config_of(setup, split)

    return [split for split in splits if not held(split)]
