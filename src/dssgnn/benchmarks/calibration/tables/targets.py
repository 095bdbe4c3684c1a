"""What the calibration benchmark was to show, counted from its records."""

from collections.abc import Callable, Iterable, Sequence

from dssgnn.benchmarks.calibration.norms import JOINT, Control
from dssgnn.benchmarks.calibration.printed import published
from dssgnn.benchmarks.calibration.search import OURS
from dssgnn.benchmarks.calibration.tables.norms import Pairs, compared
from dssgnn.benchmarks.calibration.tables.pairs import Comparison, comparisons, fresh_runs
from dssgnn.benchmarks.calibration.timing import TIMING
from dssgnn.benchmarks.frame import Rows, by_row, mean_of
from dssgnn.benchmarks.markdown import ABSENT, markdown
from dssgnn.benchmarks.records import Record

__all__ = ["PRESENT", "TABLES", "distance"]

# What was measured, in words, and whether it is enough; ``None`` where there is no target, or graphs that were not run
# could still decide.
Verdict = tuple[str, bool | None]

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


def _targets(records: list[Record]) -> str:
    """One line a target."""
    rows = by_row(records, "calibration")
    if not rows:
        return ABSENT
    first = by_row(
        records, "calibration", lambda _, runs: [own for (_, seed), own in runs.items() if not seed]
    )
    others = {"first runs": rows | first, "all runs": rows}
    lines = [*_best(by_row(records, "calibration", fresh_runs), others), *_reruns(rows)]
    lines += [*_twins(records), *_fixed(records), *_seconds(records)]
    return markdown(["", "target", "measured", ""], lines)


def _line(what: str, target: str, verdict: Verdict) -> list[str]:
    text, met = verdict
    return [what, target, text, "" if met is None else "met" if met else "missed"]


def _enough(found: int, known: int, least: int) -> bool | None:
    """Whether ``found`` of ``known`` graphs are enough, however the rest of `PRESENT` comes out."""
    if found >= least:
        return True
    return None if found + len(PRESENT) - known >= least else False


_NOT_YET: Verdict = ("not measured yet", None)

_BEST = (
    ("`best` below the paper's DSS-GNN, mean test Brier", "9 of 10"),
    (
        "`best` below every other system run here, also with a temperature (DSS-GNN's own variants aside)",
        "8 of 10",
    ),
    ("`best` above another system by at most", "0.010"),
)


def _best(rows: Rows, others: dict[str, Rows]) -> list[list[str]]:
    """Of the runs that are compared (`fresh_runs`); beside them of others, if they say otherwise."""
    lines = []
    standing = {name: _standing(own) for name, own in others.items()}
    for i, ((what, target), (found, met)) in enumerate(zip(_BEST, _standing(rows), strict=True)):
        differ = [f"{name}: {own[i][0]}" for name, own in standing.items() if own[i][0] != found]
        lines.append(_line(what, target, ("; ".join([found, *differ]), met)))
    return lines


def _standing(rows: Rows) -> tuple[Verdict, Verdict, Verdict]:
    """`best` against the paper's figure, against every other system, and where it loses most."""
    ours = {d: mean_of(rows[(d, *OURS)], "brier") for d in PRESENT if len(rows.get((d, *OURS), {})) == 10}
    if not ours:
        return _NOT_YET, _NOT_YET, _NOT_YET
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
    against_paper = (f"{len(paper)} of {len(ours)}{_but(ours, paper)}", _enough(len(paper), len(ours), 9))
    if not excess:
        return against_paper, _NOT_YET, _NOT_YET
    most, system = excess[worst]
    near = None if most <= 0.01 and len(excess) < len(PRESENT) else most <= 0.01
    return (
        against_paper,
        (f"{len(below)} of {len(excess)}{_but(excess, below)}", _enough(len(below), len(excess), 8)),
        (f"{most:+.4f} ({worst}, {system})", near),
    )


def _reruns(rows: Rows) -> list[list[str]]:
    lines = []
    for method, variant, name, readout in (
        ("dss-gnn", "published", "dss-gnn", "_mean"), ("gcn", "paper", "gcn", ""), ("gat", "paper", "gat", ""),
        ("gat", "input-dropout", "gat", ""), ("mc-dropout", "paper", "mc-dropout", ""),
        ("deep-ensemble", "paper", "deep-ensemble", ""),
    ):  # fmt: skip
        cells, enough = [], []
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
                enough.append(_enough(len(near), len(known), 8))
        if cells:
            what = f"{method} `{variant}` within two published standard deviations"
            met = False if False in enough else None if None in enough else True
            lines.append(_line(what, "8 of 10", ("; ".join(cells), met)))
    return lines


def _twins(records: list[Record]) -> list[list[str]]:
    return [
        _line(f"`best` below `{variant}`, Holm-corrected p < 0.05", "5 of 10", _significant(found))
        for (_, variant), found in comparisons(records).items()
        if variant in ("twin-p0", "twin-p0-penalty") and found
    ]


# The size of the network was nobody's target, but without it the others say little.
_WITH: dict[Control, tuple[str, str]] = {
    "plain": ("", "5 of 10"),
    "penalty": (" with a penalty", "5 of 10"),
    "wide": (" four times as wide", "–"),
    "ensemble": (", an ensemble of four", "–"),
}


def _fixed(records: list[Record]) -> list[list[str]]:
    """The joint norm's network; its first runs were known when the others were decided on."""
    lines = []
    for kind in JOINT:
        for control, (words, target) in _WITH.items():
            text, met = _significant(compared(records, kind, control))
            again, _ = _significant(compared(records, kind, control, again=True))
            if again not in ("", text):
                text += f"; repetitions alone: {again}"
            what = f"a fixed network, joint norm, {kind[2]} loss: P = 3 below P = 0{words}"
            if text:
                verdict = (text, None if target == "–" else met)
                lines.append(_line(f"{what}, Holm-corrected p < 0.05", target, verdict))
    return lines


def _significant(found: Sequence[Comparison | Pairs]) -> Verdict:
    """On how many datasets the difference is significant and in favour of the order, and on which it is against it."""
    won = [c.dataset for c in found if c.p_value < 0.05 and c.result.difference < 0]
    lost = [c.dataset for c in found if c.p_value < 0.05 and c.result.difference > 0]
    against = f"; above it on {', '.join(lost)}" if lost else ""
    text = f"{len(won)} of {len(found)}{_but((c.dataset for c in found), won)}{against}"
    return (text, _enough(len(won), len(found), 5)) if found else ("", None)


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
    return [_line(what, "600 s", (text, seconds < 600))]


def _but(all_of: Iterable[str], some: list[str]) -> str:
    rest = [d for d in all_of if d not in some]
    return f" (not {', '.join(rest)})" if rest else ""


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "calibration-targets": ("calibration.json", _targets)
}
