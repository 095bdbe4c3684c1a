"""The model folder: what it holds, that it is replaced whole, and that a damaged one is one line of error."""

import inspect
import json
import os
import pickle
import shutil
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from dssgnn import DSSClassifier, files
from dssgnn.data import read_graph
from dssgnn.errors import InputError
from estimator_checks import assert_same_weights, board
from graph_files import snapshot

FILES = {
    "weights.safetensors", "config.json", "split.npz", "graph.npz", "predictions.parquet", "metrics.json",
    "history.csv", "card.md",
}  # fmt: skip


@pytest.fixture(scope="module")
def model() -> DSSClassifier:
    data = board()
    data.x = data.x * 3 - 1  # so that there is a scaling
    data.edge_weight = torch.linspace(0.5, 1.5, data.num_edges)
    return DSSClassifier(hidden_channels=4, epochs=2, device="cpu").fit(data, name="board")


@pytest.fixture(scope="module")
def good(model: DSSClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good") / "m"
    model.save(folder)
    return folder


@pytest.fixture
def copy(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "m"))


def test_what_it_holds(good: Path, model: DSSClassifier) -> None:
    assert {path.name for path in good.iterdir()} == FILES
    config = json.loads((good / "config.json").read_text())
    assert config["schema"] == 1
    assert config["method"] == "dss-gnn"
    assert config["classes"] == [0, 1]
    assert config["num_features"] == 7
    assert config["feature_names"] == [f"x[{i}]" for i in range(7)]
    assert config["graph"] == {"name": "board", "nodes": 64, "edges": 420}
    assert config["operator"] == {
        "normalization": "sym", "direction": "both", "self_loops": False, "lambda_max": 2.0,
    }  # fmt: skip
    assert config["split"] == "given with the graph"
    assert set(config["versions"]) == {"dssgnn", "torch", "python"}
    assert len(config["scaling"]["mean"]) == 7
    with np.load(good / "split.npz") as split:
        assert {name: int(split[name].sum()) for name in split} == {"train": 32, "val": 16, "test": 16}
        assert {split[name].dtype for name in split} == {np.dtype(bool)}
    with np.load(good / "graph.npz") as graph:
        assert (graph["edge_index"].dtype, graph["edge_index"].shape) == (np.int64, (2, 420))
        np.testing.assert_array_equal(graph["y"], board().y.numpy())
        assert graph["edge_weight"].shape == (420,)
    frame = pd.read_parquet(good / "predictions.parquet")
    assert list(frame) == [
        "node", "label", "split", "prediction", "confidence", "p_0", "p_1",
        "entropy", "mutual_information", "chaos_energy", "energy", "ood_score",
    ]  # fmt: skip
    assert frame["split"].value_counts().to_dict() == {"train": 32, "val": 16, "test": 16}
    metrics = json.loads((good / "metrics.json").read_text())
    assert metrics == model.state_.metrics
    assert set(metrics) == {"test", "val", "train", "training", "model"}
    history = pd.read_csv(good / "history.csv")
    assert list(history)[:4] == ["epoch", "loss", "val_accuracy", "val_brier"]
    assert len(history) == 2
    card = (good / "card.md").read_text()
    assert "# dss-gnn on board" in card
    assert f"{metrics['test']['brier']:.4f}" in card
    assert "## Limits" in card


def test_round_trip(good: Path, model: DSSClassifier, tmp_path: Path) -> None:
    again = DSSClassifier.load(good)
    assert_same_weights(again, model)
    assert again.state_.scaling == model.state_.scaling
    assert again.state_.encoding == model.state_.encoding
    assert again.state_.graph == model.state_.graph
    np.testing.assert_array_equal(again.state_.edge_weight, model.state_.edge_weight)
    again.save(tmp_path / "again")
    for name in FILES - {"config.json"}:
        assert (tmp_path / "again" / name).read_bytes() == (good / name).read_bytes(), name
    first, second = (json.loads((f / "config.json").read_text()) for f in (good, tmp_path / "again"))
    assert second.pop("created") >= first.pop("created")
    assert first["parameters"].pop("device") == "cpu"  # a model runs on what the machine that loads it has
    assert second["parameters"].pop("device") == "auto"
    assert first == second


def test_without_the_graph(model: DSSClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "m", graph=False)
    assert {path.name for path in (tmp_path / "m").iterdir()} == FILES - {"graph.npz"}
    again = DSSClassifier.load(tmp_path / "m")
    assert again.state_.edge_index is None
    assert again.state_.y.tolist() == [-1] * 64
    np.testing.assert_array_equal(again.predict_proba(board()), model.predict_proba(board()))
    again.save(tmp_path / "again")
    assert not (tmp_path / "again" / "graph.npz").exists()


def test_a_loaded_model_does_not_need_its_folder(copy: Path, model: DSSClassifier) -> None:
    again = DSSClassifier.load(copy)
    (copy / "weights.safetensors").write_bytes(b"")
    shutil.rmtree(copy)
    np.testing.assert_array_equal(again.predict_proba(board()), model.predict_proba(board()))


def test_others_may_read_it(good: Path) -> None:
    """Every file has the mode that the user's umask gives a new file."""
    modes = {path.name: path.stat().st_mode & 0o777 for path in good.iterdir()}
    assert set(modes.values()) == {modes["config.json"]}, modes


class Broken(Exception):
    """What a test makes a write raise."""


WRITES = [
    ("dssgnn.model_folder.writing.save_tensors", 1),
    ("dssgnn.model_folder.writing._write_json", 1),
    ("dssgnn.model_folder.writing._write_json", 2),
    ("numpy.savez", 1),
    ("numpy.savez_compressed", 1),
    ("pandas.DataFrame.to_parquet", 1),
    ("pandas.DataFrame.to_csv", 1),
    ("dssgnn.model_folder.writing._card", 1),
    ("os.fsync", 1),
    ("os.fsync", 5),
    ("dssgnn.files._exchange", 1),
]


@pytest.mark.parametrize("kind", [Broken, OSError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize(
    ("target", "call", "fresh"),
    # Nothing is exchanged where the folder is new.
    [(*w, fresh) for w in WRITES for fresh in (False, True) if not (fresh and "_exchange" in w[0])],
)
def test_a_write_that_fails_changes_nothing(
    model: DSSClassifier, copy: Path, monkeypatch, target: str, call: int, kind: type, fresh: bool
) -> None:
    if fresh:
        shutil.rmtree(copy)
    before, calls = snapshot(copy.parent), []

    def fail(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) == call:
            raise kind("no space left")
        return original(*args, **options)

    module, _, name = target.rpartition(".")
    owner = pd.DataFrame if module == "pandas.DataFrame" else __import__(module, fromlist=["x"])
    original = getattr(owner, name)
    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(InputError if kind is OSError else kind, match="no space left"):
        model.save(copy)
    assert len(calls) == call
    monkeypatch.undo()
    assert snapshot(copy.parent) == before


def test_replacing_without_renameat2(model: DSSClassifier, copy: Path, monkeypatch) -> None:
    (copy / "card.md").write_text("old")
    monkeypatch.setattr(files, "_exchange", lambda first, second: False)
    model.save(copy)
    assert (copy / "card.md").read_text() != "old"
    assert [path.name for path in copy.parent.iterdir()] == ["m"]
    before, rename = snapshot(copy.parent), os.rename

    def fail(source: Any, target: Any) -> None:
        if Path(target) == copy and not str(source).endswith(".old"):
            raise OSError("no")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(InputError, match="cannot be written: no"):
        model.save(copy)
    assert snapshot(copy.parent) == before


def test_what_is_not_a_model_folder_is_not_replaced(
    model: DSSClassifier, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "thesis.tex").write_text("years of work")
    (tmp_path / "loop").symlink_to("loop")
    before = snapshot(tmp_path)
    for name in ("file", "papers", "loop"):
        with pytest.raises(InputError, match="is there and is not a model folder"):
            model.save(tmp_path / name)
    with pytest.raises(InputError, match="cannot be written"):
        model.save(tmp_path / "file" / "m")
    monkeypatch.chdir(tmp_path / "papers")
    for name in ("", ".", "..", "/"):
        with pytest.raises(InputError, match="cannot be a model folder"):
            model.save(name)
    assert snapshot(tmp_path) == before
    (tmp_path / "empty").mkdir()
    model.save(tmp_path / "empty")
    DSSClassifier.load(tmp_path / "empty")


def test_a_link_stays_a_link(model: DSSClassifier, copy: Path) -> None:
    link = copy.parent / "link"
    link.symlink_to(copy)
    (copy / "card.md").write_text("old")
    model.save(link)
    assert link.is_symlink()
    assert (copy / "card.md").read_text().startswith("# dss-gnn")
    assert sorted(path.name for path in copy.parent.iterdir()) == ["link", "m"]


# Mutations of a good folder. Each says which file the error must name.

Mutation = Callable[[Path], object]


def config(**changes: Any) -> Mutation:
    """Change keys of config.json; ``a__b`` is key ``b`` of object ``a``, ``...`` removes."""

    def change(folder: Path) -> None:
        content = json.loads((folder / "config.json").read_text())
        for path, value in changes.items():
            place = content
            *parents, last = path.split("__")
            for parent in parents:
                place = place[parent]
            if value is ...:
                del place[last]
            else:
                place[last] = value
        (folder / "config.json").write_text(json.dumps(content))

    return change


def parameter(name: str, value: Any) -> Mutation:
    return config(**{f"parameters__{name}": value})


def write(name: str, content: str | bytes) -> Mutation:
    return lambda folder: (folder / name).write_bytes(
        content.encode() if isinstance(content, str) else content
    )


def metrics(change: Callable[[dict[str, Any]], object]) -> Mutation:
    def mutate(folder: Path) -> None:
        content = json.loads((folder / "metrics.json").read_text())
        change(content)
        (folder / "metrics.json").write_text(json.dumps(content))

    return mutate


def weights(change: Callable[[dict[str, torch.Tensor]], object], **meta: str) -> Mutation:
    def mutate(folder: Path) -> None:
        tensors = {name: value.clone() for name, value in load_file(folder / "weights.safetensors").items()}
        change(tensors)
        save_file(tensors, folder / "weights.safetensors", metadata={"meta": '{"schema": 1}'} | meta)

    return mutate


def first(change: Callable[[torch.Tensor], torch.Tensor]) -> Mutation:
    def replace(tensors: dict[str, torch.Tensor]) -> None:
        name = "lift.weight"
        tensors[name] = change(tensors[name]).contiguous()

    return weights(replace)


def arrays(name: str, **changes: Any) -> Mutation:
    """Replace arrays of an npz by what a function makes of them; ``None`` removes."""

    def mutate(folder: Path) -> None:
        with np.load(folder / name) as archive:
            content = {key: archive[key] for key in archive}
        for key, change in changes.items():
            if change is None:
                del content[key]
            else:
                content[key] = change(content[key])
        np.savez(folder / name, allow_pickle=True, **content)

    return mutate


def table(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Mutation:
    def mutate(folder: Path) -> None:
        frame = change(pd.read_parquet(folder / "predictions.parquet"))
        frame.to_parquet(folder / "predictions.parquet", index=False)

    return mutate


def truncated(name: str, share: float) -> Mutation:
    def mutate(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(share * len(content))])

    return mutate


def flipped(name: str) -> Mutation:
    def mutate(folder: Path) -> None:
        content = bytearray((folder / name).read_bytes())
        for i in range(0, len(content), max(1, len(content) // 40)):
            content[i] ^= 0xFF
        (folder / name).write_bytes(content)

    return mutate


def replaced_by(name: str, make: Callable[[Path], object]) -> Mutation:
    def mutate(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return mutate


class Bomb:
    """An object that leaves a trace when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("/tmp/dssgnn-was-executed",)


def huge_header(folder: Path) -> None:
    """A tensor of 4 TB, declared in a file of a few bytes."""
    entry = {"lift.weight": {"dtype": "F32", "shape": [10**6, 10**6], "data_offsets": [0, 4 * 10**12]}}
    header = json.dumps(entry | {"__metadata__": {"meta": "{}"}}).encode()
    (folder / "weights.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 64)


def endless_header(folder: Path) -> None:
    (folder / "weights.safetensors").write_bytes(struct.pack("<Q", 2**60) + b"{}")


NEEDED = sorted(FILES - {"card.md", "graph.npz"})
C, W, S, G, P, M, H = (
    "config.json", "weights.safetensors", "split.npz", "graph.npz", "predictions.parquet", "metrics.json",
    "history.csv",
)  # fmt: skip
NAN = float("nan")

MUTATIONS: dict[str, tuple[str, Mutation]] = {
    **{f"missing {name}": (name, lambda f, n=name: (f / n).unlink()) for name in NEEDED},
    **{f"empty {name}": (name, write(name, b"")) for name in [*NEEDED, G]},
    **{f"half of {name}": (name, truncated(name, 0.5)) for name in [C, W, S, G, P, M]},
    **{f"nearly all of {name}": (name, truncated(name, 0.98)) for name in [C, W, S, G, P, M]},
    **{f"flipped bits in {name}": (name, flipped(name)) for name in [*NEEDED, G]},
    **{f"noise in {name}": (name, write(name, bytes(range(256)) * 9)) for name in [*NEEDED, G]},
    **{f"a folder as {name}": (name, replaced_by(name, Path.mkdir)) for name in [*NEEDED, G]},
    **{f"a pipe as {name}": (name, replaced_by(name, os.mkfifo)) for name in [*NEEDED, G]},
    **{
        f"a link loop as {name}": (name, replaced_by(name, lambda p: p.symlink_to(p.name)))
        for name in [*NEEDED, G]
    },
    **{f"a pickle as {name}": (name, write(name, pickle.dumps(Bomb()))) for name in [*NEEDED, G]},
    **{f"a list as {name}": (name, write(name, "[1, 2]")) for name in [C, M]},
    **{f"deep {name}": (name, write(name, "[" * 200000 + "]" * 200000)) for name in [C, M]},
    **{f"a deep object in {name}": (name, write(name, '{"a":' * 50000 + "1" + "}" * 50000)) for name in [C, M]},
    **{f"Latin-1 {name}": (name, write(name, b'{"a": "\xe9"}')) for name in [C, M]},
    **{f"a number of 9000 digits in {name}": (name, write(name, '{"a": ' + "9" * 9000 + "}")) for name in [C, M]},
    **{
        f"no {key}": (C, config(**{key: ...}))
        for key in ("schema", "parameters", "encoding", "scaling", "graph", "classes", "num_features", "method")
    },
    **{
        f"{key} is {value!r}": (C, config(**{key: value}))
        for key in ("schema", "parameters", "encoding", "graph", "classes", "num_features", "method")
        for value in (None, "x", -1, [])
    },
    "schema 2": (C, config(schema=2)),
    "schema '1'": (C, config(schema="1")),
    "scaling of one feature": (C, config(scaling={"mean": [0.0], "scale": [1.0]})),
    "scaling without scale": (C, config(scaling={"mean": [0.0] * 7})),
    "scaling by zero": (C, config(scaling={"mean": [0.0] * 7, "scale": [1.0] * 6 + [0.0]})),
    "negative scaling": (C, config(scaling={"mean": [0.0] * 7, "scale": [-1.0] * 7})),
    "NaN scaling": (C, config(scaling={"mean": [NAN] * 7, "scale": [1.0] * 7})),
    "text scaling": (C, config(scaling={"mean": ["0"] * 7, "scale": [1.0] * 7})),
    "scaling is a number": (C, config(scaling=3)),
    "scaling beyond floats": (C, config(scaling={"mean": [10**400] * 7, "scale": [1.0] * 7})),
    **{
        f"{name}={value!r}": (C, parameter(name, value))
        for name, value in [
            ("method", "mlp"), ("method", None), ("method", ["gcn"]), ("hidden_channels", -4),
            ("hidden_channels", 0), ("hidden_channels", "4"), ("hidden_channels", 4.0),
            ("hidden_channels", 10**18), ("hidden_channels", 10**30), ("num_layers", 10**9),
            ("num_layers", -1), ("chaos_order", -1), ("chaos_order", 10**9), ("chaos_order", True),
            ("filter_orders", [4]), ("filter_orders", 4), ("filter_orders", [10**9, 4]),
            ("filter_orders", ["4", "4"]), ("filter_orders", None), ("gate_order", 10**9),
            ("propagation", "never"), ("residual", "yes"), ("norm", "layer"), ("dropout", "0.5"),
            ("dropout", 7), ("dropout", NAN), ("input_dropout", []), ("filter_init", "?"),
            ("normalization", "none"), ("direction", 3), ("self_loops", "some"), ("scaling", "log"),
            ("objective", "x"), ("lr", "fast"), ("lr", -1), ("epochs", -5), ("monitor", "time"), ("seed", -1),
            ("seed", 10**40), ("patience", "long"), ("unheard_of", 1),
        ]
    },
    "no filter orders": (C, parameter("filter_orders", ...)),
    "classes of another order": (C, config(classes=[1, 0])),
    "other classes": (C, config(classes=["a", "b"])),
    "one class more": (W, config(classes=[0, 1, 2], encoding__class_names=[0, 1, 2])),
    "no classes": (C, config(classes=[], encoding__class_names=[])),
    "classes in the encoding alone": (C, config(encoding__class_names=[0, 5])),
    "classes twice": (C, config(classes=[1, 1], encoding__class_names=[1, 1])),
    "mixed classes": (C, config(classes=[1, "1"], encoding__class_names=[1, "1"])),
    "nested classes": (C, config(classes=[[1], [2]], encoding__class_names=[[1], [2]])),
    "classes beyond int64": (C, config(classes=[0, 10**30], encoding__class_names=[0, 10**30])),
    "negative features": (C, config(encoding__unnamed=-7, num_features=-7)),
    "a trillion features": (W, config(encoding__unnamed=10**12, num_features=10**12, scaling=None)),
    "features of no number": (C, config(num_features=8)),
    "an encoding of schema 9": (C, config(encoding__schema=9)),
    "an encoding with more": (C, config(encoding__code="import os")),
    "negative nodes": (C, config(graph__nodes=-64)),
    "nodes as text": (C, config(graph__nodes="64")),
    "fractional nodes": (C, config(graph__nodes=64.5)),
    "no nodes": (C, config(graph__nodes=...)),
    "no edges": (C, config(graph__edges=...)),
    "no name": (C, config(graph__name=...)),
    "a trillion nodes": (S, config(graph__nodes=10**12)),
    "more nodes than there are": (S, config(graph__nodes=65)),
    "more edges than there are": (G, config(graph__edges=421)),
    "a weight renamed": (W, weights(lambda t: t.update(wait=t.pop("lift.weight")))),
    "a weight missing": (W, weights(lambda t: t.pop("readout_weight"))),
    "a weight too many": (W, weights(lambda t: t.update(more=torch.ones(2)))),
    "no weights": (W, weights(lambda t: t.clear())),
    "a transposed weight": (W, first(lambda w: w.transpose(1, 2))),
    "a flattened weight": (W, first(lambda w: w.flatten())),
    "a weight in float64": (W, first(lambda w: w.double())),
    "a weight in float16": (W, first(lambda w: w.half())),
    "a weight in int64": (W, first(lambda w: w.long())),
    "NaN weights": (W, first(lambda w: w * NAN)),
    "an infinite weight": (W, first(lambda w: w.index_fill(2, torch.tensor([0]), float("inf")))),
    "an empty weight": (W, first(lambda w: w[:0])),
    "weights without a description": (
        W, lambda f: save_file(load_file(f / W), f / W),
    ),
    "weights with a broken description": (W, weights(lambda t: None, meta="{")),
    "weights with a deep description": (W, weights(lambda t: None, meta="[" * 100000)),
    "weights of 4 TB": (W, huge_header),
    "weights with an endless header": (W, endless_header),
    "split without test": (S, arrays(S, test=None)),
    "split of numbers": (S, arrays(S, train=lambda a: a.astype(int))),
    "split of text": (S, arrays(S, train=lambda a: a.astype(str))),
    "split of objects": (S, arrays(S, train=lambda a: np.array([Bomb()] * 64, dtype=object))),
    "split too short": (S, arrays(S, val=lambda a: a[:-1])),
    "split of two axes": (S, arrays(S, val=lambda a: a[:, None])),
    "split that overlaps": (S, arrays(S, val=lambda a: ~a)),
    "graph without y": (G, arrays(G, y=None)),
    "graph with objects": (G, arrays(G, y=lambda a: np.array([Bomb()] * 64, dtype=object))),
    "graph with a node that is not there": (G, arrays(G, edge_index=lambda a: a + 1)),
    "graph with a negative node": (G, arrays(G, edge_index=lambda a: a - 1)),
    "graph with three rows": (G, arrays(G, edge_index=lambda a: np.vstack([a, a[:1]]))),
    "graph with fractional edges": (G, arrays(G, edge_index=lambda a: a * 1.0)),
    "graph with a class that is not there": (G, arrays(G, y=lambda a: a + 1)),
    "graph with labels below -1": (G, arrays(G, y=lambda a: a - 3)),
    "graph with too few labels": (G, arrays(G, y=lambda a: a[:5])),
    "graph with NaN weights": (G, arrays(G, edge_weight=lambda a: a * NAN)),
    "graph with too few weights": (G, arrays(G, edge_weight=lambda a: a[:3])),
    "graph with integer weights": (G, arrays(G, edge_weight=lambda a: a.astype(int))),
    "predictions without a class": (P, table(lambda t: t.drop(columns="p_1"))),
    "predictions without energy": (P, table(lambda t: t.drop(columns="energy"))),
    "predictions of fewer nodes": (P, table(lambda t: t[:-1])),
    "predictions of more nodes": (P, table(lambda t: pd.concat([t, t]))),
    "predictions of text": (P, table(lambda t: t.astype({"p_0": str}))),
    "NaN predictions": (P, table(lambda t: t.assign(p_0=NAN))),
    "no training metrics": (M, metrics(lambda m: m.pop("training"))),
    "training metrics of text": (M, metrics(lambda m: m["training"].update(best_epoch="first"))),
    "test metrics as a list": (M, metrics(lambda m: m.update(test=[1]))),
    "a metric missing": (M, metrics(lambda m: m["val"].pop("brier"))),
    "a metric of text": (M, metrics(lambda m: m["test"].update(accuracy="high"))),
    "a metric of NaN": (M, metrics(lambda m: m["test"].update(ece=NAN))),
    "history of words": (H, write(H, "epoch,loss\nzero,much\n")),
    "history without epochs": (H, write(H, "loss\n0.5\n")),
    "history without rows": (H, write(H, "epoch,loss\n")),
    "history with ragged rows": (H, write(H, "epoch,loss\n0,1,2,3\n1\n")),
}  # fmt: skip


def test_there_are_enough_mutations() -> None:
    assert len(MUTATIONS) >= 50


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_damaged_folder_is_one_line_of_error(copy: Path, name: str) -> None:
    file, mutate = MUTATIONS[name]
    mutate(copy)
    before = sorted(path.name for path in copy.parent.rglob("*"))
    contents = {p: p.read_bytes() for p in copy.iterdir() if p.is_file() and p.stat().st_size}
    start = time.perf_counter()
    with pytest.raises(InputError) as caught:
        DSSClassifier.load(copy)
    message = str(caught.value)
    assert time.perf_counter() - start < 5
    assert str(copy / file) in message
    assert "\n" not in message
    assert len(message) < 600
    assert sorted(path.name for path in copy.parent.rglob("*")) == before
    assert {p: p.read_bytes() for p in contents} == contents
    assert not Path("/tmp/dssgnn-was-executed").exists()


@pytest.mark.parametrize("name", [n for n in MUTATIONS if any(w in n for w in ("trillion", "10000", "4 TB"))])
def test_sizes_are_not_believed(copy: Path, name: str) -> None:
    MUTATIONS[name][1](copy)
    tracemalloc.start()
    with pytest.raises(InputError):
        DSSClassifier.load(copy)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


def test_folders_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "empty").mkdir()
    for name, message in [
        ("file", "file is not a model folder: it is a file"),
        ("nothing", "nothing is not a model folder: it does not exist"),
        ("loop", "loop is not a model folder"),
        ("empty", "config.json: is missing"),
    ]:
        with pytest.raises(InputError, match=message):
            DSSClassifier.load(tmp_path / name)


def test_what_does_not_matter_may_change(copy: Path, model: DSSClassifier) -> None:
    """The card is for people; other files may lie beside ours."""
    (copy / "card.md").unlink()
    (copy / "notes.txt").write_text("mine")
    config(created="yesterday", versions={"dssgnn": "0.0.1"})(copy)
    np.testing.assert_array_equal(
        DSSClassifier.load(copy).predict_proba(board()), model.predict_proba(board())
    )


def test_a_subclass_loads_as_itself(copy: Path) -> None:
    class Mine(DSSClassifier):
        pass

    assert type(Mine.load(copy)) is Mine


def test_no_pickle_is_near() -> None:
    from dssgnn import checkpoint
    from dssgnn.model_folder import contents, reading, writing

    for module in (checkpoint, contents, reading, writing, files):
        source = inspect.getsource(module)
        assert "import pickle" not in source
        assert "torch.load" not in source
        assert "allow_pickle=True" not in source


def test_encoding_of_tables_survives(tmp_path: Path) -> None:
    from estimator_checks import table_folder

    loaded = read_graph(table_folder(tmp_path / "people"))
    model = DSSClassifier(hidden_channels=4, epochs=2).fit(loaded, name="people")
    model.save(tmp_path / "m")
    stored = json.loads((tmp_path / "m" / "config.json").read_text())
    assert stored["classes"] == ["cat", "dog"]
    assert stored["feature_names"] == ["age", "hair=black", "hair=grey", "hair=red"]
    again = DSSClassifier.load(tmp_path / "m")
    assert again.state_.predictions["label"].isna().sum() == 4
    other = table_folder(tmp_path / "other", nodes=9, extra="green", seed=4)
    frames = [m.frame(read_graph(other, encoding=m.state_.encoding)) for m in (model, again)]
    assert frames[0].equals(frames[1])
