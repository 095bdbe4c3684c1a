"""The tables of ``docs/calibration.md``: systems and ablations beside their published values, paired comparisons."""

import statistics
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from dssgnn.benchmarks.calibration.defaults import DATASETS
from dssgnn.benchmarks.calibration.norms import JOINT
from dssgnn.benchmarks.calibration.printed import printed_text, published
from dssgnn.benchmarks.calibration.tables.ablations import TABLES as ABLATION_TABLES
from dssgnn.benchmarks.calibration.tables.chaos import TABLES as CHAOS_TABLES
from dssgnn.benchmarks.calibration.tables.chosen import TABLES as CHOSEN_TABLES
from dssgnn.benchmarks.calibration.tables.norms import TABLES as NORM_TABLES
from dssgnn.benchmarks.calibration.tables.norms import compared
from dssgnn.benchmarks.calibration.tables.targets import distance, summary
from dssgnn.benchmarks.calibration.tables.timing import TABLES as TIMING_TABLES
from dssgnn.benchmarks.frame.rows import by_row, mean_of, same_but_for, spread
from dssgnn.benchmarks.markdown import ABSENT, markdown
from dssgnn.benchmarks.records import Record
from dssgnn.metrics import PairedComparison, compare_paired, holm

__all__ = ["TABLES"]

_OURS = ("dss-gnn", "best")
_TWIN = (
    "chaos_order",
    "quadrature_size",
    "logit_weight",
    "arm",
    "training",
)  # what a twin of it has of its own

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
    for (dataset, method, variant), splits in by_row(records).items():
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
        for row, splits in by_row(records).items()
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
    for (dataset, method, variant), splits in by_row(records).items():
        name, readout = _PRINTED.get((method, variant), ("", ""))
        printed = published().get(dataset, {}).get(name)
        if printed is None or (method, variant) == _OURS or len(splits) < 10:
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


class _Comparison(NamedTuple):
    dataset: str
    runs: int
    result: PairedComparison
    p_value: float  # corrected


def _compared(records: list[Record]) -> dict[tuple[str, str], list[_Comparison]]:
    """Ours against every other row, split by split; the p-values of a row are corrected over the datasets."""
    seeds = sorted({record.seed for record in records if record.seed is not None})
    rows = {seed: by_row(records, seed=seed) for seed in seeds}
    known = rows.get(0, {})
    comparisons = {}
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
        comparisons[method, variant] = [
            _Comparison(*each, p) for each, p in zip(found, corrected, strict=True)
        ]
    return comparisons


def _paired(records: list[Record]) -> str:
    lines = []
    for (method, variant), found in _compared(records).items():
        for dataset, runs, c, p in found:
            interval = f"{c.low:+.4f} to {c.high:+.4f}"
            cells = [f"{c.difference:+.4f}", interval, f"{p:.3f}", f"{c.wins}/{c.count}", str(runs)]
            lines.append([method, variant, dataset, *cells])
    header = [
        "against", "variant", "dataset", "Brier difference", "95 % interval", "p (Holm)", "splits won", "runs a split",
    ]  # fmt: skip
    return markdown(header, lines) if lines else ABSENT


def _targets(records: list[Record]) -> str:
    pairs = {
        f"`best` below `{variant}`": [(c.dataset, c.result, c.p_value) for c in found]
        for (_, variant), found in _compared(records).items()
        if variant in ("twin-p0", "twin-p0-penalty") and found
    } | {
        f"a fixed network, joint norm, {objective} loss: P = 3 below P = 0{' with a penalty' if penalised else ''}": [
            (c.dataset, c.result, c.p_value) for c in compared(records, norm, joint, objective, penalised)
        ]
        for norm, joint, objective in JOINT
        for penalised in (False, True)
    }
    significant = {
        what: {dataset: result.difference < 0 and p < 0.05 for dataset, result, p in found}
        for what, found in pairs.items()
        if found
    }
    return summary(records, significant)


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "calibration-targets": ("calibration.json", _targets),
    "calibration-matrix": ("calibration.json", partial(_matrix, "brier")),
    "calibration-matrix-scaled": ("calibration.json", partial(_matrix, "brier_scaled")),
    "calibration": ("calibration.json", _systems),
    "calibration-agreement": ("calibration.json", _agreement),
    "calibration-paired": ("calibration.json", _paired),
    **CHOSEN_TABLES,
    **TIMING_TABLES,
    **ABLATION_TABLES,
    **CHAOS_TABLES,
    **NORM_TABLES,
}
