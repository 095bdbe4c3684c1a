"""What whole rows took, and what they scored when they were run once more."""

from collections.abc import Callable
from typing import Any

from dssgnn.benchmarks.calibration.timing import REPEATED, TIMING
from dssgnn.benchmarks.frame import config_of_row, mean_of, runs_by_row
from dssgnn.benchmarks.markdown import ABSENT, markdown
from dssgnn.benchmarks.records import Record

__all__ = ["TABLES"]


def _table(records: list[Record]) -> str:
    """One line a system that was timed."""
    lines = [
        [
            r.method, r.variant, f"{r.metrics['graphs']:.0f}", str(len(r.config["splits"])), str(r.config["workers"]),
            r.device, f"{r.metrics['seconds']:.0f}",
        ]
        for r in records
        if r.benchmark == TIMING
    ]  # fmt: skip
    header = ["system", "variant", "graphs", "splits", "processes", "device", "seconds"]
    return markdown(header, sorted(lines)) if lines else ABSENT


def _repeated(records: list[Record]) -> str:
    """Rows beside what they scored when they were run once more, with the same seeds on the same device."""
    again, lines = runs_by_row(records, REPEATED), []
    for key, runs in runs_by_row(records, "calibration").items():
        for run, own in again.get(key, {}).items():
            sides = [runs.get(run, {}), own]
            if sides[0].keys() == sides[1].keys() and _config(sides[0]) == _config(sides[1]):
                scores = [mean_of(splits, "brier") for splits in sides]
                lines.append([*key, *(f"{score:.4f}" for score in scores), f"{scores[1] - scores[0]:+.4f}"])
    header = ["dataset", "system", "variant", "Brier", "once more", "difference"]
    return markdown(header, lines) if lines else ABSENT


def _config(splits: dict[int, Record]) -> dict[str, Any]:
    return config_of_row(next(iter(splits.values())))


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "calibration-repeated": ("calibration.json", _repeated),
    "calibration-time": ("calibration.json", _table),
}
