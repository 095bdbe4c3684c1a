"""A sweep: what it resumes, leaves out and repeats."""

import functools
from dataclasses import replace

import pytest
import torch

from dssgnn.benchmarks.calibration import CALIBRATION
from dssgnn.benchmarks.calibration import measuring as measure_module
from dssgnn.benchmarks.frame import Benchmark, SweepRow, split_tasks, sweep, train
from dssgnn.benchmarks.records import merge_records, read_records
from dssgnn.errors import InputError
from small_rows import CONFIG, CPU, setup

pytestmark = pytest.mark.usefixtures("boards")


def test_a_sweep_goes_on_where_it_was(tmp_path):
    out = tmp_path / "calibration.json"
    calls = []

    def counted(given, name, splits, device):
        calls.append((name, tuple(splits)))
        return CALIBRATION.measure(given, name, splits, device)

    go = functools.partial(sweep, replace(CALIBRATION, measure=counted))
    rows = [SweepRow("board", "dss-gnn", name, setup) for name in "ab"]
    go(rows[:1], [0, 1], out, CPU)
    go(rows, [0, 1, 2], out, CPU)
    assert calls == [("board", (0, 1)), ("board", (2,)), ("board", (0, 1, 2))]
    records = read_records(out)
    assert {(r.variant, r.split) for r in records} == {(v, s) for v in "ab" for s in range(3)}
    assert all(r.selected_on == "validation brier" and 0 <= r.metrics["brier"] <= 2 for r in records)
    assert records[0].config["training"]["epochs"] == 8
    assert [r.config["seeds"] for r in records if r.variant == "a"] == [[42], [43], [44]]
    other = [SweepRow("board", "dss-gnn", "a", lambda: replace(setup(), training=replace(CONFIG, lr=0.02)))]
    go(other, [0], out, CPU)  # another configuration is not the same row
    assert calls[3:] == [("board", (0,))]


def test_records_of_an_older_version_are_measured_again(tmp_path):
    """Where they lack a metric that a row has today."""
    out, rows = tmp_path / "calibration.json", [SweepRow("board", "dss-gnn", "a", setup)]
    sweep(CALIBRATION, rows, [0, 1], out, CPU)
    first = read_records(out)
    short = [{k: v for k, v in r.metrics.items() if k != "brier_scaled"} for r in first[:1]]
    merge_records(out, [replace(first[0], metrics=short[0])])
    calls = []

    def counted(given, name, splits, device):
        calls.append(tuple(splits))
        return CALIBRATION.measure(given, name, splits, device)

    sweep(replace(CALIBRATION, measure=counted), rows, [0, 1], out, CPU)
    assert calls == [(0,)]
    again = {r.split: r for r in read_records(out)}
    assert again[0].metrics["brier_scaled"] == pytest.approx(first[0].metrics["brier_scaled"], abs=1e-8)


def test_another_benchmark_measures_what_it_likes(tmp_path):
    """As the tasks to come will: other names, other metrics, the same frame."""
    said = []

    def measured(setups, setting, splits, device):
        return [[{"auroc": split / 10 + len(setting)} for split in splits] for _ in setups]

    out, rows = tmp_path / "ood.json", [SweepRow("cora/label", "gcn", "msp", setup)]
    benchmark = Benchmark("ood", measured, ("auroc",), told="auroc")
    sweep(benchmark, rows, [0, 1], out, CPU, said.append, seeds=2)
    assert said[0] == "cora/label gcn msp: auroc 10.0500 over 2 splits"
    found = {(r.benchmark, r.split, r.seed): r.metrics["auroc"] for r in read_records(out)}
    assert found == {("ood", s, n): 10 + s / 10 for s in (0, 1) for n in (0, 1)}


def test_a_row_that_does_not_fit_is_left_out(tmp_path):
    def too_large():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried everything.")

    said = []
    rows = [
        SweepRow("board", "dss-gnn", "a", lambda: replace(setup(), make=lambda f, c: too_large())),
        SweepRow("board", "dss-gnn", "b", setup),
    ]
    sweep(CALIBRATION, rows, [0], tmp_path / "c.json", CPU, said.append)
    assert said[0] == "board dss-gnn a: left out, CUDA out of memory"
    assert [r.variant for r in read_records(tmp_path / "c.json")] == ["b"]


def test_seeds_of_a_row_are_one_population(tmp_path, monkeypatch):
    sizes = []
    inner = measure_module.train_together

    def counted(setups, tasks, splits):
        sizes.append(len(setups) * len(splits))
        return inner(setups, tasks, splits)

    monkeypatch.setattr(measure_module, "train_together", counted)
    out = tmp_path / "c.json"
    rows = [SweepRow("board", "dss-gnn", "a", setup)]
    sweep(CALIBRATION, rows, [0, 1], out, CPU)
    sweep(CALIBRATION, rows, [0, 1], out, CPU, seeds=3)
    assert sizes == [2, 4]
    records = read_records(out)
    assert {len(r.config["seeds"]) for r in records} == {1}
    assert {(r.split, r.seed) for r in records} == {(s, n) for s in (0, 1) for n in range(3)}
    assert len({r.metrics["brier"] for r in records}) == 6

    def narrow(setups, tasks, splits):
        if len(setups) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried.")
        return inner(setups, tasks, splits)

    monkeypatch.setattr(measure_module, "train_together", narrow)
    # One after the other, where they do not fit together.
    sweep(CALIBRATION, rows, [0, 1], tmp_path / "d.json", CPU, seeds=3)
    again = {(r.split, r.seed): r.metrics["brier"] for r in read_records(tmp_path / "d.json")}
    assert again == pytest.approx({(r.split, r.seed): r.metrics["brier"] for r in records}, abs=1e-8)


def test_a_row_may_be_of_some_splits_alone(tmp_path):
    out = tmp_path / "c.json"
    rows = [
        SweepRow("board", "dss-gnn", name, setup, splits=own) for name, own in (("a", (1, 5)), ("b", None))
    ]
    sweep(CALIBRATION, rows, [0, 1], out, CPU)
    assert {(r.variant, r.split) for r in read_records(out)} == {("a", 1), ("b", 0), ("b", 1)}


def test_repetitions_share_no_seed(tmp_path):
    """Neither with each other nor with the members of another split."""
    given = []

    def measured(setups, setting, splits, device):
        given.extend(made.seed(split, m) for made in setups for split in splits for m in range(made.members))
        return [[{"auroc": 0.5} for _ in splits] for _ in setups]

    rows = [SweepRow("board", "gcn", "a", lambda: setup(members=5))]
    benchmark = Benchmark("ood", measured, ("auroc",), told="auroc")
    sweep(benchmark, rows, range(10), tmp_path / "c.json", CPU, seeds=10)
    assert len(given) == len(set(given)) == 500


def test_what_is_not_finite_is_said_and_not_kept(tmp_path):
    def measured(setups, setting, splits, device):
        return [[{"auroc": float("nan") if i else 0.5} for _ in splits] for i in range(len(setups))]

    said, out = [], tmp_path / "c.json"
    benchmark = Benchmark("ood", measured, ("auroc",), told="auroc")
    sweep(benchmark, [SweepRow("board", "gcn", "a", setup)], [0], out, CPU, said.append, seeds=2)
    assert "board gcn a, seed 1: left out, a metric is not finite" in said
    assert [r.seed for r in read_records(out)] == [0]


def test_a_benchmark_measures_what_it_says(tmp_path):
    with pytest.raises(InputError, match="told must be one of auroc, got 'brier'"):
        Benchmark("ood", CALIBRATION.measure, ("auroc",), told="brier")
    with pytest.raises(InputError, match="members must be an integer >= 1, got 0"):
        setup(members=0)
    wrong = Benchmark("ood", CALIBRATION.measure, ("auroc",), told="auroc")
    with pytest.raises(InputError, match="ood measures no auroc, as its metrics say"):
        sweep(wrong, [SweepRow("board", "dss-gnn", "a", setup)], [0], tmp_path / "c.json", CPU)


def test_a_population_shares_its_features():
    first, second = (split_tasks("board", [s], CPU)[0] for s in (0, 1))
    with pytest.raises(InputError, match="must share their features"):
        train(setup(), [first, second], [0, 1])
