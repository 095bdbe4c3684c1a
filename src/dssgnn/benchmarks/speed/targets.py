"""What the speed work set out to reach, and whether the records say that it was."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dssgnn.benchmarks.records import Record

__all__ = ["TARGETS", "Target", "fastest", "on_top"]

# What was measured, in words, and whether it is enough; ``None`` where a record is missing.
Verdict = tuple[str, bool] | None


@dataclass(frozen=True)
class Target:
    """A figure that was promised."""

    what: str
    figure: str
    judge: Callable[[list[Record]], Verdict]


def fastest(record: Record) -> float:
    """Milliseconds of a step the faster way: as it is, or as a CUDA graph where it could be captured."""
    return min(record.metrics["step_ms"], record.metrics.get("captured_ms", float("inf")))


def on_top(metrics: Mapping[str, float]) -> float | None:
    """MiB that a step allocates at its peak on top of what was there before it."""
    return metrics["peak_mib"] - metrics["base_mib"] if "peak_mib" in metrics else None


def _find(records: list[Record], place: str, variant: str, **config: object) -> Record | None:
    """The newest record of a contender on a device whose configuration has these values."""
    wanted = config.items()
    for record in reversed(records):
        if place in record.device and record.variant == variant and wanted <= record.config.items():
            return record
    return None


_GPU, _CPU = "H200", "cpu, 2 threads"


def _step(records: list[Record], variant: str, order: int, shape: str, place: str = _GPU) -> Record | None:
    wanted = {"part": "steps", "shape": shape, "degrees": "power", "chaos_order": order}
    return _find(records, place, variant, **wanted)


def _faster(
    variant: str, other: str, order: int, least: float, shape: str = "ogbn-arxiv", place: str = _GPU
) -> Callable[[list[Record]], Verdict]:
    def judge(records: list[Record]) -> Verdict:
        ours, theirs = (_step(records, name, order, shape, place) for name in (variant, other))
        if ours is None or theirs is None:
            return None
        ratio = fastest(theirs) / fastest(ours)
        text = f"{ratio:.1f} times ({fastest(theirs):.2f} ms, {fastest(ours):.2f} ms)"
        same = _step(records, "published-csr", order, shape, place) if other == "published" else None
        if same is not None:
            text += f"; {fastest(same) / fastest(ours):.1f} times with our sparse product in both"
        return text, ratio >= least

    return judge


def _peak_of(record: Record | None) -> float | None:
    return None if record is None else record.metrics.get("peak_mib")


def _peak(records: list[Record]) -> Verdict:
    ours, theirs = (_peak_of(_step(records, name, 2, "ogbn-arxiv")) for name in ("ours", "published"))
    if ours is None or theirs is None:
        return None
    share = ours / theirs
    return f"{share:.2f} ({ours:,.0f} of {theirs:,.0f} MiB)", share <= 0.25


def _orders(records: list[Record]) -> Verdict:
    high, low = (_step(records, "ours", order, "ogbn-arxiv") for order in (2, 0))
    if high is None or low is None:
        return None
    ratio = fastest(high) / fastest(low)
    return f"{ratio:.2f} ({fastest(high):.2f} ms, {fastest(low):.2f} ms)", ratio <= 2.0


def _small(records: list[Record]) -> Verdict:
    ours = _step(records, "ours", 2, "cora")
    return None if ours is None else (f"{fastest(ours):.2f} ms", fastest(ours) < 1.0)


def _filter(state: str, enough: Callable[[dict[str, float]], bool]) -> Callable[[list[Record]], Verdict]:
    def judge(records: list[Record]) -> Verdict:
        wanted = {"part": "filter", "shape": "ogbn-arxiv", "degrees": "power", "width": 192, "degree": 4}
        found = _find(records, _GPU, f"filter-{state}", **wanted)
        if found is None:
            return None
        m = found.metrics
        text = f"{m['forward_ms']:.2f} ms, {100 * m['share_of_bound']:.0f} % of the bound ({m['bound_ms']:.2f} ms)"
        return text, enough(m)

    return judge


def _grown(records: list[Record], axis: str, value: int) -> Record | None:
    return _find(records, _GPU, "ours", part="growth", axis=axis, value=value, degrees="power")


def _degrees(records: list[Record]) -> Verdict:
    records_ = [_grown(records, "K", value) for value in (2, 16)]
    tops = [None if record is None else on_top(record.metrics) for record in records_]
    if tops[0] is None or tops[1] is None:
        return None
    # What lies there before the step is the same for both, whatever else the process has kept by then.
    base = min(record.metrics["base_mib"] for record in records_ if record is not None)
    few, many = base + tops[0], base + tops[1]
    ratio = many / few
    return f"{100 * (ratio - 1):+.1f} % ({few:,.0f} MiB, {many:,.0f} MiB)", 0.95 <= ratio <= 1.05


def _nodes(records: list[Record]) -> Verdict:
    million, ten = (_grown(records, "nodes", value) for value in (10**6, 10**7))
    if million is None or ten is None:
        return None
    ratio = fastest(ten) / fastest(million) / 10
    peak = ten.metrics["peak_mib"] / 1024
    return f"{ratio:.2f} times linear ({fastest(ten):,.0f} ms, {peak:.0f} GiB)", ratio <= 1.5


def _population(name: str, place: str, least: float) -> Callable[[list[Record]], Verdict]:
    def judge(records: list[Record]) -> Verdict:
        found = _find(records, place, "population", part="population", dataset=name, splits=10)
        if found is None:
            return None
        m = found.metrics
        return f"{m['ratio']:.1f} times ({m['sequential_s']:.1f} s, {m['population_s']:.1f} s)", m[
            "ratio"
        ] >= least

    return judge


_STEP = "H200, ogbn-arxiv's shape, P=2"

TARGETS = (
    Target(f"{_STEP}, fp32, over the published order", "10 times", _faster("ours", "published", 2, 10)),
    Target(f"{_STEP}, fp32, peak memory over the published order's", "at most 0.25", _peak),
    Target(f"{_STEP}, bf16, over the published order", "14 times", _faster("ours-bf16", "published", 2, 14)),
    Target(
        "H200, filter of width 192, K=4, fp32",
        "90 % of the gather bound",
        _filter("fp32", lambda m: m["share_of_bound"] >= 0.9),
    ),
    Target(
        "H200, filter of width 192, K=4, bf16",
        "under 1.2 ms",
        _filter("bf16", lambda m: m["forward_ms"] < 1.2),
    ),
    Target("H200, ogbn-arxiv's shape, P=2 over P=0", "at most 2.0", _orders),
    Target("H200, peak memory from K=2 to K=16", "flat within 5 %", _degrees),
    Target(
        "H200, ogbn-arxiv's shape, P=0, over PyG's `ChebConv`", "5 times", _faster("ours", "chebconv", 0, 5)
    ),
    Target("H200, Cora's shape, P=2", "under 1 ms", _small),
    Target("H200, ten splits of Cora as a population", "5 times", _population("cora", _GPU, 5)),
    Target("H200, ten splits of Chameleon as a population", "5 times", _population("chameleon", _GPU, 5)),
    Target("two cores, ten splits of Cora as a population", "1.5 times", _population("cora", _CPU, 1.5)),
    Target(
        "two cores, ten splits of Chameleon as a population", "1.5 times", _population("chameleon", _CPU, 1.5)
    ),
    Target(
        "two cores, Amazon-Ratings' shape, P=2, over the published order",
        "5 times",
        _faster("ours", "published", 2, 5, "amazon-ratings", _CPU),
    ),
    Target(
        "H200, 10^7 nodes and 10^8 entries, hidden 32, P=1, from 10^6 nodes",
        "within 1.5 times linear",
        _nodes,
    ),
)
