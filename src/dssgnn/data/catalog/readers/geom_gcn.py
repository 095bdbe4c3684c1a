"""geom-gcn text files: WebKB, Chameleon and Squirrel, with their ten published splits."""

import re
from collections.abc import Mapping

import numpy as np

from dssgnn.data.catalog.readers.base import (
    RawFile,
    RawGraph,
    csr_from_coordinates,
    make_graph,
    npz_arrays,
    stack_masks,
)
from dssgnn.errors import InputError

__all__ = ["read_geom_gcn"]

# At most 18 digits: what fits an int64.
_NODE = re.compile(rb"(\d{1,18})\t([01](?:,[01])*)\t(\d{1,18})\s*")
_EDGE = re.compile(rb"(\d{1,18})\t(\d{1,18})\s*")


def _rows(file: RawFile, pattern: re.Pattern[bytes], expected: str) -> list[tuple[bytes, ...]]:
    """Return the matched groups of every line but the header."""
    rows = []
    for number, line in enumerate(file.content.splitlines()[1:], start=2):
        match = pattern.fullmatch(line)
        if match is None:
            shown = line[:40].decode("utf-8", "replace")
            raise InputError(f"{file.path}: line {number} is {shown!r}, expected {expected}")
        rows.append(match.groups())
    return rows


def read_geom_gcn(files: Mapping[str, RawFile]) -> RawGraph:
    """Read ``nodes`` (id, 0/1 features, label), ``edges`` and any ``split_0``..``split_9``; nodes sorted by id."""
    path = files["nodes"].path
    rows = _rows(files["nodes"], _NODE, "an id, 0/1 features between commas and a label, between tabs")
    ids = np.array([row[0] for row in rows], dtype=np.int64)
    order = np.argsort(ids)
    if not rows or not np.array_equal(ids[order], np.arange(len(ids))):
        raise InputError(f"{path}: node ids must be 0..{max(len(ids) - 1, 0)}, each once")
    # Every value is one digit, so digits stand at even and commas at odd positions.
    lines = [np.frombuffer(row[1], dtype=np.uint8)[::2] for row in rows]
    for number, line in enumerate(lines, start=2):
        if len(line) != len(lines[0]):
            raise InputError(f"{path}: line {number} has {len(line)} features, expected {len(lines[0])}")
    node, column = (np.stack(lines)[order] == ord("1")).nonzero()
    features = csr_from_coordinates(node, column, np.ones(len(node)), (len(lines), len(lines[0])))
    labels = np.array([row[2] for row in rows], dtype=np.int64)[order]
    pairs = _rows(files["edges"], _EDGE, "two node numbers between a tab")
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    keys = ("train_mask", "val_mask", "test_mask")
    splits = [npz_arrays(files[f"split_{i}"], keys) for i in range(10) if f"split_{i}" in files]
    for split in splits:
        if any(mask.shape != labels.shape for mask in split.values()):
            raise InputError(
                f"{path.parent}: a split file does not fit the {len(labels)} nodes of {path.name}"
            )
    return make_graph(files["edges"].path, features, edges, labels, stack_masks(splits))
