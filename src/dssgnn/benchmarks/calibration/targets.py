"""What the calibration benchmark was to show, counted from its records."""

import statistics
from collections.abc import Iterable

from dssgnn.benchmarks.calibration.rows import ABSENT, Rows, by_row, mean_of, published
from dssgnn.benchmarks.markdown import markdown
from dssgnn.benchmarks.records import Record

__all__ = ["PRESENT", "distance", "summary"]

# The paper's graphs that are here.
PRESENT = (
    "cora", "citeseer", "texas", "cornell", "wisconsin", "chameleon", "squirrel", "coauthor-cs", "minesweeper",
    "tolokers",
)  # fmt: skip
_OURS = ("dss-gnn", "best")


def distance(dataset: str, name: str, splits: dict[int, Record], key: str, readout: str = "") -> float | None:
    """How many published standard deviations a row's mean lies from what the paper printed under ``name``.

    Where it prints no deviation (MC-dropout, ensembles, ChebNet), or zero, that of its GCN.
    """
    printed = published().get(dataset, {}).get(name)
    if printed is None or printed[key] is None:
        return None
    sd = printed[f"{key}_sd"] or published()[dataset]["gcn"][f"{key}_sd"]
    return (mean_of(splits, key + readout) - float(printed[key])) / float(sd) if sd else None


def summary(records: list[Record], significant: dict[str, list[str]]) -> str:
    """One line a target; ``significant`` names the datasets on which ``best`` beats each of its twins."""
    rows = by_row(records)
    if not rows:
        return ABSENT
    lines = [*_best(rows), *_reruns(rows)]
    for twin, datasets in significant.items():
        found = f"{len(datasets)} ({', '.join(datasets)})" if datasets else "0"
        lines.append([f"`best` below `{twin}`, Holm-corrected p < 0.05", "5 of 10", found])
    lines += _seconds(rows)
    return markdown(["", "target", "measured"], lines)


def _best(rows: Rows) -> list[list[str]]:
    measured = [d for d in PRESENT if (d, *_OURS) in rows]
    if not measured:
        return [["`best`", "", "not measured yet"]]
    ours = {d: mean_of(rows[(d, *_OURS)], "brier") for d in measured}
    paper = [d for d in measured if ours[d] < published()[d]["dss-gnn"]["brier"]]
    excess = {}
    for d in measured:
        others = {
            (m, v): mean_of(s, "brier")
            for (dataset, m, v), s in rows.items()
            if dataset == d and m != "dss-gnn"
        }
        if others:
            name = min(others, key=lambda k: others[k])
            excess[d] = (ours[d] - others[name], " ".join(name))
    below = [d for d, (gap, _) in excess.items() if gap < 0]
    worst = max(excess.items(), key=lambda item: item[1][0])
    of = f"of {len(measured)}"
    return [
        [
            "`best` below the paper's DSS-GNN, mean test Brier",
            "9 of 10",
            f"{len(paper)} {of}{_but(measured, paper)}",
        ],
        ["`best` below every other system run here", "8 of 10", f"{len(below)} {of}{_but(measured, below)}"],
        [
            "`best` above another system by at most",
            "0.010",
            f"{worst[1][0]:+.4f} ({worst[0]}, {worst[1][1]})",
        ],
    ]


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


def _seconds(rows: Rows) -> list[list[str]]:
    """The largest sum over the datasets of what a system took on a GPU."""
    taken: dict[str, float] = {}
    counts: dict[str, int] = {}
    for (dataset, method, variant), splits in rows.items():
        timed = [r.metrics["seconds"] for r in splits.values() if "seconds" in r.metrics]
        if (
            dataset in PRESENT
            and len(timed) == 10
            and not next(iter(splits.values())).device.startswith("cpu")
        ):
            name = f"{method} {variant}"
            taken[name] = taken.get(name, 0.0) + sum(timed)
            counts[name] = counts.get(name, 0) + 1
    whole = {name: seconds for name, seconds in taken.items() if counts[name] == len(PRESENT)}
    if not whole:
        return []
    slowest = max(whole, key=lambda name: whole[name])
    middle = statistics.median(whole.values())
    text = f"{whole[slowest]:.0f} s at most ({slowest}), {middle:.0f} s in the middle of {len(whole)} systems"
    return [["one system on all ten datasets, other systems on the GPU beside it", "600 s", text]]


def _but(all_of: Iterable[str], some: list[str]) -> str:
    rest = [d for d in all_of if d not in some]
    return f" (not {', '.join(rest)})" if rest else ""
