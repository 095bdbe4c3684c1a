"""The sweep over the order has known answers; figures are drawn of what is there, and twice the same."""

import pytest

from dssgnn.benchmarks.calibration.curves import BENCHMARK, BINS
from dssgnn.benchmarks.calibration.tables import figures
from dssgnn.benchmarks.calibration.tables.figures import draw
from dssgnn.benchmarks.calibration.tables.orders import Order, measured_sweeps, printed_sweep
from dssgnn.benchmarks.records import Record, merge_records

H200 = "NVIDIA H200"


def swept(order, brier, split=0, kind="", dataset="cora", val=None, device=H200):
    metrics = {"brier": brier, "brier_mean": 2 * brier, "val_brier": brier if val is None else val}
    variant = f"published, P={order}{kind}"
    return Record("calibration-ablation", dataset, "dss-gnn", variant, metrics, {}, device, split, 0)


def bins(split, method="dss-gnn", variant="best", dataset="cora", device=H200):
    part = {
        "count": [20] * BINS,
        "confidence": [20 * (i + 0.5) / BINS for i in range(BINS)],
        "correct": [9] * BINS,
    }
    metrics = {"ece15": 0.25, "ece15_scaled": 0.125}
    config = {"lists": {"reliability": part, "reliability_scaled": part}}
    return Record(BENCHMARK, dataset, method, variant, metrics, config, device, split, 0)


def corrected(variant="best", scale=1.0):
    values = [scale * (i + 1) / 40 for i in range(20)]
    config = {"curvature": values, "energy": values, "correction": [v / 8 for v in values], "gap": values}
    metrics = {"mean_energy": 0.3, "mean_correction": 0.03, "mean_gap": 0.02}
    for q in range(1, 5):
        for name in ("", "_curvature"):
            metrics |= {f"accuracy{name}_q{q}": 1 - q / 10, f"brier{name}_q{q}": q / 10}
    config = {"lists": {"curvature": config | {"chaos_order": 2, "quadrature_size": 4, "nodes": 20}}}
    return Record(BENCHMARK, "minesweeper", "dss-gnn", f"{variant}, curvature", metrics, config, H200, 0, 0)


@pytest.fixture
def folder(tmp_path):
    curves = [bins(s, *row) for s in (0, 1) for row in (("dss-gnn", "best"), ("gcn", "paper"))]
    curves += [bins(0, "deep-ensemble", "paper", "texas"), corrected(), corrected("published", 1e-9)]
    merge_records(tmp_path / "calibration_curves.json", curves)
    sweep = [
        swept(p, 0.2 - p / 100, s, kind) for p in range(4) for s in (0, 1) for kind in ("", ", predictive")
    ]
    merge_records(tmp_path / "calibration.json", sweep)
    return tmp_path


def test_a_sweep_is_relative_to_order_zero_on_the_same_splits():
    records = [swept(0, 0.2), swept(0, 0.4, 1), swept(1, 0.1), swept(1, 0.2, 1), swept(2, 0.2, 1, val=0.1)]
    records += [swept(2, 9.0, 2), swept(0, 0.5, kind=", penalty"), swept(1, 0.5, dataset="texas")]
    assert measured_sweeps(records) == {
        "published": {"cora": {0: Order(1, 1), 1: Order(0.5, 0.5), 2: Order(0.5, 0.25)}}
    }


def test_every_series_has_the_readout_it_was_trained_by():
    kinds = ("", ", S=4", ", predictive")
    records = [swept(p, 0.2, kind=kind) for p in (0, 1) for kind in kinds]
    for record in records[3:]:
        record.metrics["brier"], record.metrics["brier_mean"] = 0.1, 0.1
    sweeps = measured_sweeps(records)
    assert list(sweeps) == ["published", "published, S > P", "published, predictive loss"]
    assert [sweep["cora"][1].test for sweep in sweeps.values()] == [0.25, 0.25, 0.5]


def test_orders_below_four_need_no_larger_rule():
    records = [swept(p, b) for p, b in ((0, 0.4), (3, 0.2), (4, 0.4))] + [swept(4, 0.1, kind=", S=5")]
    sweeps = measured_sweeps(records)
    assert {p: order.test for p, order in sweeps["published"]["cora"].items()} == {0: 1, 3: 0.5, 4: 1}
    assert {p: order.test for p, order in sweeps["published, S > P"]["cora"].items()} == {
        0: 1,
        3: 0.5,
        4: 0.25,
    }


def test_the_printed_sweep_is_tab_p_brier():
    printed = printed_sweep()
    assert printed["minesweeper"][6] == Order(0.169 / 0.190)
    assert printed["citeseer"][2] == Order(0.308 / 0.427)
    assert all(list(orders) == [0, 1, 2, 3, 4, 5, 6, 8] for orders in printed.values())


def test_bins_of_splits_are_added():
    first = {"count": [4, 0], "confidence": [1.0, 0.0], "correct": [1, 0]}
    second = {"count": [12, 9], "confidence": [7.0, 8.0], "correct": [7, 9]}
    assert figures._pooled([first, second]) == ([0.5], [0.5])  # nine nodes are not drawn


def test_the_same_records_give_the_same_bytes(folder, tmp_path):
    pytest.importorskip("matplotlib")
    names = {"calibration_reliability.svg", "calibration_order.svg", "calibration_curvature_minesweeper.svg"}
    once, twice = tmp_path / "once", tmp_path / "twice"
    assert {path.name for path in draw(folder, once)} == names
    draw(folder, twice)
    for name in names:
        content = (once / name).read_bytes()
        assert content == (twice / name).read_bytes()
        assert b"20" + b"26-" not in content  # no date
        assert len(content) < 200_000
    assert draw(folder, once) == []  # nothing has changed
    reliability = (once / "calibration_reliability.svg").read_text()
    for text in (">DSS-GNN, best<", ">GCN, temperature<", ">deep ensemble<", ">0.125<", ">texas<"):
        assert text in reliability
    curvature = (once / "calibration_curvature_minesweeper.svg").read_text()
    assert "dss-gnn published, P = 2, split 0" in curvature
    assert curvature.count(">by curvature alone<") == 2


def test_what_was_printed_is_drawn_beside(folder, monkeypatch):
    pytest.importorskip("matplotlib")
    for printed in ({}, {"cora": {0: Order(1), 1: Order(0.5)}, "questions": {0: Order(1), 1: Order(0.5)}}):
        monkeypatch.setattr(figures, "printed_sweep", lambda printed=printed: printed)
        draw(folder, folder)
        text = (folder / "calibration_order.svg").read_text()
        assert (">printed<" in text) == (">as printed<" in text) == bool(printed)
        assert ">questions<" not in text
        assert ">ours: published, predictive loss<" in text


def test_a_dead_chaos_axis_is_said(tmp_path):
    pytest.importorskip("matplotlib")
    merge_records(tmp_path / "calibration_curves.json", [corrected("published", 0.0)])
    (path,) = draw(tmp_path, tmp_path)
    assert ">no chaos energy<" in path.read_text()


def test_missing_data_draws_nothing(tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "figures"
    assert draw(tmp_path, out) == []
    merge_records(tmp_path / "calibration_curves.json", [bins(0, "gat", "paper")])
    merge_records(
        tmp_path / "calibration.json", [swept(0, 0.2), swept(1, 0.2, split=1)]
    )  # no split in common
    assert draw(tmp_path, out) == []
    assert not out.exists()


def test_means_are_drawn_where_two_devices_ran(tmp_path):
    records = [swept(0, 0.2), swept(1, 0.1), swept(1, 0.4, device="cpu, 1 threads")]
    merge_records(tmp_path / "calibration.json", records)
    kept = figures._records(tmp_path / "calibration.json", "calibration-ablation")
    assert measured_sweeps(kept)["published"]["cora"][1].test == 1.25
