"""The one check: fatal things raise, odd things are counted exactly."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from dssgnn.data.checks import check_graph
from dssgnn.errors import InputError


def graph(**changes: object) -> Data:
    content = {
        "x": torch.arange(10.0).reshape(5, 2),
        "edge_index": torch.tensor([[0, 1, 0, 2, 2], [1, 0, 1, 2, 3]]),
        "y": torch.tensor([0, 1, 1, -1, 4]),
        "train_mask": torch.tensor([True, True, False, False, False]),
        "val_mask": torch.tensor([False, False, True, True, False]),
        "test_mask": torch.tensor([False, False, False, False, False]),
    }
    return Data(**{k: v for k, v in {**content, **changes}.items() if v is not None})


def test_counts_of_a_known_graph() -> None:
    report = check_graph(graph())
    assert (report.num_nodes, report.num_edges, report.num_features) == (5, 5, 2)
    assert (report.num_classes, report.labelled) == (3, 4)
    assert report.duplicate_edges == 1  # 0 -> 1 twice
    assert report.self_loops == 1  # 2 -> 2
    assert report.isolated_nodes == 1  # node 4
    assert report.one_way_edges == 1  # 2 -> 3
    assert report.parts == (("train", 2), ("val", 2), ("test", 0))
    assert report.unlabelled == (("train", 0), ("val", 1), ("test", 0))
    assert report.train_classes == 2
    assert report.lines() == (
        "5 nodes, 5 edges, 2 features, 3 classes, 4 labelled nodes",
        "split: 2 train, 2 val, 0 test",
        "1 duplicate edges, 1 self-loops, 1 isolated nodes, 1 edges without their reverse",
        "note: no nodes in test",
        "note: 1 nodes in val have no label",
        "note: only 2 of 3 classes are among the training nodes",
    )


def test_a_clean_graph_has_one_line() -> None:
    clean = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1]))
    assert check_graph(clean, training=True).lines() == (
        "2 nodes, 2 edges, 1 features, 2 classes, 2 labelled nodes",
    )


def test_neither_edges_nor_labels_are_needed() -> None:
    report = check_graph(graph(edge_index=torch.zeros(2, 0, dtype=torch.int64), y=None))
    assert (report.num_edges, report.isolated_nodes, report.labelled, report.num_classes) == (0, 5, 0, 0)
    assert "note: 0 class among the training nodes, at least 2 are needed to learn" in report.lines()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"x": None}, "no x"),
        ({"edge_index": None}, "no edge_index"),
        ({"x": torch.ones(5)}, "shape"),
        ({"x": torch.ones(5, 0)}, "at least one node and one feature"),
        ({"x": torch.ones(5, 2, dtype=torch.int64)}, "floating point"),
        ({"x": torch.eye(5).to_sparse()}, "dense"),
        ({"x": torch.tensor([[0.0], [0], [0], [float("nan")], [0]])}, r"x\[3, 0\] is nan"),
        ({"edge_index": torch.tensor([[0], [5]])}, "names node 5"),
        ({"edge_index": torch.tensor([[0], [-1]])}, "negative node -1"),
        ({"edge_weight": torch.ones(4)}, "edge_weight"),
        ({"edge_weight": torch.tensor([1.0, 1, 1, 1, float("inf")])}, "edge 4 is inf"),
        ({"y": torch.zeros(4, dtype=torch.int64)}, "y must have shape"),
        ({"y": torch.zeros(5)}, "int64"),
        ({"y": torch.tensor([0, 1, 1, -2, 4])}, "label of node 3 is -2"),
        ({"y": [0, 1, 1, 1, 1]}, "y must be a tensor"),
        ({"val_mask": torch.tensor([False, True, True, False, False])}, "node 1 is in both"),
        ({"val_mask": torch.zeros(5)}, "boolean"),
        ({"val_mask": torch.zeros(5, 10, dtype=torch.bool)}, "shape"),
    ],
)
def test_fatal(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        check_graph(graph(**changes))
    with pytest.raises(InputError, match=r"^here: ") as caught:
        check_graph(graph(**changes), source="here")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"train_mask": torch.zeros(5, dtype=torch.bool)}, "train_mask is empty"),
        ({"train_mask": torch.tensor([True, False, False, False, False])}, "all of class 0"),
        ({"y": torch.tensor([0, -1, 1, 1, 4])}, "label of node 1 is -1"),
        ({"y": None}, "0 classes"),
        ({"y": None, "train_mask": None}, "0 classes"),
        ({"y": torch.zeros(5, dtype=torch.int64), "train_mask": None}, "1 classes"),
    ],
)
def test_fatal_only_for_training(changes: dict[str, object], problem: str) -> None:
    check_graph(graph(**changes))
    with pytest.raises(InputError, match=problem):
        check_graph(graph(**changes), training=True)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))
    )
)
def test_counts_agree_with_sets_and_survive_relabelling(case: tuple[int, list[tuple[int, int]]]) -> None:
    n, edges = case
    pairs, edge_index = set(edges), torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    report = check_graph(Data(x=torch.ones(n, 1), edge_index=edge_index))
    assert report.duplicate_edges == len(edges) - len(pairs)
    assert report.self_loops == sum(a == b for a, b in edges)
    assert report.isolated_nodes == n - len({end for a, b in edges if a != b for end in (a, b)})
    assert report.one_way_edges == sum((b, a) not in pairs for a, b in pairs)
    order = torch.from_numpy(np.random.default_rng(0).permutation(n))
    assert check_graph(Data(x=torch.ones(n, 1), edge_index=order[edge_index])) == report
