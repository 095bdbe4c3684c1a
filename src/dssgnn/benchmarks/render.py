"""Documentation tables, rendered from ``results/`` between two markers of a Markdown file.

A file in ``docs/`` holds ``<!-- table: NAME -->`` and ``<!-- end table -->``; `render` writes what lies between.
"""

import re
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path

from dssgnn.benchmarks.records import Record, read_records
from dssgnn.errors import InputError
from dssgnn.files import atomic_path

__all__ = ["TABLES", "render", "rendered"]

_BLOCK = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end table -->)", re.DOTALL)


def render(docs: Path, results: Path) -> list[Path]:
    """Write every table anew; returns the files that changed."""
    changed = []
    for path in sorted(docs.glob("*.md")):
        old = path.read_text(encoding="utf-8")
        new = rendered(old, results)
        if new != old:
            with atomic_path(path) as temporary:
                temporary.write_text(new, encoding="utf-8")
            changed.append(path)
    return changed


def rendered(text: str, results: Path) -> str:
    """The text of a document with its tables made from the records in ``results``."""

    def table(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in TABLES:
            raise InputError(f"no table is called {name!r}; known are {', '.join(TABLES)}")
        file, make = TABLES[name]
        return match[1] + make(read_records(results / file)) + match[3]

    return _BLOCK.sub(table, text)


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    lines = [list(header), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _speed(records: list[Record]) -> str:
    pairs: dict[tuple[str, str], dict[str, Record]] = {}
    for record in records:
        pairs.setdefault((record.device, record.setting), {})[record.variant] = record
    rows = []
    for (device, setting), pair in pairs.items():
        ours, theirs = pair["ours"].metrics, pair["published"].metrics
        rows.append(
            [
                device,
                setting,
                f"{theirs['step_ms']:.1f}",
                f"{ours['step_ms']:.1f}",
                f"{theirs['step_ms'] / ours['step_ms']:.2f}",
                f"{theirs['saved_mib']:.0f}",
                f"{ours['saved_mib']:.0f}",
            ]
        )
    header = [
        "device",
        "setting",
        "published, ms",
        "ours, ms",
        "ratio",
        "published, MiB kept",
        "ours, MiB kept",
    ]
    return markdown(header, rows)


def _reading(records: list[Record]) -> str:
    rows = [
        [r.variant, r.setting, f"{r.metrics['seconds']:.2f}", f"{r.metrics['peak_mb']:.0f}"] for r in records
    ]
    return markdown(["tables as", "size", "seconds", "peak memory, MB"], rows)


def _defaults(records: list[Record]) -> str:
    cells: dict[str, dict[str, dict[int | None, float]]] = {}
    for record in records:
        if record.variant == "default":
            cells.setdefault(record.setting, {}).setdefault(record.method, {})[record.split] = record.metrics[
                "brier"
            ]
    methods = sorted({method for row in cells.values() for method in row})
    rows = []
    for setting, row in sorted(cells.items()):
        figures = [
            f"{statistics.fmean(v.values()):.4f} ± {statistics.pstdev(v.values()):.4f}"
            for v in (row[method] for method in methods)
        ]
        rows.append([setting, ", ".join(str(s) for s in sorted(row[methods[0]], key=str)), *figures])
    return markdown(["dataset", "splits", *methods], rows)


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "speed": ("speed.json", _speed),
    "defaults": ("calibration.json", _defaults),
    "reading": ("reading.json", _reading),
}
