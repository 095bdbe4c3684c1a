"""One frame for every benchmark that trains systems: what a row is, how it is trained, swept and read back.

A benchmark brings its rows (`SweepRow`) and what is measured of them (`Benchmark`).
"""

from dssgnn.benchmarks.frame.rows import (
    LISTS,
    Key,
    Rows,
    Runs,
    all_runs,
    by_row,
    config_of_row,
    mean_of,
    mean_run,
    runs_by_row,
    seeds_of,
    shared_seeds,
    spread,
    spread_of,
)
from dssgnn.benchmarks.frame.setup import Setup, first_member, seed_of_run
from dssgnn.benchmarks.frame.sweep import Benchmark, SweepRow, config_of, missing_splits, place_of, sweep
from dssgnn.benchmarks.frame.tasks import nodes_and_direction, split_tasks
from dssgnn.benchmarks.frame.training import Trained, train, train_together
from dssgnn.benchmarks.frame.workers import sweep_in_processes

__all__ = [
    "LISTS", "Benchmark", "Key", "Rows", "Runs", "Setup", "SweepRow", "Trained", "all_runs", "by_row",
    "config_of", "config_of_row", "first_member", "mean_of", "mean_run", "missing_splits", "nodes_and_direction",
    "place_of", "runs_by_row", "seed_of_run", "seeds_of", "shared_seeds", "split_tasks", "spread", "spread_of", "sweep",
    "sweep_in_processes", "train", "train_together",
]  # fmt: skip
