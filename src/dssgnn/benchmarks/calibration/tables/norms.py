"""The norms at order 3 against the same network at order 0, split by split."""

from collections.abc import Callable
from typing import NamedTuple

from dssgnn.benchmarks.calibration.defaults import DATASETS
from dssgnn.benchmarks.calibration.norms import JOINT, KINDS, Control, Kind, control_of, label_of
from dssgnn.benchmarks.frame import config_of_row, mean_run, runs_by_row, seeds_of, shared_seeds, spread
from dssgnn.benchmarks.markdown import ABSENT, markdown, starred, tested
from dssgnn.benchmarks.records import Record
from dssgnn.metrics import PairedComparison, compare_paired, holm

__all__ = ["TABLES", "Pairs", "compared"]

# What a kind may differ in from its control, and what a control has of its own.
_ORDER = ("chaos_order", "quadrature_size", "norm", "joint_dropout", "objective", "training.objective")
_OWN: dict[Control, tuple[str, ...]] = {
    "plain": (),
    "penalty": ("logit_weight", "training.logit_weight"),
    "wide": ("hidden_channels",),
    "ensemble": ("members",),
}
_AGAINST: dict[Control, str] = {
    "plain": "P=0",
    "penalty": "P=0, penalty",
    "wide": "P=0, four times as wide",
    "ensemble": "P=0, ensemble of four",
}


class Pairs(NamedTuple):
    """Order 3 and its control on a dataset, split by split."""

    dataset: str
    runs: int  # a split
    ours: dict[str, list[float]]  # every metric by split, a mean over the runs
    theirs: dict[str, list[float]]
    result: PairedComparison
    p_value: float  # Holm's, over the datasets


def compared(records: list[Record], kind: Kind, control: Control, again: bool = False) -> list[Pairs]:
    """Order 3 against its control on every dataset, split by split, means over the seeds that both have.

    ``again`` leaves the first seed out.
    """
    rows = runs_by_row(records, "calibration-ablation")
    but = (*_ORDER, *_OWN[control])
    lines = []
    for dataset in sorted({dataset for dataset, _, _ in rows}):
        ours, theirs = (
            rows.get((dataset, "dss-gnn", label), {})
            for label in (label_of(*kind), control_of(kind[0], control))
        )
        shared = shared_seeds(ours, theirs)
        sides = [[own for (_, seed), own in side.items() if seed or not again] for side in shared]
        if not all(sides) or sides[0][0].keys() != sides[1][0].keys() or len(sides[0][0]) < 2:
            continue
        configs = [config_of_row(next(iter(side[0].values())), but) for side in sides]
        if configs[0] == configs[1]:
            mine, other = (_metrics(mean_run(side)) for side in sides)
            runs = len(seeds_of(sides[0]))
            lines.append((dataset, runs, mine, other, compare_paired(mine["brier"], other["brier"])))
    corrected = holm([line[-1].p_value for line in lines])
    return [Pairs(*line, p) for line, p in zip(lines, corrected, strict=True)]


def _metrics(splits: dict[int, Record]) -> dict[str, list[float]]:
    return {
        name: [record.metrics[name] for _, record in sorted(splits.items())]
        for name in ("brier", "chaos_energy")
    }


def _table(records: list[Record]) -> str:
    """Every kind against its controls; p-values are Holm's over the datasets of one of them."""
    lines = []
    for kind in KINDS:
        for control, against in _controls(kind):
            for dataset, runs, ours, theirs, c, p in compared(records, kind, control):
                texts = [spread(theirs["brier"]), spread(ours["brier"]), *tested(c, p), str(runs)]
                energy = spread(ours["chaos_energy"], digits=2)
                lines.append([_name(kind), kind[2], against, dataset, *texts, energy])
    header = [
        "norm", "objective", "against", "dataset", "control", "P=3", "difference", "95 % interval", "p (Holm)",
        "splits won", "runs a split", "chaos energy",
    ]  # fmt: skip
    return markdown(header, lines) if lines else ABSENT


def _glance(records: list[Record]) -> str:
    """The differences alone; a star where the corrected p-value is below 0.05."""
    lines, datasets = [], [d for d in DATASETS if any(r.setting == d for r in records)]
    for kind in KINDS:
        for control, against in _controls(kind):
            cells = {
                pairs.dataset: starred(pairs.result, pairs.p_value)
                for pairs in compared(records, kind, control)
            }
            if cells:
                lines.append([_name(kind), kind[2], against, *(cells.get(d, "–") for d in datasets)])
    shown = [i for i in range(3 + len(datasets)) if i < 3 or any(line[i] != "–" for line in lines)]
    header = ["norm", "objective", "P=3 less", *datasets]
    rows = [[line[i] for i in shown] for line in lines]
    return markdown([header[i] for i in shown], rows) if lines else ABSENT


def _controls(kind: Kind) -> list[tuple[Control, str]]:
    """What a kind stands beside: controls of its size where the pages claim anything for it."""
    return [(c, text) for c, text in _AGAINST.items() if kind in JOINT or c in ("plain", "penalty")]


def _name(kind: Kind) -> str:
    norm, joint, _ = kind
    return (norm or "none") + ("" if joint else ", dropout by order")


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "chaos-norms": ("calibration.json", _table),
    "chaos-norms-glance": ("calibration.json", _glance),
}
