"""How long a large folder of tables takes to be read and checked, and how much memory.

``python -m dssgnn.benchmarks.tables`` writes such folders to a temporary place and prints the figures.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["run", "write_folder"]

# Reading happens in a process of its own, so that its peak memory is that of the reading alone.
_READ = """
import json, resource, sys, time
from dssgnn.data.exchange import read_graph
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


def run(
    folder: str | Path | None = None,
    num_nodes: int = 100_000,
    num_edges: int = 1_000_000,
    num_features: int = 20,
) -> dict[str, dict[str, float]]:
    """Write the tables as CSV and as Parquet, read each in a fresh process, and return what it took.

    Args:
        folder: where the tables are written and left; None takes a temporary folder that is removed.
        num_nodes, num_edges, num_features: the size of the graph; ``num_features`` counts columns.

    Returns:
        For ``"csv"`` and ``"parquet"``: ``seconds`` (reading and checking, imports aside), ``peak_mb``
        (of the whole process), ``imports_mb`` (of which before reading), ``nodes``, ``edges``, ``features``.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return run(temporary, num_nodes, num_edges, num_features)
    results = {}
    for kind in ("csv", "parquet"):
        place = Path(folder) / kind
        write_folder(place, kind, num_nodes=num_nodes, num_edges=num_edges, num_features=num_features)
        command = [sys.executable, "-c", _READ, str(place)]
        results[kind] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return results


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
