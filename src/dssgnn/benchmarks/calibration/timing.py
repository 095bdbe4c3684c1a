"""What a whole row of the table takes, from the start of the sweep to its end."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from dssgnn.benchmarks.calibration.measuring import CALIBRATION
from dssgnn.benchmarks.frame import SweepRow, place_of
from dssgnn.benchmarks.records import Record, merge_records, read_records
from dssgnn.errors import InputError

__all__ = ["REPEATED", "TIMING", "timed_sweep"]

TIMING, REPEATED = "calibration-time", "calibration-repeated"


def timed_sweep(
    run: Callable[..., None],
    rows: Sequence[SweepRow],
    splits: Sequence[int],
    out: Path,
    device: torch.device,
    say: Callable[[str], None],
    workers: int = 1,
) -> None:
    """Run one system's rows, whatever is on record of them, and record the time on the clock, all included.

    They are kept as repetitions, beside the rows of the tables. A search that is not on record is run, and counts.
    """
    (system,) = {(row.method, row.variant) for row in rows}
    place = place_of(device)
    if _repetitions(out, system, place):
        raise InputError(f"{out} has a timed run of {' '.join(system)} on this device; give another --out")
    start = time.perf_counter()
    run(replace(CALIBRATION, name=REPEATED), rows, splits, out, device, say)
    seconds = time.perf_counter() - start
    done = sorted({record.setting for record in _repetitions(out, system, place)})
    config = {"datasets": done, "splits": list(splits), "workers": workers}
    metrics = {"seconds": seconds, "graphs": float(len(done))}
    merge_records(out, [Record(TIMING, "all", *system, metrics, config, place)])
    say(f"{' '.join(system)} on {len(done)} graphs: {seconds:.0f} s")


def _repetitions(out: Path, system: tuple[str, str], place: str) -> list[Record]:
    found = read_records(out) if out.exists() else []
    return [r for r in found if (r.benchmark, r.method, r.variant, r.device) == (REPEATED, *system, place)]
