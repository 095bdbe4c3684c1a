"""Documentation tables, rendered from ``results/`` between two markers of a Markdown file.

A file in ``docs/`` holds ``<!-- table: NAME -->`` and ``<!-- end table -->``; `render` writes what lies between.
"""

import re
import statistics
from collections.abc import Callable
from pathlib import Path

from dssgnn.benchmarks.calibration.tables import TABLES as CALIBRATION_TABLES
from dssgnn.benchmarks.markdown import ABSENT, markdown
from dssgnn.benchmarks.records import Record, read_records
from dssgnn.benchmarks.speed.tables import TABLES as SPEED_TABLES
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
        return (
            match[1]
            + (make(read_records(results / file)) if (results / file).exists() else ABSENT)
            + match[3]
        )

    return _BLOCK.sub(table, text)


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
    **SPEED_TABLES,
    **CALIBRATION_TABLES,
    "defaults": ("calibration.json", _defaults),
    "reading": ("reading.json", _reading),
}
