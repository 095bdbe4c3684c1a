"""The tables of ``docs/calibration.md``: every system beside its published value, and paired comparisons."""

import json
import statistics
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any

from dssgnn.benchmarks.markdown import markdown
from dssgnn.benchmarks.records import Record
from dssgnn.metrics import compare_paired, holm

__all__ = ["TABLES", "by_row", "published"]

_ABSENT = "Not measured yet.\n"
_OURS = ("dss-gnn", "best")

# The rows that the paper prints, and the readout it prints of them: the mean logit's where it reads that one.
_PRINTED = {
    ("dss-gnn", "best"): "",
    ("dss-gnn", "paper"): "_mean",
    ("dss-gnn", "published"): "_mean",
    ("g-delta-uq", "input"): "_mean",
    ("tfe-gnn", "dss_paper"): "",
    ("gcn", "paper"): "",
    ("gat", "paper"): "",
    ("mc-dropout", "paper"): "",
    ("deep-ensemble", "paper"): "",
}

Rows = dict[tuple[str, str, str], dict[int, Record]]


@cache
def published() -> dict[str, dict[str, dict[str, Any]]]:
    """What the paper printed: dataset, then method (the labels of its tables are in the file)."""
    text = files("dssgnn.benchmarks.calibration").joinpath("published.json").read_text(encoding="utf-8")
    datasets: dict[str, dict[str, dict[str, Any]]] = json.loads(text)["datasets"]
    return datasets


def by_row(records: Iterable[Record]) -> Rows:
    """Records by dataset, method and variant, then split; a GPU's where a split was run on both kinds of device."""
    rows: Rows = {}
    for record in sorted(records, key=lambda r: not r.device.startswith("cpu")):
        if record.benchmark == "calibration" and record.variant != "default" and record.split is not None:
            rows.setdefault((record.setting, record.method, record.variant), {})[record.split] = record
    return dict(sorted(rows.items()))


def _systems(records: list[Record]) -> str:
    rows = []
    for (dataset, method, variant), splits in by_row(records).items():
        values = {key: [r.metrics[key] for r in splits.values()] for key in ("accuracy", "brier", "ece")}
        printed = published().get(dataset, {}).get(method, {}) if (method, variant) in _PRINTED else {}
        rows.append(
            [
                dataset,
                method,
                variant,
                str(len(splits)),
                _spread(values["accuracy"], 100, 2),
                _printed(printed, "accuracy", 100, 2),
                _spread(values["brier"]),
                _printed(printed, "brier"),
                _spread(values["ece"]),
            ]
        )
    header = ["dataset", "system", "variant", "splits", "accuracy, %", "paper", "Brier", "paper", "ECE"]
    return markdown(header, rows) if rows else _ABSENT


def _agreement(records: list[Record]) -> str:
    """Whether a rerun of the paper's own configuration lands within two of the published standard deviations."""
    rows = []
    for (dataset, method, variant), splits in by_row(records).items():
        printed = published().get(dataset, {}).get(method)
        if (
            printed is None
            or (method, variant) not in _PRINTED
            or (method, variant) == _OURS
            or len(splits) < 10
        ):
            continue
        cells = []
        for key in ("accuracy", "brier"):
            # Where the paper prints no deviation (MC-dropout, ensembles), that of its GCN.
            sd = printed[f"{key}_sd"] or published()[dataset]["gcn"][f"{key}_sd"]
            mean = statistics.fmean(r.metrics[key + _PRINTED[method, variant]] for r in splits.values())
            distance = (mean - printed[key]) / sd
            cells += [f"{distance:+.1f}", "within two" if abs(distance) <= 2 else "not within two"]
        rows.append([dataset, method, variant, *cells])
    header = ["dataset", "system", "variant", "accuracy, sd", "", "Brier, sd", ""]
    return markdown(header, rows) if rows else _ABSENT


def _paired(records: list[Record]) -> str:
    """Ours against every other row, split by split; the p-values of a row are corrected over the datasets."""
    rows = by_row(records)
    lines = []
    for method, variant in sorted({(m, v) for _, m, v in rows if (m, v) != _OURS}):
        found = []
        for dataset in sorted({d for d, _, _ in rows}):
            ours, theirs = rows.get((dataset, *_OURS), {}), rows.get((dataset, method, variant), {})
            common = sorted(set(ours) & set(theirs))
            if len(common) > 1:
                pair = ([side[s].metrics["brier"] for s in common] for side in (ours, theirs))
                found.append((dataset, compare_paired(*pair)))
        for (dataset, c), p in zip(found, holm([c.p_value for _, c in found]), strict=True):
            interval = f"{c.low:+.4f} to {c.high:+.4f}"
            lines.append(
                [
                    method,
                    variant,
                    dataset,
                    f"{c.difference:+.4f}",
                    interval,
                    f"{p:.3f}",
                    f"{c.wins}/{c.count}",
                ]
            )
    header = ["against", "variant", "dataset", "Brier difference", "95 % interval", "p (Holm)", "splits won"]
    return markdown(header, lines) if lines else _ABSENT


def _spread(values: list[float], scale: float = 1, digits: int = 4) -> str:
    return f"{scale * statistics.fmean(values):.{digits}f} ± {scale * statistics.pstdev(values):.{digits}f}"


def _printed(row: dict[str, Any], key: str, scale: float = 1, digits: int = 3) -> str:
    if row.get(key) is None:
        return "–"
    sd = row.get(f"{key}_sd")
    return f"{scale * row[key]:.{digits}f}" + ("" if sd is None else f" ± {scale * sd:.{digits}f}")


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "calibration": ("calibration.json", _systems),
    "calibration-agreement": ("calibration.json", _agreement),
    "calibration-paired": ("calibration.json", _paired),
}
