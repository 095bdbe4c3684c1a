"""The norms at order 3 against the same network at order 0, split by split."""

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dssgnn.benchmarks.calibration.defaults import DATASETS
from dssgnn.benchmarks.calibration.norms import KINDS, Control, Kind, control_of, label_of
from dssgnn.benchmarks.frame.rows import by_row, config_without_seeds, same_but_for, spread
from dssgnn.benchmarks.markdown import ABSENT, markdown
from dssgnn.benchmarks.records import Record
from dssgnn.metrics import PairedComparison, compare_paired, holm

__all__ = ["TABLES", "compared"]

_COMPARED = (
    "chaos_order",
    "quadrature_size",
    "norm",
    "joint_dropout",
    "objective",
    "training",
    "logit_weight",
    "members",
    "hidden_channels",
)


_AGAINST: dict[Control, str] = {
    "plain": "P=0",
    "penalty": "P=0, penalty",
    "wide": "P=0, four times as wide",
    "ensemble": "P=0, ensemble of four",
}


class _Pairs(NamedTuple):
    dataset: str
    seeds: int
    ours: dict[str, list[float]]  # every metric by split, a mean over the seeds
    theirs: dict[str, list[float]]
    result: PairedComparison
    p_value: float  # Holm's, over the datasets


def compared(records: list[Record], kind: Kind, control: Control) -> list[_Pairs]:
    """Order 3 against its control on every dataset, split by split, means of the seeds that both have.

    The two of a seed ran on one device; seeds need not have.
    """
    found = [by_row(records, "calibration-ablation", seed) for seed in sorted({r.seed or 0 for r in records})]
    labels = label_of(*kind), control_of(kind[0], control)
    lines = []
    for dataset in sorted({dataset for rows in found for dataset, _, _ in rows}):
        pairs = [
            (ours, theirs)
            for rows in found
            if (ours := rows.get((dataset, "dss-gnn", labels[0])))
            and (theirs := rows.get((dataset, "dss-gnn", labels[1])))
            and ours.keys() == theirs.keys()
            and len(ours) > 1
            and same_but_for(ours, theirs, _COMPARED)
        ]
        pairs = [pair for pair in pairs if _repeats(pair, pairs[0])]
        if pairs:
            sides = _means([ours for ours, _ in pairs]), _means([theirs for _, theirs in pairs])
            lines.append((dataset, len(pairs), *sides, compare_paired(*(side["brier"] for side in sides))))
    corrected = holm([line[-1].p_value for line in lines])
    return [_Pairs(*line, p) for line, p in zip(lines, corrected, strict=True)]


def _repeats(pair: Sequence[dict[int, Record]], first: Sequence[dict[int, Record]]) -> bool:
    """Whether a pair is the first one again, of the same splits, under another seed."""
    return all(
        one.keys() == other.keys()
        and config_without_seeds(next(iter(one.values()))) == config_without_seeds(next(iter(other.values())))
        for one, other in zip(pair, first, strict=True)
    )


def _means(runs: list[dict[int, Record]]) -> dict[str, list[float]]:
    return {
        name: [statistics.fmean(run[split].metrics[name] for run in runs) for split in sorted(runs[0])]
        for name in ("brier", "chaos_energy")
    }


def _table(records: list[Record]) -> str:
    """Every kind against its controls; p-values are Holm's over the datasets of one of them."""
    lines = []
    for kind in KINDS:
        for control, against in _AGAINST.items():
            for dataset, seeds, ours, theirs, c, p in compared(records, kind, control):
                texts = [spread(theirs["brier"]), spread(ours["brier"]), f"{c.difference:+.4f}"]
                test = [f"{c.low:+.4f} to {c.high:+.4f}", f"{p:.3f}", f"{c.wins}/{c.count}", str(seeds)]
                energy = spread(ours["chaos_energy"], digits=2)
                lines.append([_name(kind), kind[2], against, dataset, *texts, *test, energy])
    header = [
        "norm", "objective", "against", "dataset", "control", "P=3", "difference", "95 % interval", "p (Holm)",
        "splits won", "runs a split", "chaos energy",
    ]  # fmt: skip
    return markdown(header, lines) if lines else ABSENT


def _glance(records: list[Record]) -> str:
    """The differences alone, with the runs a split; a star where the corrected p-value is below 0.05."""
    lines, datasets = [], [d for d in DATASETS if any(r.setting == d for r in records)]
    for kind in KINDS:
        for control, against in _AGAINST.items():
            cells = {
                pairs.dataset: f"{pairs.result.difference:+.3f}{'*' if pairs.p_value < 0.05 else ''}"
                for pairs in compared(records, kind, control)
            }
            if cells:
                lines.append([_name(kind), kind[2], against, *(cells.get(d, "–") for d in datasets)])
    shown = [i for i in range(3 + len(datasets)) if i < 3 or any(line[i] != "–" for line in lines)]
    header = ["norm", "objective", "P=3 less", *datasets]
    rows = [[line[i] for i in shown] for line in lines]
    return markdown([header[i] for i in shown], rows) if lines else ABSENT


def _name(kind: Kind) -> str:
    norm, joint, _ = kind
    return (norm or "none") + ("" if joint else ", dropout by order")


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "chaos-norms": ("calibration.json", _table),
    "chaos-norms-glance": ("calibration.json", _glance),
}
