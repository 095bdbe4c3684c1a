"""fit, predict, evaluate and report as a user types them: what they print and write, and what they refuse."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from dssgnn import DSSClassifier, cli
from dssgnn.data import load, minesweeper, read_graph
from estimator_checks import board, table_folder
from graph_files import arrays, snapshot, write_csv, write_npz

TINY = ("--epochs", "2", "--set", "hidden_channels=4")
SCORES = ["entropy", "mutual_information", "chaos_energy", "energy", "ood_score"]


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line inside this process: importing torch once is enough."""
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # `main` sets it; given back after the test
    monkeypatch.setenv("COLUMNS", "120")

    def call(*words: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["dssgnn", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        return Outcome(int(end.value.code or 0), captured.out, captured.err)

    return call


def in_a_process(*words: object, cwd: Path) -> Outcome:
    done = subprocess.run(
        [sys.executable, "-m", "dssgnn", *map(str, words)],
        capture_output=True, text=True, cwd=cwd, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small graph of each kind, and a model of each."""
    place = tmp_path_factory.mktemp("graphs")
    table_folder(place / "people")
    table_folder(place / "strangers", nodes=12, extra="green", seed=5)
    write_npz(place / "board.npz", {k: v.numpy() for k, v in minesweeper(10, 10).to_dict().items()})
    other = minesweeper(7, 6, seed=3).to_dict()
    write_npz(place / "other.npz", {k: other[k].numpy() for k in ("x", "edge_index", "y")})
    for name, graph in (("people-model", "people"), ("board-model", "board.npz")):
        loaded = read_graph(place / graph)
        DSSClassifier(hidden_channels=4, epochs=2).fit(loaded, name=graph).save(place / name)
    return place


def test_minesweeper_from_fit_to_page(run: Run, tmp_path: Path) -> None:
    m, table, page = tmp_path / "deep" / "m", tmp_path / "p.csv", tmp_path / "r.html"
    fitted = run("fit", "minesweeper-demo", "--out", m, *TINY)
    assert fitted.code == 0, fitted.err
    assert fitted.out.startswith("4,096 nodes, 32,004 edges, 7 features, 2 classes")
    assert f"model: {m}" in fitted.out.replace("\n", "")
    assert "epoch 2/2" in fitted.err
    assert [path.name for path in m.parent.iterdir()] == ["m"]
    assert run("predict", m, "minesweeper-demo", "--out", table).code == 0
    model, data = DSSClassifier.load(m), load("minesweeper-demo")
    frame = pd.read_csv(table)
    assert list(frame) == ["node", "prediction", "confidence", "p_0", "p_1", *SCORES]
    probabilities = frame[["p_0", "p_1"]].to_numpy(dtype=np.float32)
    np.testing.assert_array_equal(probabilities, model.predict_proba(data))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(frame["prediction"], model.predict(data))
    evaluated = run("evaluate", m, "minesweeper-demo", "--json")
    stored = json.loads((m / "metrics.json").read_text())
    assert json.loads(evaluated.out) == stored["test"]
    assert evaluated.err == ""
    for part, nodes in {"val": 1024, "train": 2048, "all": 4096}.items():
        metrics = json.loads(run("evaluate", m, "minesweeper-demo", "--on", part, "--json").out)
        assert metrics["nodes"] == nodes
        assert metrics == stored.get(part, metrics)
    shown = run("evaluate", m, "minesweeper-demo").out
    for key in ("accuracy", "brier", "nll", "ece"):
        assert f"{stored['test'][key]:.4f}" in shown
    written = run("report", m, "--out", page)
    assert written.code == 0, written.err
    assert f"page: {page}" in written.out.replace("\n", "")
    assert page.read_text().lower().startswith("<!doctype html>")


@pytest.mark.parametrize("method", ["dss-hybrid", "gcn", "gat", "gpr-gnn"])
def test_every_method(run: Run, graphs: Path, tmp_path: Path, method: str) -> None:
    words = ("--method", method, "--epochs", 2, "--set", "hidden_channels=8", "--set", "warmup_epochs=1")
    done = run("fit", graphs / "board.npz", "--out", tmp_path / "m", *words, "--json")
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "m" / "config.json").read_text())["method"] == method
    assert run("predict", tmp_path / "m", graphs / "other.npz", "--out", tmp_path / "p.csv").code == 0
    assert len(pd.read_csv(tmp_path / "p.csv")) == 42
    assert run("report", tmp_path / "m", "--out", tmp_path / "r.html").code == 0


def test_options_become_parameters(run: Run, graphs: Path, tmp_path: Path) -> None:
    done = run(
        "fit", graphs / "board.npz", "--out", tmp_path / "m", "--chaos-order", 3, "--seed", 7, "--epochs", 1,
        "--device", "cpu", "--set", "filter_orders=[2,3]", "--set", "norm=batch", "--set", "residual=identity",
        "--set", "patience=null", "--set", "lr=1e-3", "--no-graph", "--quiet",
    )  # fmt: skip
    assert (done.code, done.out, done.err) == (0, "", "")
    stored = json.loads((tmp_path / "m" / "config.json").read_text())["parameters"]
    wanted = {
        "chaos_order": 3, "seed": 7, "epochs": 1, "device": "cpu", "filter_orders": [2, 3], "norm": "batch",
        "residual": "identity", "patience": None, "lr": 1e-3,
    }  # fmt: skip
    assert {name: stored[name] for name in wanted} == wanted
    assert not (tmp_path / "m" / "graph.npz").exists()
    same = DSSClassifier(**wanted | {"filter_orders": (2, 3)}).fit(read_graph(graphs / "board.npz"))
    np.testing.assert_array_equal(
        DSSClassifier.load(tmp_path / "m").predict_proba(board()), same.predict_proba(board())
    )


@pytest.mark.parametrize("kind", [".csv", ".parquet"])
def test_tables_with_text(run: Run, graphs: Path, tmp_path: Path, kind: str) -> None:
    m, table = tmp_path / "m", tmp_path / f"p{kind}"
    done = run("fit", graphs / "people", "--out", m, *TINY)
    assert done.code == 0, done.err
    assert "split: 18 train, 10 val, 8 test" in done.out
    assert json.loads((m / "config.json").read_text())["graph"]["name"] == "people"
    done = run("predict", m, graphs / "strangers", "--out", table)
    assert done.code == 0, done.err
    assert "note: 1 cells of 'hair' hold a category not seen in fitting" in done.out
    frame = pd.read_csv(table) if kind == ".csv" else pd.read_parquet(table)
    assert list(frame) == ["node", "prediction", "confidence", "p_cat", "p_dog", *SCORES]
    assert frame["node"].tolist() == [f"n-{i}" for i in range(12)]
    model = DSSClassifier.load(m)
    loaded = read_graph(graphs / "strangers", encoding=model.state_.encoding)
    probabilities = frame[["p_cat", "p_dog"]].to_numpy(dtype=np.float32)
    np.testing.assert_array_equal(probabilities, model.predict_proba(loaded))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    assert frame["prediction"].tolist() == model.predict(loaded).tolist()
    np.testing.assert_array_equal(frame["ood_score"].to_numpy(dtype=np.float32), model.ood_score(loaded))
    assert json.loads(run("evaluate", m, graphs / "strangers", "--on", "all", "--json").out)["nodes"] == 11
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_arrays_without_masks_say_how_they_were_split(run: Run, graphs: Path, tmp_path: Path) -> None:
    done = run("fit", graphs / "other.npz", "--out", tmp_path / "m", *TINY, "--seed", 4)
    assert done.code == 0, done.err
    assert "note: the graph has no masks: a stratified 60/20/20 split was made with seed 4" in done.out
    assert json.loads((tmp_path / "m" / "config.json").read_text())["split"] == "stratified 60/20/20, seed 4"
    done = run("predict", tmp_path / "m", graphs / "board.npz", "--out", tmp_path / "p.parquet", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    frame = pd.read_parquet(tmp_path / "p.parquet")
    model = DSSClassifier.load(tmp_path / "m")
    data = minesweeper(10, 10)
    np.testing.assert_array_equal(frame[["p_0", "p_1"]].to_numpy(), model.predict_proba(data))


def test_json_and_quiet(run: Run, graphs: Path, tmp_path: Path) -> None:
    done = run("fit", graphs / "board.npz", "--out", tmp_path / "m", *TINY, "--json")
    assert done.err == ""
    content = json.loads(done.out)
    assert content["out"] == str(tmp_path / "m")
    assert content["metrics"] == json.loads((tmp_path / "m" / "metrics.json").read_text())
    done = run("fit", graphs / "board.npz", "--out", tmp_path / "m", *TINY, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_fitting_again_replaces_the_folder(run: Run, graphs: Path, tmp_path: Path) -> None:
    words = ("fit", graphs / "board.npz", "--out", tmp_path / "m", "--quiet")
    assert run(*words, *TINY).code == 0
    first = (tmp_path / "m" / "weights.safetensors").read_bytes()
    assert run(*words, *TINY, "--seed", 1).code == 0
    assert (tmp_path / "m" / "weights.safetensors").read_bytes() != first
    assert run(*words, *TINY).code == 0
    assert (tmp_path / "m" / "weights.safetensors").read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_checkpoint_of_another_run_is_refused_and_kept(run: Run, graphs: Path, tmp_path: Path) -> None:
    DSSClassifier(hidden_channels=4, epochs=10, device="cpu").fit(
        read_graph(graphs / "board.npz"), checkpoint=tmp_path / ".m.checkpoint"
    )
    before = snapshot(tmp_path)
    words = ("fit", graphs / "board.npz", "--out", tmp_path / "m", "--resume", "--set", "hidden_channels=4")
    for more, message in [
        (("--set", "lr=0.5"), "lr="),
        (("--set", "hidden_channels=5"), "another model"),
        (("--epochs", "3"), "10 epochs already"),
        (("--seed", "2"), "seed="),
    ]:
        done = run(*words, *more)
        assert done.code == 2
        assert message in done.err
        assert done.err.count("\n") == 1
        assert snapshot(tmp_path) == before
    for bad in (b"", b"noise" * 99):
        (tmp_path / ".m.checkpoint").write_bytes(bad)
        done = run(*words, "--epochs", 12)
        assert done.code == 2
        assert ".m.checkpoint" in done.err


def test_ood_graph_on_the_page(run: Run, graphs: Path, tmp_path: Path) -> None:
    done = run("report", graphs / "board-model", "--out", tmp_path / "r.html", "--ood", graphs / "other.npz")
    assert done.code == 0, done.err
    assert '"other"' in (tmp_path / "r.html").read_text()


def test_in_processes_of_their_own(graphs: Path, tmp_path: Path) -> None:
    shutil.copytree(graphs / "people", tmp_path / "cora")  # a path of a catalog name
    done = in_a_process("fit", "./cora", "--out", "m", *TINY, "--quiet", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, "", "")
    done = in_a_process("predict", "m", "./cora", "--out", "p.csv", cwd=tmp_path)
    assert done.code == 0
    assert done.err == ""
    model = DSSClassifier.load(tmp_path / "m")
    expected = model.predict_proba(read_graph(tmp_path / "cora", encoding=model.state_.encoding))
    frame = pd.read_csv(tmp_path / "p.csv")
    np.testing.assert_array_equal(frame[["p_cat", "p_dog"]].to_numpy(dtype=np.float32), expected)
    before = snapshot(tmp_path)
    done = in_a_process("fit", "./cora", "--out", "new/m", "--set", "dropout=much", "--json", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: dropout must be in [0, 1], got 'much'\n"
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("words", [["fit"], ["predict"], ["evaluate"], ["report"], ["datasets"]])
def test_help_has_an_example(run: Run, words: list[str]) -> None:
    done = run(*words, "--help")
    assert done.code == 0
    assert f"Example: dssgnn {words[0]}" in done.out


def test_nothing_to_do_shows_the_help(run: Run) -> None:
    done = run()
    assert done.code == 2
    assert "Usage: dssgnn" in done.out
    assert "evaluate" in done.out
    assert done.err == ""


FIT = ["fit", "{g}/board.npz", "--out", "new/m", "--json", *TINY]
PREDICT = ["predict", "{g}/board-model"]

BAD_ARGUMENTS: dict[str, tuple[list[str], str]] = {
    " ".join(words).replace("{g}/", ""): (words, message)
    for words, message in [
        (["fly"], "No such command 'fly'"),
        (["fit"], "Missing argument 'graph'"),
        (["fit", "{g}/board.npz"], "Missing option '--out'"),
        (["fit", "--out", "m"], "Missing argument 'graph'"),
        (["fit", "a", "b", "--out", "m"], "unexpected extra argument"),
        ([*FIT, "--colour", "red"], "No such option"),
        ([*FIT, "--method", "mlp"], "method must be one of dss-gnn, .*got 'mlp'"),
        ([*FIT, "--method", ""], "method must be one of"),
        ([*FIT, "--split", "x"], "Invalid value for '--split'"),
        ([*FIT, "--split", "0"], "--split goes with a catalog name"),
        ([*FIT, "--chaos-order", "-1"], "chaos_order must be an integer >= 0, got -1"),
        ([*FIT, "--chaos-order", "2.5"], "Invalid value for '--chaos-order'"),
        ([*FIT, "--chaos-order", "1000"], "chaos_order must be at most 100"),
        ([*FIT, "--seed", "-1"], "seed must be an integer >= 0, got -1"),
        ([*FIT, "--seed", "4294967296"], r"seed must be below 2\*\*32"),
        ([*FIT, "--seed", "9" * 30], r"seed must be below 2\*\*32"),
        ([*FIT, "--epochs", "0"], "epochs must be an integer >= 1, got 0"),
        ([*FIT, "--epochs", "many"], "Invalid value for '--epochs'"),
        ([*FIT, "--device", "quantum"], "device must be 'auto', 'cpu' or 'cuda', got 'quantum'"),
        ([*FIT, "--device", "meta"], "device 'meta'"),
        ([*FIT, "--device", "mps:9"], "device 'mps:9'"),
        ([*FIT, "--device", ""], "device must be"),
        ([*FIT, "--set", "hidden_channels"], "--set takes name=value, got 'hidden_channels'"),
        ([*FIT, "--set", "width=3"], "unknown parameter 'width', expected one of method"),
        ([*FIT, "--set", "=3"], "unknown parameter ''"),
        ([*FIT, "--set", "hidden_channels=wide"], "hidden_channels must be an integer >= 1, got 'wide'"),
        ([*FIT, "--set", "hidden_channels=0"], "hidden_channels must be an integer >= 1, got 0"),
        ([*FIT, "--set", "hidden_channels=9999999999"], "hidden_channels must be at most"),
        ([*FIT, "--method", "gcn", "--set", "hidden_channels=-1"], "hidden_channels must be an integer >= 1"),
        ([*FIT, "--method", "gat"], "multiple of 8 heads, got 4"),
        ([*FIT, "--method", "gat", "--set", "hidden_channels=8", "--set", "dropout=x"], "dropout must be in"),
        ([*FIT, "--method", "gpr-gnn", "--set", "dropout=-1"], "dropout must be in"),
        ([*FIT, "--method", "dss-hybrid", "--set", "base=mlp"], "encoder must be one of .*got 'mlp'"),
        ([*FIT, "--method", "dss-hybrid", "--set", "residual_scale=x"], "residual_scale must be a finite"),
        ([*FIT, "--method", "dss-hybrid", "--set", "warmup_epochs=-2"], "warmup_epochs must be"),
        ([*FIT, "--set", "num_layers=1000000000"], "num_layers must be at most"),
        ([*FIT, "--set", "filter_orders=3"], "filter_orders must be two degrees"),
        ([*FIT, "--set", "filter_orders=[3]"], "filter_orders must be two degrees"),
        ([*FIT, "--set", "filter_orders=[100000000,2]"], "filter_orders must be at most"),
        ([*FIT, "--set", 'filter_orders={"a":1}'], "filter_orders must be two degrees"),
        ([*FIT, "--set", "dropout=1.5"], "dropout must be in"),
        ([*FIT, "--set", "norm=layer"], "norm must be one of"),
        ([*FIT, "--set", "lr=-1"], "lr must be"),
        ([*FIT, "--set", "lr=NaN"], "lr must be"),
        ([*FIT, "--set", "patience=0"], "patience must be"),
        ([*FIT, "--set", "monitor=loss"], "monitor must be one of"),
        ([*FIT, "--set", "objective=hinge"], "objective must be one of"),
        ([*FIT, "--set", "scaling=log"], "scaling must be 'auto'"),
        ([*FIT, "--set", "normalization=l2"], "normalization must be one of"),
        ([*FIT, "--set", "self_loops=some"], "self_loops must be one of"),
        ([*FIT, "--missing", "zero"], "--missing must be error or mean, got 'zero'"),
        ([*FIT, "--categorical", "age"], "--categorical goes with tables"),
        (["fit", "{g}/people", "--out", "m", "--categorical", "height"], "no feature column height"),
        (["fit", "minesweeper-demo", "--out", "m", "--split", "9"], "split 9 was asked for"),
        (["fit", "minesweeper-demo", "--out", "m", "--split", "-1"], "got -1"),
        (["fit", "atlantis", "--out", "m"], "no graph 'atlantis': neither a catalog name"),
        (["fit", "./atlantis", "--out", "m"], "atlantis does not exist"),
        (["fit", "", "--out", "m"], "expected"),
        (["fit", ".", "--out", "m"], "holds neither of nodes.csv and nodes.parquet"),
        (["fit", "notes.txt", "--out", "m"], "notes.txt is no kind of graph we read"),
        (["fit", "{g}/board.npz", "--out", "notes.txt"], "notes.txt is there and is not a model folder"),
        (["fit", "{g}/board.npz", "--out", "notes.txt/m", *TINY], "notes.txt"),
        (["fit", "{g}/board.npz", "--out", "full"], "full is there and is not a model folder"),
        (["fit", "{g}/board.npz", "--out", "."], "cannot be a model folder"),
        (["fit", "{g}/board.npz", "--out", ".."], "cannot be a model folder"),
        (["fit", "{g}/board.npz", "--out", "/"], "cannot be a model folder"),
        (["fit", "{g}/board.npz", "--out", ""], "cannot be a model folder"),
        ([*PREDICT, "{g}/board.npz"], "Missing option '--out'"),
        ([*PREDICT, "{g}/board.npz", "--out", "p.txt"], "--out must end in .csv or .parquet, got p.txt"),
        ([*PREDICT, "{g}/board.npz", "--out", "p"], "--out must end in .csv or .parquet, got p"),
        ([*PREDICT, "{g}/board.npz", "--out", "no/p.csv"], "no/p.csv cannot be written"),
        ([*PREDICT, "{g}/board.npz", "--out", "no/p.parquet"], "no/p.parquet cannot be written"),
        ([*PREDICT, "{g}/board.npz", "--out", "taken.csv"], "taken.csv cannot be written"),
        (
            [*PREDICT, "{g}/people", "--out", "p.csv"],
            "named columns, but the encoding was fitted on a matrix",
        ),
        ([*PREDICT, "atlantis", "--out", "p.csv"], "no graph 'atlantis'"),
        (["predict", "{g}/people-model", "{g}/board.npz", "--out", "p.csv"], "7 features"),
        (["predict", "no", "{g}/board.npz", "--out", "p.csv"], "no is not a model folder: it does not exist"),
        (["predict", "full", "{g}/board.npz", "--out", "p.csv"], "config.json: is missing"),
        (["predict", "notes.txt", "{g}/board.npz", "--out", "p.csv"], "it is a file"),
        (
            ["evaluate", "{g}/board-model", "{g}/board.npz", "--on", "tests"],
            "--on must be test, val, train or all",
        ),
        (
            ["evaluate", "{g}/board-model", "{g}/other.npz"],
            "42 nodes, the stored split is for 100; use --on all",
        ),
        (["evaluate", "no", "{g}/board.npz"], "no is not a model folder"),
        (["evaluate", "{g}/board-model"], "Missing argument 'graph'"),
        (["report"], "Missing argument 'model'"),
        (["report", "no"], "no must be a model folder"),
        (["report", "full"], "config.json is missing"),
        (["report", "{g}/board-model", "--out", "no/r.html"], "no/r.html must be a file that can be written"),
        (["report", "{g}/board-model", "--out", "full"], "full must be a file that can be written"),
        (["report", "{g}/board-model", "--ood", "atlantis"], "no graph 'atlantis'"),
        (["report", "{g}/board-model", "--ood", "{g}/people"], "named columns"),
    ]
}

BAD_TABLES: dict[str, tuple[str, str, str]] = {
    "no id": ("label,age\na,1\n", "source,target\na,b\n", "nodes.csv"),
    "no rows": ("id,label,age\n", "source,target\n", "nodes.csv"),
    "no features": ("id,label\na,x\nb,y\n", "source,target\na,b\n", "feature columns"),
    "an id twice": ("id,label,age\na,x,1\na,y,2\n", "source,target\na,a\n", "nodes.csv"),
    "an unknown end": ("id,label,age\na,x,1\nb,y,2\n", "source,target\na,c\n", "edges.csv"),
    "no target": ("id,label,age\na,x,1\nb,y,2\n", "source\na\n", "edges.csv"),
    "a word among numbers": ("id,label,age\na,x,1\nb,y,old\n", "source,target\na,b\n", "nodes.csv"),
    "a missing number": ("id,label,age\na,x,1\nb,y,\n", "source,target\na,b\n", "nodes.csv"),
    "an unknown part": ("id,label,split,age\na,x,learn,1\nb,y,,2\n", "source,target\na,b\n", "nodes.csv"),
    "a negative weight": ("id,label,age\na,x,1\nb,y,2\n", "source,target,weight\na,b,-1\n", "edge"),
    "one class": ("id,label,age\na,x,1\nb,x,2\n", "source,target\na,b\n", "1 classes, expected at least 2"),
    "no labels": ("id,age\na,1\nb,2\n", "source,target\na,b\n", "0 classes, expected at least 2"),
    "too few to validate": ("id,label,age\na,x,1\nb,y,2\n", "source,target\na,b\n", "val_mask is empty"),
    "no training": (
        "id,label,split,age\na,x,test,1\nb,y,val,2\n", "source,target\na,b\n", "train_mask is empty",
    ),
    "training without label": (
        "id,label,split,age\na,,train,1\nb,y,train,2\nc,x,val,2\n", "source,target\na,b\n", "label of node 0",
    ),
}  # fmt: skip

BAD_ARRAYS = {
    "x has NaN": arrays(x=np.full((4, 2), np.nan)),
    "no x": arrays(x=None),
    "no edges": arrays(edge_index=None),
    "edges of three rows": arrays(edge_index=np.zeros((3, 2), dtype=int)),
    "an edge outside": arrays(edge_index=np.array([[0], [9]]), edge_weight=None),
    "objects": arrays(x=np.array([[{}, 1]] * 4, dtype=object)),
    "text": arrays(y=np.array(["a", "b", "a", "b"])),
    "overlapping masks": arrays(val_mask=np.array([True, True, False, False])),
    "one class of integers": arrays(y=np.array([3, 3, 3, 3])),
    "no test of length": arrays(test_mask=np.array([True])),
}


def check_refused(done: Outcome, message: str, *, silent: bool) -> None:
    assert done.code == 2, (done.out, done.err)
    assert re.fullmatch(r"error: .+\n", done.err), done.err
    assert re.search(message, done.err), done.err
    assert not silent or done.out == ""
    assert "Traceback" not in done.out


def test_there_are_enough() -> None:
    assert len(BAD_ARGUMENTS) >= 50
    assert not set(BAD_TABLES) & set(BAD_ARRAYS)


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_bad_arguments(run: Run, graphs: Path, tmp_path: Path, monkeypatch, name: str) -> None:
    words, message = BAD_ARGUMENTS[name]
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    (tmp_path / "taken.csv").mkdir()
    monkeypatch.chdir(tmp_path)
    before = snapshot(tmp_path), snapshot(graphs)
    done = run(*(word.replace("{g}", str(graphs)) for word in words))
    check_refused(done, message, silent="--json" in words)
    assert (snapshot(tmp_path), snapshot(graphs)) == before


@pytest.mark.parametrize("name", [*BAD_TABLES, *BAD_ARRAYS])
def test_bad_graphs(run: Run, tmp_path: Path, name: str) -> None:
    if name in BAD_TABLES:
        nodes, edges, message = BAD_TABLES[name]
        graph = write_csv(tmp_path / "graph", nodes, edges)
    else:
        graph, message = write_npz(tmp_path / "graph.npz", BAD_ARRAYS[name]), "graph"
    before = snapshot(tmp_path)
    done = run("fit", graph, "--out", tmp_path / "new" / "m", "--json", *TINY)
    check_refused(done, message, silent=True)
    assert snapshot(tmp_path) == before


def test_a_loss_that_explodes_leaves_nothing(run: Run, graphs: Path, tmp_path: Path) -> None:
    words = ("--epochs", 50, "--set", "lr=1e30", "--set", "hidden_channels=4")
    done = run("fit", graphs / "board.npz", "--out", tmp_path / "m", *words, "--quiet")
    assert done.code == 2
    assert done.err.startswith("error: the training loss became nan; try a smaller learning rate")
    assert list(tmp_path.iterdir()) == []


def test_global_state_is_left_alone(run: Run, graphs: Path, tmp_path: Path) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    assert run("fit", graphs / "board.npz", "--out", tmp_path / "m", *TINY, "--quiet").code == 0
    assert torch.equal(torch.get_rng_state(), before)


def test_too_little_memory_is_one_line(run: Run, graphs: Path, tmp_path: Path, monkeypatch) -> None:
    def fit(*_: object, **__: object) -> None:
        raise RuntimeError(
            "DefaultCPUAllocator: can't allocate memory:\nyou tried to allocate 4398046511104 bytes"
        )

    monkeypatch.setattr(DSSClassifier, "fit", fit)
    done = run("fit", graphs / "board.npz", "--out", tmp_path / "new" / "m", "--quiet")
    check_refused(done, "not enough memory for this model and graph: .*4398046511104 bytes", silent=True)
    assert list(tmp_path.iterdir()) == []


def test_other_faults_are_not_hidden(run: Run, graphs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(DSSClassifier, "fit", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("fit", graphs / "board.npz", "--out", tmp_path / "m", "--quiet")


def test_what_a_killed_run_left_is_swept_up(run: Run, graphs: Path, tmp_path: Path) -> None:
    (tmp_path / ".m.0123456789ab").mkdir()
    (tmp_path / ".m.0123456789ab" / "config.json").write_text("{")
    (tmp_path / "..m.checkpoint.0123456789ab").write_text("half")
    for mine in (".m.notes", ".mm.0123456789ab", "m.0123456789ab"):
        (tmp_path / mine).write_text("mine")
    assert run("fit", graphs / "board.npz", "--out", tmp_path / "m", *TINY, "--quiet").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".m.notes",
        ".mm.0123456789ab",
        "m",
        "m.0123456789ab",
    ]
