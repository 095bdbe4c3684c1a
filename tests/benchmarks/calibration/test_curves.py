"""Reliability bins, curvature corrections and the sweep over the order: known answers, resuming."""

import math
from dataclasses import replace

import pytest
import torch

from dssgnn import DSSGNN, ChaosExpansion
from dssgnn.baselines import DeepEnsemble
from dssgnn.benchmarks.calibration import curves as curves_module
from dssgnn.benchmarks.calibration import measure
from dssgnn.benchmarks.calibration.curves import (
    BENCHMARK,
    BINS,
    curvature_correction,
    curvature_records,
    curves,
    reliability_bins,
    reliability_records,
    variant_of,
)
from dssgnn.benchmarks.frame import Setup, SweepRow, split_tasks, train
from dssgnn.benchmarks.records import read_records
from dssgnn.errors import InputError
from dssgnn.metrics import calibration_metrics, expected_calibration_error
from dssgnn.training import TrainingConfig

CPU = torch.device("cpu")
CONFIG = TrainingConfig(epochs=8, patience=None, monitor="brier")


pytestmark = pytest.mark.usefixtures("boards")


def setup(chaos_order=1, **options):
    def make(features, classes):
        return DSSGNN(features, 8, classes, chaos_order=chaos_order, dropout=0.3).double()

    return Setup(make, CONFIG, config={"chaos_order": chaos_order}, **options)


def error_of(bins):
    gaps = [abs(c - r) for c, r in zip(bins["confidence"], bins["correct"], strict=True)]
    return sum(gaps) / sum(bins["count"])


def expansion(scale, nodes=50, order=3, classes=4, size=None):
    z = torch.randn(
        nodes, order + 1, classes, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    z[:, 1:] *= scale
    y = torch.randint(classes, (nodes,), generator=torch.Generator().manual_seed(1))
    return ChaosExpansion(z, size), y


def test_bins_hold_every_node_once_and_give_the_calibration_error():
    p = (3 * torch.randn(200, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)).softmax(-1)
    y = torch.randint(3, (200,), generator=torch.Generator().manual_seed(1))
    bins = reliability_bins(p, y)
    assert all(len(values) == BINS for values in bins.values())
    assert sum(bins["count"]) == 200
    assert sum(bins["correct"]) == int((p.argmax(-1) == y).sum())
    assert sum(bins["confidence"]) == pytest.approx(float(p.max(-1).values.sum()), abs=1e-4)
    assert error_of(bins) == pytest.approx(float(expected_calibration_error(p, y, BINS)), abs=1e-6)
    for i, (count, confidence) in enumerate(zip(bins["count"], bins["confidence"], strict=True)):
        assert i / BINS * count <= confidence + 1e-5 <= (i + 1) / BINS * count + 2e-5


def test_reliability_is_of_the_rows_own_systems():
    records = reliability_records(setup(), "board", "dss-gnn", "a", [0, 3], CPU)
    rows = measure(setup(), "board", [0, 3], CPU)
    assert [record.split for record in records] == [0, 3]
    for record, row in zip(records, rows, strict=True):
        assert (record.benchmark, record.setting, record.variant) == (BENCHMARK, "board", "a")
        assert record.metrics["brier"] == pytest.approx(row["brier"], abs=1e-9)
        assert record.metrics["brier_scaled"] == pytest.approx(row["brier_scaled"], abs=1e-9)
        assert record.metrics["temperature"] == row["temperature"] != 1
        for name in ("", "_scaled"):
            bins = record.config["lists"][f"reliability{name}"]
            assert sum(bins["count"]) == 25
            assert sum(bins["correct"]) == round(25 * row["accuracy"])
            assert error_of(bins) == pytest.approx(record.metrics[f"ece15{name}"], abs=1e-6)
        assert record.config["lists"]["reliability"] != record.config["lists"]["reliability_scaled"]


def test_ensembles_have_reliability_too_and_the_seeds_of_all_members():
    (record,) = reliability_records(setup(members=2, combine=DeepEnsemble), "board", "e", "a", [1], CPU)
    assert sum(record.config["lists"]["reliability"]["count"]) == 25
    assert record.config["members"] == len(record.config["seeds"]) == 2


def test_the_correction_is_half_the_trace_of_hessian_and_covariance():
    z, y = expansion(0.7)
    found = curvature_correction(z, y)
    p = z.mean.softmax(-1)
    hessian = torch.diag_embed(p) - p[:, :, None] * p[:, None, :]
    traces = torch.einsum("nij,nji->n", hessian, z.covariance)
    torch.testing.assert_close(found.correction, traces / 2)
    torch.testing.assert_close(found.curvature, hessian.diagonal(dim1=1, dim2=2).sum(-1))
    torch.testing.assert_close(found.energy, z.chaos_energy)
    assert bool(
        (found.correction <= found.energy / 4 + 1e-12).all()
    )  # as the paper says of the cross-entropy


@pytest.mark.parametrize("size", [None, 2])  # too small a rule is not the proposition's, and is not used
def test_the_correction_is_the_loss_gap_to_second_order(size):
    small, y = expansion(1e-3, size=size)
    smaller, _ = expansion(1e-4, size=size)
    remainders = []
    for z in (small, smaller):
        found = curvature_correction(z, y)
        assert bool((found.correction > 0).all())
        remainders.append(float((found.gap - found.correction).abs().max()))
    assert remainders[0] < 1e-7
    assert remainders[1] < remainders[0] / 500  # of third order


def test_what_all_classes_share_needs_no_correction():
    z, y = expansion(1.0, order=2)
    z.coefficients[:, 1:] = z.coefficients[:, 1:, :1] + 1e3
    found = curvature_correction(z, y)
    assert float(found.correction.max()) < 1e-9
    assert float(found.energy.min()) > 1e5


def test_curvature_records_quartiles_and_points(monkeypatch):
    monkeypatch.setattr(curves_module, "POINTS", 12)
    (record,) = curvature_records(setup(2), "board", "dss-gnn", "a", 1, CPU)
    ((task, system, _),) = train(setup(2), split_tasks("board", [1], CPU), [1])
    answer, y = system(task.x, task.graph)[task.test_mask].detach(), task.y[task.test_mask]
    metrics = calibration_metrics(answer, y)
    found = curvature_correction(answer, y)
    assert (record.split, variant_of(record), record.variant) == (1, "a", "a, curvature")
    assert record.metrics["mean_energy"] == pytest.approx(metrics["chaos_energy"])
    assert record.metrics["brier_difference"] == pytest.approx(abs(metrics["brier"] - metrics["brier_mean"]))
    sizes = [7, 6, 6, 6]  # 25 nodes
    for name in ("", "_curvature"):
        for key in ("accuracy", "brier"):
            parts = [record.metrics[f"{key}{name}_q{q}"] * n for q, n in enumerate(sizes, start=1)]
            assert sum(parts) / 25 == pytest.approx(metrics[key])
    largest = found.correction.topk(6).indices
    right = (answer.predictive().argmax(-1) == y)[largest].double().mean()
    assert record.metrics["accuracy_q4"] == pytest.approx(float(right))
    share = found.correction[largest].sum() / found.correction.sum()
    assert record.metrics["share_q4"] == pytest.approx(float(share))
    data = record.config["lists"]["curvature"]
    assert (data["nodes"], data["chaos_order"]) == (25, 2)
    assert all(len(data[key]) == 12 for key in ("curvature", "energy", "correction", "gap"))
    values = [float(f"{value:.4g}") for value in found.correction.tolist()]
    assert set(data["correction"]) <= set(values)
    again = curvature_records(setup(2), "board", "dss-gnn", "a", 1, CPU)
    assert again[0].config == record.config


def test_a_correction_needs_a_chaos_order():
    with pytest.raises(InputError, match=r"board dss-gnn a: .* chaos order"):
        curvature_records(setup(0), "board", "dss-gnn", "a", 0, CPU)
    with pytest.raises(InputError, match="chaos order"):
        curvature_records(setup(members=2, combine=DeepEnsemble), "board", "e", "a", 0, CPU)


def test_a_dead_chaos_axis_gives_finite_numbers():
    def make(features, classes):
        model = DSSGNN(features, 8, classes, chaos_order=1).double()
        with torch.no_grad():
            model.lift.weight[1:] = 0
        return model

    dead = replace(setup(), make=make, training=replace(CONFIG, lr=1e-12))
    (record,) = curvature_records(dead, "board", "dss-gnn", "a", 0, CPU)
    assert all(math.isfinite(value) for value in record.metrics.values())
    assert record.metrics["mean_correction"] < 1e-9


def test_curves_go_on_where_they_were(tmp_path, monkeypatch):
    out, said, calls = tmp_path / "curves.json", [], []

    def counted(given, tasks, splits):
        calls.append(tuple(splits))
        return train(given, tasks, splits)

    monkeypatch.setattr(curves_module, "train", counted)
    rows = [SweepRow("board", "dss-gnn", "a", setup)]
    curves(rows, "reliability", [0, 1], out, CPU, said.append)
    for _ in range(2):
        curves(rows, "reliability", [0, 1, 2], out, CPU, said.append)
        curves(rows, "curvature", [0, 1, 2], out, CPU, said.append)
    assert calls == [(0, 1), (2,), (0,)]
    assert {(r.variant, r.split) for r in read_records(out)} == {
        ("a", 0),
        ("a", 1),
        ("a", 2),
        ("a, curvature", 0),
    }
    other = replace(setup(), training=replace(CONFIG, lr=0.02))
    curves([SweepRow("board", "dss-gnn", "a", lambda: other)], "curvature", [0], out, CPU)
    assert calls[-1] == (0,)
    assert len(calls) == 4  # another configuration is not the same row
    assert said[0] == "board dss-gnn a: reliability of 2 splits"


def test_a_row_that_does_not_fit_is_left_out_and_an_unknown_kind_refused(tmp_path):
    def make(features, classes):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried everything.")

    said = []
    large = replace(setup(), make=make)
    rows = [
        SweepRow("board", "dss-gnn", "a", lambda: large),
        SweepRow("board", "dss-gnn", "b", setup),
    ]
    curves(rows, "curvature", [0], tmp_path / "c.json", CPU, said.append)
    assert said[0] == "board dss-gnn a: left out, CUDA out of memory"
    assert [r.variant for r in read_records(tmp_path / "c.json")] == ["b, curvature"]
    with pytest.raises(InputError, match="kind must be one of 'reliability', 'curvature'"):
        curves([SweepRow("board", "dss-gnn", "a", setup)], "roc", [0], tmp_path / "c.json", CPU)
