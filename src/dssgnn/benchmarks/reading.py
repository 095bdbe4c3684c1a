"""How long a large folder of tables takes to be read and checked, and how much memory.

``dssgnn bench reading`` writes such folders to a temporary place and records the figures.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from dssgnn.benchmarks.records import Record, device_name

__all__ = ["records", "write_folder"]

# Reading happens in a process of its own, so that its peak memory is that of the reading alone.
_READ = """
import json, resource, sys, time
from dssgnn.data.own.exchange import read_graph
unit = 1 if sys.platform == "darwin" else 1024
imported = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
start = time.perf_counter()
report = read_graph(sys.argv[1]).report
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
print(json.dumps({"seconds": seconds, "peak_mb": peak / 1e6, "imports_mb": imported / 1e6,
                  "nodes": report.num_nodes, "edges": report.num_edges, "features": report.num_features}))
"""


def write_folder(
    folder: Path, kind: str, *, num_nodes: int, num_edges: int, num_features: int, seed: int = 0
) -> None:
    """Write ``nodes`` and ``edges`` as ``kind`` (csv or parquet): text ids, every fifth column categories."""
    rng = np.random.default_rng(seed)
    ids = np.char.add("node-", np.arange(num_nodes).astype(str))
    parts = np.array(["train", "val", "test", ""])
    columns: dict[str, Any] = {
        "id": ids,
        "label": np.char.add("class ", rng.integers(0, 10, num_nodes).astype(str)),
        "split": parts[rng.integers(0, 4, num_nodes)],
    }
    for i in range(num_features):
        words = np.array(["red", "green", "blue", "black"])
        columns[f"f{i}"] = (
            words[rng.integers(0, 4, num_nodes)] if i % 5 == 4 else rng.standard_normal(num_nodes)
        )
    edges = {
        "source": ids[rng.integers(0, num_nodes, num_edges)],
        "target": ids[rng.integers(0, num_nodes, num_edges)],
        "weight": rng.random(num_edges),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in {"nodes": pd.DataFrame(columns), "edges": pd.DataFrame(edges)}.items():
        path = folder / f"{name}.{kind}"
        table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path, index=False)


def records(num_nodes: int = 100_000, num_edges: int = 1_000_000, num_features: int = 20) -> list[Record]:
    """Write such tables as CSV and as Parquet, read each in a fresh process, and record what it took.

    Metrics: ``seconds`` (reading and checking, imports aside), ``peak_mb`` (of the whole process) and
    ``imports_mb`` (of which before reading).
    """
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("csv", "parquet"):
            place = Path(folder) / kind
            write_folder(place, kind, num_nodes=num_nodes, num_edges=num_edges, num_features=num_features)
            command = [sys.executable, "-c", _READ, str(place)]
            result = subprocess.run(command, check=True, capture_output=True, text=True)
            made.append(
                Record(
                    benchmark="reading",
                    setting=f"{num_nodes:,} nodes, {num_edges:,} edges, {num_features} columns",
                    method="read_graph",
                    variant=kind,
                    metrics=json.loads(result.stdout),
                    config={"nodes": num_nodes, "edges": num_edges, "columns": num_features},
                    device=device_name(torch.device("cpu")),
                    seed=0,
                )
            )
    return made
