"""The tables of ``docs/speed.md``, from whatever records there are."""

from collections.abc import Callable, Iterable

from dssgnn.benchmarks.markdown import markdown
from dssgnn.benchmarks.records import Record
from dssgnn.benchmarks.speed.shapes import SHAPES
from dssgnn.benchmarks.speed.targets import TARGETS, fastest, on_top

__all__ = ["TABLES", "by_axis", "part"]

_ABSENT = "Not measured yet.\n"
_AXES = {"nodes": "nodes", "P": "chaos order P", "K": "filter degree K"}
# In this order in every table; files hold them in the order in which they were measured.
_VARIANTS = ("published", "published-csr", "chebconv", "gcn", "ours", "ours-bf16")


def part(records: Iterable[Record], name: str) -> list[Record]:
    """The records of a part; those of the first version of the benchmark were all steps."""
    return [record for record in records if record.config.get("part", "steps") == name]


def by_axis(records: Iterable[Record], axis: str) -> dict[tuple[str, int], dict[str, Record]]:
    """The growth records along an axis: device and value, then contender."""
    rows: dict[tuple[str, int], dict[str, Record]] = {}
    for record in part(records, "growth"):
        if record.config["axis"] == axis:
            rows.setdefault((record.device, record.config["value"]), {})[record.variant] = record
    return dict(sorted(rows.items()))


def _targets(records: list[Record]) -> str:
    rows = []
    for target in TARGETS:
        found = target.judge(records)
        measured, met = ("not measured", "") if found is None else (found[0], "met" if found[1] else "missed")
        rows.append([target.what, target.figure, measured, met])
    return markdown(["", "target", "measured", ""], rows)


def _steps(records: list[Record]) -> str:
    settings: dict[tuple[str, str], dict[str, Record]] = {}
    place = {name: i for i, name in enumerate(SHAPES)}
    steps = part(records, "steps")
    for record in sorted(
        steps,
        key=lambda r: (r.device.startswith("cpu"), place[r.config["shape"]], r.config["chaos_order"]),
    ):
        settings.setdefault((record.device, record.setting), {})[record.variant] = record
    rows = []
    for (device, setting), row in settings.items():
        for name in (name for name in _VARIANTS if name in row):
            metrics = row[name].metrics
            over = fastest(row[name]) / fastest(row["ours"]) if "ours" in row else None
            figures = [metrics["step_ms"], metrics.get("captured_ms"), over]
            memory = [on_top(metrics), metrics.get("saved_mib")]
            rows.append(
                [device, setting, name, *map(_number, figures), *(_number(value, 0) for value in memory)]
            )
    header = [
        "device",
        "setting",
        "contender",
        "step, ms",
        "captured, ms",
        "over ours",
        "on top, MiB",
        "kept, MiB",
    ]
    return markdown(header, rows)


def _filter(records: list[Record]) -> str:
    rows = []
    for record in part(records, "filter"):
        m = record.metrics
        figures = [_number(m[key]) for key in ("forward_ms", "both_ms", "gathered_gb")]
        figures += [_number(m["copy_gbs"], 0), _number(m["bound_ms"]), f"{100 * m['share_of_bound']:.0f} %"]
        rows.append([record.device, record.setting, record.variant.removeprefix("filter-"), *figures])
    header = ["device", "setting", "state", "forward, ms", "with backward, ms"]
    header += ["gathered, GB", "copy, GB/s", "bound, ms", "bound / forward"]
    return markdown(header, rows) if rows else _ABSENT


def _growth(records: list[Record]) -> str:
    blocks = []
    for axis, title in _AXES.items():
        rows = by_axis(records, axis)
        if not rows:
            continue
        names = [name for name in _VARIANTS if any(name in row for row in rows.values())]
        lines = []
        for (device, value), row in rows.items():
            metrics = [row[name].metrics if name in row else {} for name in names]
            cells = [_number(m.get("step_ms")) for m in metrics]
            cells += [_number(m.get("captured_ms")) for m in metrics]
            cells += [_number(on_top(m), 0) for m in metrics]
            lines.append([device, f"{value:,}", *cells])
        header = [
            "device",
            title,
            *(f"{name}, ms" for name in names),
            *(f"{name} captured, ms" for name in names),
            *(f"{name} on top, MiB" for name in names),
        ]
        figure = f"![Time and memory of a step against {title}](figures/speed_{axis}.svg)\n"
        blocks.append(f"{figure}\n{markdown(header, lines)}")
    return "\n".join(blocks) or _ABSENT


def _population(records: list[Record]) -> str:
    rows = []
    for record in part(records, "population"):
        m = record.metrics
        times = [_number(m[key]) for key in ("sequential_s", "population_s", "ratio")]
        rows.append([record.device, record.setting, *times, f"{m['brier_difference']:.1e}"])
    header = [
        "device",
        "setting",
        "one after another, s",
        "population, s",
        "ratio",
        "largest difference in Brier",
    ]
    return markdown(header, rows) if rows else _ABSENT


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "speed": ("speed.json", _steps),
    "speed-targets": ("speed.json", _targets),
    "speed-filter": ("speed.json", _filter),
    "speed-growth": ("speed.json", _growth),
    "speed-population": ("speed.json", _population),
}
