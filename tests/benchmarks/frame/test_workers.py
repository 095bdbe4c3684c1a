"""Sweeps in several processes: rows of one search stay together, and nobody overwrites another's records."""

import os
import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from dssgnn.benchmarks.calibration import CALIBRATION
from dssgnn.benchmarks.calibration.plan import ablation_rows, asked_systems, rows_of
from dssgnn.benchmarks.calibration.search import searched_row
from dssgnn.benchmarks.frame import SweepRow
from dssgnn.benchmarks.frame import workers as module
from dssgnn.benchmarks.records import read_records
from dssgnn.errors import InputError

CPU = torch.device("cpu")

WRITER = """
import sys
from dssgnn.benchmarks.records import Record, merge_records
for i in range(15):
    merge_records(sys.argv[1], [Record("b", "s", sys.argv[2], str(i), {"a": 1.0}, {}, "cpu")])
"""


def test_processes_add_to_one_file(tmp_path):
    out = tmp_path / "results.json"
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(out), name]) for name in "xy"]
    assert [process.wait(120) for process in running] == [0, 0]
    assert {(r.method, r.variant) for r in read_records(out)} == {
        (m, str(i)) for m in "xy" for i in range(15)
    }
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]


def _threads(workers, context, initializer, arguments):
    return ThreadPoolExecutor(workers)


def test_rows_of_one_search_stay_together(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(module, "ProcessPoolExecutor", _threads)
    monkeypatch.setattr(module, "sweep", lambda benchmark, rows, *others: seen.append([r[:3] for r in rows]))
    names = [
        ("dss-gnn", "best"), ("gcn", "paper"), ("dss-gnn", "twin-p0"), ("dss-gnn", "best-p0"), ("gat", "paper"),
        ("dss-gnn", "twin-p0-penalty"), ("gcn-res", "tuned"),
    ]  # fmt: skip
    rows = rows_of(["cora", "texas"], names, tmp_path / "search.json", CPU, print)
    module.sweep_in_processes(CALIBRATION, rows, [0], tmp_path / "c.json", CPU, print, workers=3)
    assert sorted(map(len, seen)) == [1] * 8 + [3] * 2
    for group in seen:
        assert len({row[0] for row in group}) == 1
        assert len({searched_row(row[1:]) for row in group}) == 1
    assert ("gcn-res", "tuned") in {
        row[1:] for group in seen[:6] for row in group
    }  # searches are begun first
    assert sorted(row for group in seen for row in group) == sorted(row[:3] for row in rows)


def test_what_fails_in_a_process_is_said(tmp_path, monkeypatch):
    def fails(benchmark, rows, *others):
        raise InputError("no such split")

    monkeypatch.setattr(module, "ProcessPoolExecutor", _threads)
    monkeypatch.setattr(module, "sweep", fails)
    rows = [SweepRow("cora", "gcn", "paper", None)]
    with pytest.raises(InputError, match="no such split"):
        module.sweep_in_processes(CALIBRATION, rows, [0], tmp_path / "c.json", CPU, print)


ORPHAN = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from dssgnn.benchmarks.frame.workers import _begin
if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, get_context("spawn"), _begin, (os.getpid(), 1))
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 60)
    time.sleep(60)
"""


def test_workers_end_with_their_parent(tmp_path):
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        worker = int(parent.stdout.readline())
        parent.kill()
    for _ in range(100):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            break
        if Path(f"/proc/{worker}/stat").exists() and " Z " in Path(f"/proc/{worker}/stat").read_text():
            break  # ended, and nobody has asked after it
        time.sleep(0.1)
    else:
        pytest.fail(f"worker {worker} goes on without its parent")


def test_every_row_can_be_sent_to_a_process(tmp_path):
    rows = rows_of(["texas"], asked_systems("all", "all"), tmp_path / "search.json", CPU, print)
    rows += ablation_rows("all", "published", ["texas"]) + ablation_rows("all", "paper", ["cora"])
    again = pickle.loads(pickle.dumps((CALIBRATION, rows)))  # as a pool does
    assert [row[:3] for row in again[1]] == [row[:3] for row in rows]
