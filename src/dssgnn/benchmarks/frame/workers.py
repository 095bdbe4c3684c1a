"""A sweep in several processes: one GPU serves many small graphs at once, and every core its own."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import torch

from dssgnn.benchmarks.frame.sweep import Benchmark, SweepRow, sweep

__all__ = ["sweep_in_processes"]


def sweep_in_processes(
    benchmark: Benchmark,
    rows: Sequence[SweepRow],
    splits: Sequence[int],
    out: Path,
    device: torch.device,
    say: Callable[[str], None],
    seeds: int = 1,
    workers: int = 2,
) -> None:
    """`sweep`, each row in one of ``workers`` processes; rows of one group stay together.

    On one GPU the processes share its time; NVIDIA's MPS, where it runs, lets them use it at the same moment.
    """
    groups: dict[object, list[SweepRow]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(i if row.group is None else (row.group,), []).append(row)
    threads = max(1, (os.cpu_count() or 1) // workers)
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (os.getpid(), threads))
    with pool:
        jobs = [
            pool.submit(sweep, benchmark, groups[key], splits, out, device, say, seeds)
            for key in sorted(groups, key=lambda key: isinstance(key, int))  # groups first: they take longest
        ]
        try:
            for job in as_completed(jobs):
                job.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # what runs ends its rows, and they are kept
            raise


def _begin(parent: int, threads: int) -> None:
    """What a worker does first; it ends with its parent, also when that was killed."""
    torch.set_num_threads(threads)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)  # records are written whole or not at all

    threading.Thread(target=watch, daemon=True).start()
