"""Every system, beside its published values."""

from collections.abc import Callable
from functools import partial

from dssgnn.benchmarks.calibration.defaults import DATASETS
from dssgnn.benchmarks.calibration.printed import printed_text, published
from dssgnn.benchmarks.calibration.search import OURS
from dssgnn.benchmarks.calibration.tables.targets import distance
from dssgnn.benchmarks.frame import by_row, mean_of, spread
from dssgnn.benchmarks.markdown import ABSENT, markdown
from dssgnn.benchmarks.records import Record

__all__ = ["TABLES"]

# The rows that the paper prints, under which name, and the readout it prints of them: the mean logit's where it reads
# that one.
_PRINTED = {
    ("dss-gnn", "best"): ("dss-gnn", ""),
    ("dss-gnn", "paper"): ("dss-gnn", "_mean"),
    ("dss-gnn", "published"): ("dss-gnn", "_mean"),
    ("dss-gnn", "published-other"): ("dss-gnn", "_mean"),
    ("dss-hybrid", "paper"): ("dss-hybrid", "_mean"),
    ("dss-hybrid", "published"): ("dss-hybrid", "_mean"),
    ("g-delta-uq", "input"): ("g-delta-uq", "_mean"),
    ("tfe-gnn", "dss_paper"): ("tfe-gnn", ""),
    ("chebnet", "paper"): ("chebnet", ""),
    ("gcn", "paper"): ("gcn", ""),
    ("gcn", "batch-norm"): ("gcn, batch norm", ""),
    ("gat", "paper"): ("gat", ""),
    ("mc-dropout", "paper"): ("mc-dropout", ""),
    ("deep-ensemble", "paper"): ("deep-ensemble", ""),
}


def _systems(records: list[Record]) -> str:
    rows = []
    for (dataset, method, variant), splits in by_row(records, "calibration").items():
        name, readout = _PRINTED.get((method, variant), ("", ""))
        values = {
            key: [r.metrics[key + readout] for r in splits.values()] for key in ("accuracy", "brier", "ece")
        }
        printed = published().get(dataset, {}).get(name, {})
        rows.append(
            [
                dataset,
                method,
                variant,
                str(len(splits)),
                f"{mean_of(splits, 'runs'):.0f}",
                spread(values["accuracy"], 100, 2),
                printed_text(printed, "accuracy", 100, 2),
                spread(values["brier"]),
                printed_text(printed, "brier"),
                *_scaled(splits, f"brier{readout}"),
                spread(values["ece"]),
                *_scaled(splits, f"ece{readout}"),
            ]
        )
    header = [
        "dataset", "system", "variant", "splits", "runs a split", "accuracy, %", "paper", "Brier", "paper",
        "with a temperature", "ECE", "with a temperature",
    ]  # fmt: skip
    return markdown(header, rows) if rows else ABSENT


def _scaled(splits: dict[int, Record], key: str) -> list[str]:
    name = f"{key}_scaled"
    known = all(name in record.metrics for record in splits.values())
    return [f"{mean_of(splits, name):.4f}" if known else "–"]


def _matrix(key: str, records: list[Record]) -> str:
    """Mean Brier scores, a system a line and a dataset a column; the lowest of a column in bold."""
    found = {
        row: splits
        for row, splits in by_row(records, "calibration").items()
        if all(key in record.metrics for record in splits.values())
    }
    datasets = [d for d in DATASETS if any(key[0] == d for key in found)]
    systems = sorted({(m, v) for _, m, v in found})
    means = {row: mean_of(splits, key) for row, splits in found.items() if len(splits) == 10}
    lowest = {d: min((x for row, x in means.items() if row[0] == d), default=None) for d in datasets}
    rows = []
    for system in systems:
        cells = []
        for d in datasets:
            value = means.get((d, *system))
            text = "–" if value is None else f"{value:.3f}"
            cells.append(f"**{text}**" if value is not None and value == lowest[d] else text)
        rows.append([" ".join(system), *cells])
    paper = [published().get(d, {}).get("dss-gnn", {}).get("brier") for d in datasets]
    rows.append(["DSS-GNN in the paper", *("–" if x is None else f"{x:.3f}" for x in paper)])
    return markdown(["mean test Brier", *datasets], rows) if systems else ABSENT


def _agreement(records: list[Record]) -> str:
    """Whether a rerun of the paper's own configuration lands within two of the published standard deviations."""
    rows = []
    for (dataset, method, variant), splits in by_row(records, "calibration").items():
        name, readout = _PRINTED.get((method, variant), ("", ""))
        printed = published().get(dataset, {}).get(name)
        if printed is None or (method, variant) == OURS or len(splits) < 10:
            continue
        cells = []
        for key in ("accuracy", "brier"):
            found = distance(dataset, name, splits, key, readout)
            if found is None:
                cells += ["–", ""]
            else:
                cells += [f"{found:+.1f}", "within two" if abs(found) <= 2 else "not within two"]
        rows.append([dataset, method, variant, *cells])
    header = ["dataset", "system", "variant", "accuracy, sd", "", "Brier, sd", ""]
    return markdown(header, rows) if rows else ABSENT


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "calibration-matrix": ("calibration.json", partial(_matrix, "brier")),
    "calibration-matrix-scaled": ("calibration.json", partial(_matrix, "brier_scaled")),
    "calibration": ("calibration.json", _systems),
    "calibration-agreement": ("calibration.json", _agreement),
}
