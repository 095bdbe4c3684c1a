"""Ours against every other system, split by split."""

from collections.abc import Callable
from typing import NamedTuple

from dssgnn.benchmarks.calibration.defaults import DATASETS
from dssgnn.benchmarks.calibration.search import ARMS, OURS, TWINS
from dssgnn.benchmarks.frame import (
    Key,
    Runs,
    config_of_row,
    mean_run,
    runs_by_row,
    seeds_of,
)
from dssgnn.benchmarks.markdown import ABSENT, markdown, starred, tested
from dssgnn.benchmarks.records import Record
from dssgnn.metrics import PairedComparison, compare_paired, holm

__all__ = ["TABLES", "Comparison", "comparisons", "fresh_runs"]

_TWIN = (
    "chaos_order",
    "quadrature_size",
    "logit_weight",
    "arm",
    "training.chaos_weight",
    "training.logit_weight",
)  # what a twin of it has of its own


class Comparison(NamedTuple):
    """Ours less another system on a dataset: how many runs a split of either, and the p-value after correction."""

    dataset: str
    runs: tuple[int, int]
    result: PairedComparison
    p_value: float


def comparisons(records: list[Record]) -> dict[tuple[str, str], list[Comparison]]:
    """Ours against every other row, split by split; the p-values of a row are corrected over the datasets.

    A split's score is a mean over the runs of `fresh_runs`.
    """
    rows = runs_by_row(records, "calibration")
    compared = {}
    for system in sorted({key[1:] for key in rows} - {OURS}):
        found = []
        for dataset in sorted({d for d, _, _ in rows}):
            ours, theirs = rows.get((dataset, *OURS), {}), rows.get((dataset, *system), {})
            if system in TWINS:
                if not _twins(ours, theirs):
                    continue
                ours, theirs = (
                    {run: side[run] for run in ours.keys() & theirs.keys()} for side in (ours, theirs)
                )
            sides = [fresh_runs((dataset, *OURS), ours), fresh_runs((dataset, *system), theirs)]
            if not all(sides) or sides[0][0].keys() != sides[1][0].keys() or len(sides[0][0]) < 2:
                continue
            means = [
                [record.metrics["brier"] for _, record in sorted(mean_run(side).items())] for side in sides
            ]
            runs = (len(seeds_of(sides[0])), len(seeds_of(sides[1])))
            found.append((dataset, runs, compare_paired(*means)))
        corrected = holm([c.p_value for _, _, c in found])
        compared[system] = [Comparison(*each, p) for each, p in zip(found, corrected, strict=True)]
    return compared


def fresh_runs(key: Key, runs: Runs) -> list[dict[int, Record]]:
    """The runs of a row that comparisons are of.

    Of a searched row the first was looked at, on its validation part, when it was chosen, so that its repetitions stand
    for it where there are any.
    """
    again = [own for (_, seed), own in runs.items() if seed]
    searched = key[1:] in ARMS or key[1:] in TWINS
    return again if searched and again else list(runs.values())


def _twins(ours: Runs, theirs: Runs) -> bool:
    """Whether two rows differ in nothing but what a twin has of its own."""
    configs = [
        [config_of_row(next(iter(own.values())), but=_TWIN) for own in side.values()]
        for side in (ours, theirs)
    ]
    return bool(ours) and bool(theirs) and configs[0][0] == configs[1][0]


def _paired(records: list[Record]) -> str:
    lines = []
    for (method, variant), found in comparisons(records).items():
        for dataset, runs, c, p in found:
            lines.append([method, variant, dataset, *tested(c, p), f"{runs[0]}, {runs[1]}"])
    header = [
        "against", "variant", "dataset", "Brier difference", "95 % interval", "p (Holm)", "splits won",
        "runs a split, ours and theirs",
    ]  # fmt: skip
    return markdown(header, lines) if lines else ABSENT


def _matrix(records: list[Record]) -> str:
    """The differences at a glance; a star where the corrected p-value is below 0.05."""
    found = comparisons(records)
    datasets = [d for d in DATASETS if any(c.dataset == d for own in found.values() for c in own)]
    lines = []
    for (method, variant), own in found.items():
        if own:
            cells = {c.dataset: starred(c.result, c.p_value) for c in own}
            lines.append([f"{method} {variant}", *(cells.get(d, "–") for d in datasets)])
    return markdown(["`best` less", *datasets], lines) if lines else ABSENT


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "calibration-pairs": ("calibration.json", _matrix),
    "calibration-paired": ("calibration.json", _paired),
}
