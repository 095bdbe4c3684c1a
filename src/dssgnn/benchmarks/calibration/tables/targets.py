"""What the calibration benchmark was to show, counted from its records."""

from collections.abc import Callable, Iterable

from dssgnn.benchmarks.calibration.norms import JOINT, Control
from dssgnn.benchmarks.calibration.printed import published
from dssgnn.benchmarks.calibration.search import OURS
from dssgnn.benchmarks.calibration.tables.norms import compared
from dssgnn.benchmarks.calibration.tables.pairs import comparisons
from dssgnn.benchmarks.calibration.timing import TIMING
from dssgnn.benchmarks.frame import Rows, by_row, mean_of
from dssgnn.benchmarks.markdown import ABSENT, markdown
from dssgnn.benchmarks.records import Record

__all__ = ["PRESENT", "TABLES", "distance", "summary"]

# The paper's graphs that are here.
PRESENT = (
    "cora", "citeseer", "texas", "cornell", "wisconsin", "chameleon", "squirrel", "coauthor-cs", "minesweeper",
    "tolokers",
)  # fmt: skip


def distance(dataset: str, name: str, splits: dict[int, Record], key: str, readout: str = "") -> float | None:
    """How many published standard deviations a row's mean lies from what the paper printed under ``name``.

    Where it prints no deviation (MC-dropout, ensembles, ChebNet), or zero, that of its GCN.
    """
    printed = published().get(dataset, {}).get(name)
    if printed is None or printed[key] is None:
        return None
    sd = printed[f"{key}_sd"] or published()[dataset]["gcn"][f"{key}_sd"]
    return (mean_of(splits, key + readout) - float(printed[key])) / float(sd) if sd else None


def summary(records: list[Record], significant: dict[str, dict[str, bool]]) -> str:
    """One line a target; ``significant`` says of a comparison on which datasets an order above 0 wins it."""
    rows = by_row(records, "calibration")
    if not rows:
        return ABSENT
    kinds = {
        "first runs": by_row(records, "calibration", which="first"),
        "repetitions": by_row(records, "calibration", which="again"),
    }
    lines = [*_best(rows, {name: rows | of_kind for name, of_kind in kinds.items()}), *_reruns(rows)]
    for what, datasets in significant.items():
        won = [d for d, better in datasets.items() if better]
        found = f"{len(won)} of {len(datasets)}{_but(datasets, won)}"
        lines.append([f"{what}, Holm-corrected p < 0.05", "5 of 10", found])
    lines += _seconds(records)
    return markdown(["", "target", "measured"], lines)


_BEST = (
    ("`best` below the paper's DSS-GNN, mean test Brier", "9 of 10"),
    (
        "`best` below every other system run here, also with a temperature (DSS-GNN's own variants aside)",
        "8 of 10",
    ),
    ("`best` above another system by at most", "0.010"),
)


def _best(rows: Rows, kinds: dict[str, Rows]) -> list[list[str]]:
    """Of all runs; beside them of the first and of the repeated ones, where a row has such, if they say otherwise."""
    lines = []
    others = {name: _standing(own) for name, own in kinds.items()}
    for i, ((what, target), found) in enumerate(zip(_BEST, _standing(rows), strict=True)):
        differ = [f"{name}: {own[i]}" for name, own in others.items() if own[i] != found]
        lines.append([what, target, "; ".join([found, *differ])])
    return lines


def _standing(rows: Rows) -> tuple[str, str, str]:
    """`best` against the paper's figure, against every other system, and where it loses most."""
    ours = {d: mean_of(rows[(d, *OURS)], "brier") for d in PRESENT if len(rows.get((d, *OURS), {})) == 10}
    if not ours:
        return ("not measured yet",) * 3
    paper = [d for d in ours if ours[d] < published()[d]["dss-gnn"]["brier"]]
    excess = {}
    for d in ours:
        others = {
            f"{m} {v}{suffix}": mean_of(splits, key)
            for (dataset, m, v), splits in rows.items()
            for key, suffix in (("brier", ""), ("brier_scaled", " with a temperature"))
            if dataset == d and m != "dss-gnn" and splits.keys() == rows[(d, *OURS)].keys()
            if all(key in r.metrics for r in splits.values())
        }
        if others:
            name = min(others, key=lambda k: others[k])
            excess[d] = (ours[d] - others[name], name)
    below = [d for d, (gap, _) in excess.items() if gap < 0]
    worst = max(excess, key=lambda d: excess[d][0], default="")
    return (
        f"{len(paper)} of {len(ours)}{_but(ours, paper)}",
        f"{len(below)} of {len(excess)}{_but(excess, below)}" if excess else "not measured yet",
        f"{excess[worst][0]:+.4f} ({worst}, {excess[worst][1]})" if excess else "not measured yet",
    )


def _reruns(rows: Rows) -> list[list[str]]:
    lines = []
    for method, variant, name, readout in (
        ("dss-gnn", "published", "dss-gnn", "_mean"), ("gcn", "paper", "gcn", ""), ("gat", "paper", "gat", ""),
        ("gat", "input-dropout", "gat", ""), ("mc-dropout", "paper", "mc-dropout", ""),
        ("deep-ensemble", "paper", "deep-ensemble", ""),
    ):  # fmt: skip
        cells = []
        for key in ("accuracy",) if method == "dss-gnn" else ("accuracy", "brier"):
            found = {
                d: distance(d, name, rows[d, method, variant], key, readout)
                for d in PRESENT
                if len(rows.get((d, method, variant), {})) == 10
            }
            known = {d: x for d, x in found.items() if x is not None}
            near = [d for d, x in known.items() if abs(x) <= 2]
            if known:
                cells.append(f"{key} {len(near)} of {len(known)}{_but(known, near)}")
        if cells:
            what = f"{method} `{variant}` within two published standard deviations"
            lines.append([what, "8 of 10", "; ".join(cells)])
    return lines


def _seconds(records: list[Record]) -> list[list[str]]:
    """The slowest of the systems that were timed alone on a GPU."""
    timed = [
        r
        for r in records
        if r.benchmark == TIMING
        and not r.device.startswith("cpu")
        and {*PRESENT} <= {*r.config["datasets"]}
        and len(r.config["splits"]) == 10
    ]
    if not timed:
        return []
    slowest = max(timed, key=lambda r: r.metrics["seconds"])
    seconds, graphs = slowest.metrics["seconds"], slowest.metrics["graphs"]
    text = f"{seconds:.0f} s ({slowest.method} {slowest.variant}, {graphs:.0f} graphs)"
    what = "one system on the ten graphs, ten splits, one seed, alone on the GPU: the slowest that was timed"
    return [[what, "600 s", text]]


def _but(all_of: Iterable[str], some: list[str]) -> str:
    rest = [d for d in all_of if d not in some]
    return f" (not {', '.join(rest)})" if rest else ""


_WITH: dict[Control, str] = {"plain": "", "penalty": " with a penalty"}


def _targets(records: list[Record]) -> str:
    pairs = {
        f"`best` below `{variant}`": [(c.dataset, c.result, c.p_value) for c in found]
        for (_, variant), found in comparisons(records).items()
        if variant in ("twin-p0", "twin-p0-penalty") and found
    } | {
        f"a fixed network, joint norm, {kind[2]} loss: P = 3 below P = 0{_WITH[control]}": [
            (c.dataset, c.result, c.p_value) for c in compared(records, kind, control)
        ]
        for kind in JOINT
        for control in _WITH
    }
    significant = {
        what: {dataset: result.difference < 0 and p < 0.05 for dataset, result, p in found}
        for what, found in pairs.items()
        if found
    }
    return summary(records, significant)


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "calibration-targets": ("calibration.json", _targets)
}
