"""Ours against every other system, split by split."""

import statistics
from collections.abc import Callable
from typing import NamedTuple

from dssgnn.benchmarks.calibration.defaults import DATASETS
from dssgnn.benchmarks.frame.rows import by_row, same_but_for
from dssgnn.benchmarks.markdown import ABSENT, markdown
from dssgnn.benchmarks.records import Record
from dssgnn.metrics import PairedComparison, compare_paired, holm

__all__ = ["TABLES", "Comparison", "comparisons"]

_OURS = ("dss-gnn", "best")
_TWIN = (
    "chaos_order",
    "quadrature_size",
    "logit_weight",
    "arm",
    "training",
)  # what a twin of it has of its own


class Comparison(NamedTuple):
    """Ours less another system on a dataset: of how many runs a split, and the p-value after correction."""

    dataset: str
    runs: int
    result: PairedComparison
    p_value: float


def comparisons(records: list[Record]) -> dict[tuple[str, str], list[Comparison]]:
    """Ours against every other row, split by split; the p-values of a row are corrected over the datasets."""
    seeds = sorted({record.seed for record in records if record.seed is not None})
    rows = {seed: by_row(records, seed=seed) for seed in seeds}
    known = rows.get(0, {})
    compared = {}
    for method, variant in sorted({(m, v) for _, m, v in known if (m, v) != _OURS}):
        found = []
        for dataset in sorted({d for d, _, _ in known}):
            # Repetitions that both have, so that each split is a mean of as many runs on either side.
            sides = [
                [rows[seed].get((dataset, *system), {}) for seed in seeds]
                for system in (_OURS, (method, variant))
            ]
            numbered = {
                seed: pair
                for seed, pair in zip(seeds, zip(*sides, strict=True), strict=True)
                if pair[0] and pair[0].keys() == pair[1].keys()
            }
            if numbered:
                one = next(iter(numbered.values()))
                numbered = {
                    seed: (ours, theirs)
                    for seed, (ours, theirs) in numbered.items()
                    if same_but_for(ours, one[0]) and same_but_for(theirs, one[1])
                }
            # Of a searched row the first run of a split was looked at when it was chosen; the repetitions were not.
            runs = [pair for seed, pair in numbered.items() if seed] or list(numbered.values())
            if not runs or (
                variant.startswith("twin")
                and not all(same_but_for(ours, theirs, _TWIN) for ours, theirs in runs)
            ):
                continue
            splits = sorted(set.intersection(*(set(ours) for ours, _ in runs)))
            if len(splits) > 1:
                means = [
                    [statistics.fmean(run[side][s].metrics["brier"] for run in runs) for s in splits]
                    for side in (0, 1)
                ]
                found.append((dataset, len(runs), compare_paired(*means)))
        corrected = holm([c.p_value for _, _, c in found])
        compared[method, variant] = [Comparison(*each, p) for each, p in zip(found, corrected, strict=True)]
    return compared


def _paired(records: list[Record]) -> str:
    lines = []
    for (method, variant), found in comparisons(records).items():
        for dataset, runs, c, p in found:
            interval = f"{c.low:+.4f} to {c.high:+.4f}"
            cells = [f"{c.difference:+.4f}", interval, f"{p:.3f}", f"{c.wins}/{c.count}", str(runs)]
            lines.append([method, variant, dataset, *cells])
    header = [
        "against", "variant", "dataset", "Brier difference", "95 % interval", "p (Holm)", "splits won", "runs a split",
    ]  # fmt: skip
    return markdown(header, lines) if lines else ABSENT


def _matrix(records: list[Record]) -> str:
    """The differences at a glance; a star where the corrected p-value is below 0.05."""
    found = comparisons(records)
    datasets = [d for d in DATASETS if any(c.dataset == d for own in found.values() for c in own)]
    lines = []
    for (method, variant), own in found.items():
        if own:
            cells = {c.dataset: f"{c.result.difference:+.3f}{'*' if c.p_value < 0.05 else ''}" for c in own}
            lines.append([f"{method} {variant}", *(cells.get(d, "–") for d in datasets)])
    return markdown(["`best` less", *datasets], lines) if lines else ABSENT


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "calibration-pairs": ("calibration.json", _matrix),
    "calibration-paired": ("calibration.json", _paired),
}
