"""What every estimator of the library keeps to, in the spirit of scikit-learn's ``check_estimator``, for graphs.

A check takes a factory, ``factory(**parameters) -> unfitted estimator``, whose estimators train in a moment.
`CHECKS` lists them all: ``pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)``.
"""

import inspect
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch_geometric.data import Data

from dssgnn.data import minesweeper, read_graph
from dssgnn.errors import InputError
from graph_files import write_csv

__all__ = ["CHECKS", "table_folder"]

Factory = Callable[..., Any]


def board(side: int = 8, seed: int = 0) -> Data:
    """A small graph with masks; its seven features are within 0..1."""
    return minesweeper(side, side, seed)


def without(data: Data, *names: str) -> Data:
    return Data(**{name: value for name, value in data.to_dict().items() if name not in names})


def numbers(nodes: int = 60, features: int = 3, seed: int = 0) -> Data:
    """A ring with features on wild scales and two easy classes, without masks."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, features, generator=generator)
    y = (x[:, 0] > 0).long()
    x[:, 1] = 1000 * x[:, 1] + 5000
    ring = torch.arange(nodes)
    edges = torch.stack([torch.cat([ring, ring.roll(-1)]), torch.cat([ring.roll(-1), ring])])
    return Data(x=x, edge_index=edges, y=y)


def table_folder(folder: Path, nodes: int = 40, extra: str = "", seed: int = 0) -> Path:
    """Tables with text ids, text classes and a categorical column; ``extra`` is a category for node 0."""
    rng = np.random.default_rng(seed)
    rows = ["id,label,split,age,hair"]
    for i in range(nodes):
        part = ("train", "train", "val", "test")[i % 4]
        label, hair = ("cat", "dog")[int(rng.integers(2))], ("red", "black", "grey")[int(rng.integers(3))]
        if i % 10 == 7:
            label, part = "", ""
        rows.append(f"n-{i},{label},{part},{rng.normal() * 30:.3f},{extra if extra and i == 0 else hair}")
    edges = ["source,target", *(f"n-{i},n-{(i * 7 + 1) % nodes}" for i in range(nodes))]
    return write_csv(folder, "\n".join(rows) + "\n", "\n".join(edges) + "\n")


@cache
def fitted(factory: Factory) -> Any:
    """One fitted estimator for the checks that only read it."""
    return factory().fit(board())


def assert_same_weights(first: Any, second: Any) -> None:
    ours, theirs = (estimator.model_.state_dict() for estimator in (first, second))
    assert list(ours) == list(theirs)
    for name, value in ours.items():
        assert torch.equal(value, theirs[name]), name


def check_init_leaves_parameters_alone(factory: Factory) -> None:
    estimator = factory()
    kind = type(estimator)
    defaults = {name: p.default for name, p in inspect.signature(kind).parameters.items()}
    assert inspect.Parameter.empty not in defaults.values()
    assert kind().get_params() == defaults
    markers = {name: object() for name in defaults}  # of no type, and in no range
    made = kind(**markers)
    assert all(getattr(made, name) is marker for name, marker in markers.items())
    assert vars(made) == markers


def check_get_and_set_params(factory: Factory) -> None:
    estimator = factory()
    parameters = estimator.get_params()
    assert estimator.get_params(deep=True) == estimator.get_params(deep=False) == parameters
    assert estimator.set_params(seed=17) is estimator
    assert estimator.get_params() == parameters | {"seed": 17}
    with pytest.raises(InputError, match=r"unknown parameter 'sead', expected one of .*seed"):
        estimator.set_params(sead=3)
    assert estimator.get_params() == parameters | {"seed": 17}


def check_clone(factory: Factory) -> None:
    estimator = fitted(factory)
    copy = clone(estimator)
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()
    assert not [name for name in vars(copy) if name.endswith("_")]
    assert_same_weights(copy.fit(board()), estimator)


def check_repr(factory: Factory) -> None:
    estimator = factory(seed=5)
    kind = type(estimator)
    assert re.fullmatch(rf"{kind.__name__}\(.*seed=5.*\)", repr(estimator))
    assert repr(kind()) == f"{kind.__name__}()"
    rebuilt = eval(repr(estimator), {kind.__name__: kind})
    assert rebuilt.get_params() == estimator.get_params()


def check_not_fitted(factory: Factory) -> None:
    estimator, data = factory(), board()
    for name in ("predict", "predict_proba", "uncertainty", "ood_score", "expansion", "frame", "evaluate"):
        with pytest.raises(InputError, match="not fitted yet; call fit first"):
            getattr(estimator, name)(data)
    with tempfile.TemporaryDirectory() as folder:
        with pytest.raises(InputError, match="not fitted yet"):
            estimator.save(Path(folder) / "m")
        assert not any(Path(folder).iterdir())


def check_fit_returns_self_and_learns_shapes(factory: Factory) -> None:
    estimator, data = factory(), board()
    before = estimator.get_params()
    assert estimator.fit(data) is estimator
    assert estimator.get_params() == before
    assert estimator.classes_.tolist() == [0, 1]
    assert estimator.n_features_in_ == 7
    assert estimator.predict(data).shape == (64,)
    assert estimator.predict_proba(data).shape == (64, 2)
    for name, values in estimator.uncertainty(data).items():
        assert values.shape == (64,), name
        assert np.isfinite(values).all(), name
    assert len(estimator.state_.history) <= before["epochs"]
    assert estimator.state_.split.sizes == (32, 16, 16)


def check_refit_repeats_to_the_bit(factory: Factory) -> None:
    estimator = factory().fit(board(6, seed=3))  # a first fit must leave no trace
    torch.manual_seed(99)
    state = torch.get_rng_state()
    estimator.fit(board())
    assert torch.equal(torch.get_rng_state(), state), "global randomness was touched"
    assert_same_weights(estimator, fitted(factory))
    np.testing.assert_array_equal(
        estimator.predict_proba(board()), fitted(factory).predict_proba(board()), strict=True
    )
    assert estimator.state_.history == fitted(factory).state_.history


def check_another_seed_differs(factory: Factory) -> None:
    other = factory(seed=1).fit(board())
    assert not np.array_equal(other.predict_proba(board()), fitted(factory).predict_proba(board()))


def check_changed_parameters_wait_for_the_next_fit(factory: Factory) -> None:
    estimator, data = factory().fit(board()), board(9, seed=2)
    data.edge_index = data.edge_index[:, ::2]  # directed, so that the operator's options matter
    before = estimator.predict_proba(data)
    estimator.set_params(hidden_channels=16, normalization="rw", direction="in", self_loops=True, dropout=0.0)
    np.testing.assert_array_equal(estimator.predict_proba(data), before)
    with tempfile.TemporaryDirectory() as folder:
        estimator.save(Path(folder) / "m")
        again = type(estimator).load(Path(folder) / "m")
    np.testing.assert_array_equal(again.predict_proba(data), before)
    assert again.get_params()["normalization"] == "sym"
    fresh = clone(estimator).fit(board())
    assert_same_weights(estimator.fit(board()), fresh)
    np.testing.assert_array_equal(estimator.predict_proba(data), fresh.predict_proba(data))


def check_failed_fit_keeps_the_model(factory: Factory) -> None:
    estimator = factory().fit(board())
    before = estimator.predict_proba(board())
    bad = board()
    bad.x[3, 2] = torch.nan
    with pytest.raises(InputError, match=r"x\[3, 2\] is nan"):
        estimator.fit(bad)
    np.testing.assert_array_equal(estimator.predict_proba(board()), before)


def check_probabilities(factory: Factory) -> None:
    estimator, data = fitted(factory), board(7, seed=4)
    probabilities = estimator.predict_proba(data)
    assert probabilities.dtype == np.float32
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(probabilities, estimator.expansion(data).predictive().numpy())
    np.testing.assert_array_equal(estimator.predict(data), estimator.classes_[probabilities.argmax(axis=1)])
    scores = estimator.uncertainty(data)
    np.testing.assert_array_equal(scores["confidence"], probabilities.max(axis=1))
    np.testing.assert_array_equal(scores["ood_score"], estimator.ood_score(data))
    entropy = -(probabilities * np.log(probabilities)).sum(axis=1)
    np.testing.assert_allclose(scores["entropy"], entropy, atol=1e-5)
    assert (scores["mutual_information"] >= -1e-5).all()


def check_another_graph(factory: Factory) -> None:
    estimator = fitted(factory)
    for side in (2, 11):
        other = without(board(side, seed=side), "y", "train_mask", "val_mask", "test_mask")
        assert estimator.predict_proba(other).shape == (side * side, 2)
    lonely = Data(x=torch.eye(7), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert np.isfinite(estimator.predict_proba(lonely)).all()


def check_permuted_nodes(factory: Factory) -> None:
    estimator, data = fitted(factory), board(7, seed=5)
    order = torch.randperm(49, generator=torch.Generator().manual_seed(0))
    position = torch.empty(49, dtype=torch.long)
    position[order] = torch.arange(49)
    shuffled = Data(x=data.x[order], edge_index=position[data.edge_index], y=data.y[order])
    np.testing.assert_allclose(
        estimator.predict_proba(shuffled), estimator.predict_proba(data)[order.numpy()], atol=1e-5
    )
    np.testing.assert_allclose(
        estimator.ood_score(shuffled), estimator.ood_score(data)[order.numpy()], atol=1e-4
    )


def check_class_names(factory: Factory) -> None:
    data = board()
    data.y = torch.where(data.y == 1, 1000003, 7)
    estimator = factory().fit(data)
    assert estimator.classes_.tolist() == [7, 1000003]
    assert set(estimator.predict(data)) <= {7, 1000003}
    np.testing.assert_array_equal(estimator.predict_proba(data), fitted(factory).predict_proba(board()))
    data.y[:5] = 12  # a class that the model never saw counts for nothing
    expected = fitted(factory).evaluate(board(), torch.arange(64) >= 5)
    assert estimator.evaluate(data) == expected


def check_tables_with_text(factory: Factory) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = table_folder(Path(place) / "people")
        loaded = read_graph(folder)
        estimator = factory().fit(loaded, name="people")
        assert estimator.classes_.tolist() == ["cat", "dog"]
        assert set(estimator.predict(loaded)) <= {"cat", "dog"}
        frame = estimator.frame(loaded)
        assert frame["node"].tolist()[:2] == ["n-0", "n-1"]
        other = table_folder(Path(place) / "others", nodes=12, extra="green", seed=9)
        with pytest.raises(InputError, match="another encoding"):
            estimator.predict(read_graph(other))
        again = read_graph(other, encoding=estimator.state_.encoding)
        assert again.report.unseen_categories == (("hair", 1),)
        assert estimator.predict_proba(again).shape == (12, 2)


def check_missing_labels(factory: Factory) -> None:
    data = board()
    hidden = data.test_mask.nonzero()[:10, 0]
    data.y[hidden] = -1
    estimator = factory().fit(data)
    assert_same_weights(estimator, fitted(factory))  # test labels are not read
    assert estimator.state_.metrics["test"]["nodes"] == 6
    labels = estimator.state_.predictions["label"]
    assert labels.isna().sum() == 10
    assert set(labels.dropna()) == {"0", "1"}
    data.y[data.train_mask.nonzero()[0, 0]] = -1
    with pytest.raises(InputError, match=r"label of node \d+ is -1"):
        factory().fit(data)


def check_no_masks(factory: Factory) -> None:
    data = without(board(), "train_mask", "val_mask", "test_mask")
    data.y[:4] = -1
    with pytest.warns(UserWarning, match="no masks: a stratified 60/20/20 split was made with seed 3"):
        estimator = factory(seed=3).fit(data)
    assert estimator.state_.split_origin == "stratified 60/20/20, seed 3"
    split = estimator.state_.split
    assert sum(split.sizes) == 60
    assert abs(split.sizes[0] - 36) <= 1
    assert split.absent_classes(data.y, "val") == []
    assert not (split.train | split.val | split.test)[:4].any()


def check_masks_without_validation(factory: Factory) -> None:
    data = board()
    del data.val_mask
    estimator = factory().fit(data)
    split = estimator.state_.split
    assert torch.equal(split.train | split.val, data.train_mask)
    assert torch.equal(split.test, data.test_mask)
    assert abs(split.sizes[1] - 6.4) <= 1
    assert estimator.state_.split_origin == "given; a fifth of the training nodes validates, seed 0"


def check_scaling_is_remembered(factory: Factory) -> None:
    data = numbers()
    with pytest.warns(UserWarning, match="no masks"):
        estimator = factory().fit(data)
    scaling = estimator.state_.scaling
    np.testing.assert_allclose(scaling.mean, data.x.double().mean(dim=0), rtol=1e-6)
    np.testing.assert_allclose(scaling.scale, data.x.double().std(dim=0, correction=0), rtol=1e-6)
    one = numbers(seed=8)
    few = one.subgraph(torch.arange(20))  # the mean of another graph must not be its own
    stretched = Data(x=few.x * 3, edge_index=few.edge_index)
    assert not np.allclose(estimator.predict_proba(few), estimator.predict_proba(stretched), atol=1e-4)
    assert fitted(factory).state_.scaling.mean is None
    with pytest.warns(UserWarning, match="no masks"):
        raw = factory(scaling=None).fit(data)
    assert raw.state_.scaling.mean is None


def check_wrong_features(factory: Factory) -> None:
    estimator, data = fitted(factory), board()
    narrow = Data(x=data.x[:, :5], edge_index=data.edge_index)
    for name in ("predict", "predict_proba", "uncertainty", "ood_score"):
        with pytest.raises(InputError, match=r"5 features.* fitted (with|on) 7"):
            getattr(estimator, name)(narrow)


def check_bad_graphs(factory: Factory) -> None:
    one_class, no_labels = board(), without(board(), "y")
    one_class.y = torch.zeros_like(one_class.y)
    outside = board()
    outside.edge_index = outside.edge_index + 1
    cases = [
        (one_class, "1 classes, expected at least 2"),
        (no_labels, "0 classes, expected at least 2"),
        (without(board(), "x"), "has no x"),
        (without(board(), "edge_index"), "has no edge_index"),
        (outside, "names node 64, but there are 64 nodes"),
        ("a word", "does not exist"),
        (None, "cannot be a NoneType"),
        ([1, 2], "cannot be a list"),
    ]
    for data, message in cases:
        estimator = factory()
        with pytest.raises(InputError, match=message):
            estimator.fit(data)
        assert not hasattr(estimator, "model_")


def check_bad_parameters(factory: Factory) -> None:
    cases: list[tuple[str, Any]] = [
        ("method", "mlp"), ("hidden_channels", 0), ("hidden_channels", "wide"), ("hidden_channels", 10**15),
        ("num_layers", 0), ("num_layers", 10**9), ("chaos_order", -1), ("chaos_order", 10**9), ("joint_dropout", "no"),
        ("filter_orders", 3), ("filter_orders", (10**9, 4)), ("gate_order", 1.5), ("dropout", "half"),
        ("dropout", -0.1), ("input_dropout", "some"), ("residual_scale", "big"), ("residual_scale", float("nan")),
        ("warmup_epochs", -1), ("normalization", "x"), ("direction", "up"), ("self_loops", "add"),
        ("scaling", "minmax"), ("objective", "hinge"), ("chaos_weight", -1), ("lr", "fast"),
        ("lr", float("inf")), ("weight_decay", None), ("epochs", 0), ("patience", 0), ("monitor", "loss"),
        ("seed", -1), ("seed", 2**32), ("seed", 1.5), ("device", "quantum"), ("device", "meta"), ("device", 3),
    ]  # fmt: skip
    for name, value in cases:
        estimator = factory(**{name: value})  # the constructor does not judge
        with pytest.raises(InputError, match=name):
            estimator.fit(board())


def check_devices(factory: Factory) -> None:
    assert_same_weights(factory(device="cpu").fit(board()), fitted(factory))
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="device 'cuda' was asked for"):
            factory(device="cuda").fit(board())


def check_input_is_not_modified(factory: Factory) -> None:
    data = board()
    data.x = data.x * 40 - 7  # so that scaling has something to do
    before = {name: value.clone() for name, value in data.to_dict().items()}
    estimator = factory().fit(data)
    for method in (estimator.predict_proba, estimator.uncertainty, estimator.frame, estimator.evaluate):
        method(data)
    assert list(data.to_dict()) == list(before)
    for name, value in before.items():
        assert torch.equal(data[name], value), name


def check_save_and_load(factory: Factory) -> None:
    estimator, other = fitted(factory), board(9, seed=6)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "m"
        estimator.save(folder)
        again = type(estimator).load(folder)
        assert_same_weights(again, estimator)
        assert again.get_params() == estimator.get_params()
        assert again.classes_.tolist() == estimator.classes_.tolist()
        assert again.classes_.dtype == estimator.classes_.dtype
        for data in (board(), other):
            np.testing.assert_array_equal(again.predict_proba(data), estimator.predict_proba(data))
            np.testing.assert_array_equal(again.ood_score(data), estimator.ood_score(data))
        assert again.state_.predictions.equals(estimator.state_.predictions)
        assert again.state_.metrics == estimator.state_.metrics
        assert again.state_.history == estimator.state_.history
        for part in ("train", "val", "test"):
            assert torch.equal(getattr(again.state_.split, part), getattr(estimator.state_.split, part))
        again.save(Path(place) / "copy")
        assert_same_weights(type(estimator).load(Path(place) / "copy"), estimator)
        assert not [p for p in folder.iterdir() if p.read_bytes()[:2] == b"\x80\x04"], "a pickle"
    assert_same_weights(again.fit(board()), estimator)  # a loaded estimator fits as the first did


def check_frame(factory: Factory) -> None:
    estimator, data = fitted(factory), board()
    frame = estimator.frame(data)
    scores = ["entropy", "mutual_information", "chaos_energy", "energy", "ood_score"]
    assert list(frame) == ["node", "prediction", "confidence", "p_0", "p_1", *scores]
    np.testing.assert_array_equal(frame[["p_0", "p_1"]].to_numpy(), estimator.predict_proba(data))
    assert frame["node"].tolist() == list(range(64))
    assert frame["prediction"].tolist() == [str(c) for c in estimator.predict(data)]
    stored = estimator.state_.predictions.drop(columns=["label", "split"])
    assert stored.equals(frame)


CHECKS: list[Callable[[Factory], None]] = [
    value for name, value in list(globals().items()) if name.startswith("check_")
]
