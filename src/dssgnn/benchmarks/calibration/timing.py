"""What a whole row of the table takes, from the start of the sweep to its end."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from dssgnn.benchmarks.calibration.frame import place_of
from dssgnn.benchmarks.calibration.rows import ABSENT, by_row, mean_of
from dssgnn.benchmarks.calibration.setup import Setup
from dssgnn.benchmarks.markdown import markdown
from dssgnn.benchmarks.records import Record, merge_records, read_records
from dssgnn.errors import InputError

__all__ = ["REPEATED", "TABLES", "TIMING", "timed_sweep"]

TIMING, REPEATED = "calibration-time", "calibration-repeated"


def timed_sweep(
    measure: Callable[..., None],
    rows: Sequence[tuple[str, str, str, Callable[[], Setup]]],
    splits: Sequence[int],
    out: Path,
    device: torch.device,
    say: Callable[[str], None],
    workers: int = 1,
) -> None:
    """Run one system's rows, whatever is on record of them, and record the time on the clock, all included.

    They are kept as repetitions, beside the rows of the tables. A search that is not on record is run, and counts.
    """
    (system,) = {row[1:3] for row in rows}
    place = place_of(device)
    if _repetitions(out, system, place):
        raise InputError(f"{out} has a timed run of {' '.join(system)} on this device; give another --out")
    start = time.perf_counter()
    measure(rows, splits, out, device, say, benchmark=REPEATED)
    seconds = time.perf_counter() - start
    done = sorted({record.setting for record in _repetitions(out, system, place)})
    config = {"datasets": done, "splits": list(splits), "workers": workers}
    metrics = {"seconds": seconds, "graphs": float(len(done))}
    merge_records(out, [Record(TIMING, "all", *system, metrics, config, place)])
    say(f"{' '.join(system)} on {len(done)} graphs: {seconds:.0f} s")


def _repetitions(out: Path, system: tuple[str, str], place: str) -> list[Record]:
    found = read_records(out) if out.exists() else []
    return [r for r in found if (r.benchmark, r.method, r.variant, r.device) == (REPEATED, *system, place)]


def _table(records: list[Record]) -> str:
    """One line a system that was timed."""
    lines = [
        [
            r.method, r.variant, f"{r.metrics['graphs']:.0f}", str(len(r.config["splits"])), str(r.config["workers"]),
            r.device, f"{r.metrics['seconds']:.0f}",
        ]
        for r in records
        if r.benchmark == TIMING
    ]  # fmt: skip
    header = ["system", "variant", "graphs", "splits", "processes", "device", "seconds"]
    return markdown(header, sorted(lines)) if lines else ABSENT


def _repeated(records: list[Record]) -> str:
    """Rows beside what they scored when they were run once more, with the same seeds on the same device."""
    again, lines = by_row(records, REPEATED, seed=0), []
    for key, first in by_row(records, seed=0).items():
        if key in again:
            scores = [mean_of(splits, "brier") for splits in (first, again[key])]
            lines.append([*key, *(f"{score:.4f}" for score in scores), f"{scores[1] - scores[0]:+.4f}"])
    header = ["dataset", "system", "variant", "Brier", "once more", "difference"]
    return markdown(header, lines) if lines else ABSENT


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "calibration-repeated": ("calibration.json", _repeated),
    "calibration-time": ("calibration.json", _table),
}
