"""The reference that speed is measured against computes the same thing; records survive their file."""

import json

import pytest
import torch

from dssgnn import DSSGNN, GraphOperator
from dssgnn.benchmarks import speed
from dssgnn.benchmarks.published import published_forward
from dssgnn.benchmarks.records import Record, merge_records, read_records
from dssgnn.errors import InputError
from dssgnn.training import seeded


@pytest.mark.parametrize("order", [0, 2, 3])
@pytest.mark.parametrize("readout", ["filtered", "linear"])
def test_published_order_equals_ours(order, readout):
    x, edges, y = speed.Shape(40, 90, 6, 3).draw()
    operator = GraphOperator.from_edge_index(edges, 40, dtype=torch.float64)
    with seeded(0):
        model = DSSGNN(
            6, 8, 3, chaos_order=order, filter_orders=(3, 2), readout=readout, dropout=0.0
        ).double()
    gradients = []
    for forward in (lambda m, a, b: m(a, b), published_forward):
        model.zero_grad()
        expansion = forward(model, x.double(), operator)
        torch.nn.functional.cross_entropy(expansion.mean, y).backward()
        gradients.append([expansion.coefficients, *(p.grad for p in model.parameters())])
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-12, rtol=0)


def kept_bytes(nodes, degree, forward):
    x, edges, _ = speed.Shape(nodes, 2 * nodes, 6, 3).draw()
    operator = GraphOperator.from_edge_index(edges, nodes)
    with seeded(0):
        model = DSSGNN(6, 8, 3, filter_orders=(degree, degree), readout="filtered", dropout=0.0)
    return speed.saved_bytes(lambda: forward(model, x, operator))


def test_memory_kept_does_not_grow_with_the_degree():
    """Only the coefficients grow, and they do not know the number of nodes; the published order's tape does."""
    ours = speed.FORWARDS["ours"]
    growth = [kept_bytes(n, 16, ours) - kept_bytes(n, 2, ours) for n in (60, 600)]
    assert growth[0] == growth[1] < 1000
    assert kept_bytes(600, 16, published_forward) > 3 * kept_bytes(600, 2, published_forward)


def test_run_yields_both_variants():
    speed.SHAPES["tiny"] = speed.Shape(30, 50, 5, 3)
    try:
        records = list(speed.run(("tiny",), (0, 1), repeats=1))
    finally:
        del speed.SHAPES["tiny"]
    assert [r.variant for r in records] == ["ours", "published"] * 2
    assert all(r.metrics["step_ms"] > 0 for r in records)


def record(value, variant="ours"):
    return Record("speed", "s", "dss-gnn", variant, {"step_ms": value}, {}, "cpu", seed=0)


def test_records_replace_their_own_kind(tmp_path):
    path = tmp_path / "deep" / "speed.json"
    merge_records(path, [record(1.0), record(5.0, "published")])
    merge_records(path, [record(2.0)])
    assert {r.variant: r.metrics["step_ms"] for r in read_records(path)} == {"ours": 2.0, "published": 5.0}
    assert json.loads(path.read_text())["schema"] == 1
    assert [p.name for p in path.parent.iterdir()] == ["speed.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": 9, "records": []}', '{"schema": 1, "records": [{}]}']
)
def test_bad_results_file(tmp_path, text):
    path = tmp_path / "speed.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"speed\.json"):
        read_records(path)
