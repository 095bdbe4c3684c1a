"""The tables of ``docs/``, by name: the results file that each is made from, and how."""

from collections.abc import Callable

from dssgnn.benchmarks.calibration.tables import (
    ablations,
    chaos,
    chosen,
    norms,
    pairs,
    systems,
    targets,
    timing,
)  # fmt: skip
from dssgnn.benchmarks.records import Record

__all__ = ["TABLES"]

TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    name: table
    for room in (targets, systems, pairs, chosen, timing, ablations, chaos, norms)
    for name, table in room.TABLES.items()
}
