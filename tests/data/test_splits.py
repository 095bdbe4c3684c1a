"""Splits: the published sizes and masks, an independent rewriting of the rule, and properties."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from dssgnn.data.catalog import load
from dssgnn.data.splits import (
    SPLIT_RULES,
    SPLIT_SEEDS,
    Split,
    class_balanced_split,
    make_split,
    public_split,
    random_split,
    stratified_split,
)
from dssgnn.errors import InputError

HASHES = json.loads(Path(__file__).with_name("split_hashes.json").read_text())
# train, val, test, and the classes no test node of any split has; sizes of protocols.md 1.2
PUBLISHED = {
    "cora": ((1557, 542, 609), [1, 6]),
    "citeseer": ((1929, 665, 733), [0]),
    "texas": ((85, 37, 61), [1, 2]),
    "cornell": ((99, 37, 47), [1, 4]),
    "wisconsin": ((121, 50, 80), [0, 4]),
    "chameleon": ((1365, 455, 457), []),
    "squirrel": ((3120, 1040, 1041), []),
    "coauthor-cs": ((9105, 3667, 5561), [0, 1, 3, 6, 9, 12]),
}
PUBLIC = {
    "cora": (1, (140, 500, 1000)),
    "citeseer": (1, (120, 500, 1000)),
    "texas": (10, (87, 59, 37)),
    "cornell": (10, (87, 59, 37)),
    "wisconsin": (10, (120, 80, 51)),
    "chameleon": (10, (1092, 729, 456)),
    "squirrel": (10, (2496, 1664, 1041)),
    "minesweeper": (10, (5000, 2500, 2500)),
    "tolokers": (10, (5879, 2939, 2940)),
}
SYNTHETIC = torch.arange(1000) ** 2 % 7 % 5


@pytest.fixture(scope="module")
def graph(data_root, tmp_path_factory):
    """Load each real graph once."""
    loaded = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DSSGNN_CACHE", str(tmp_path_factory.mktemp("cache")))

        def get(name):
            if name not in loaded:
                data = load(name, data_root, download=False)
                del data.x, data.edge_index
                data.num_nodes = len(data.y)
                loaded[name] = data
            return loaded[name]

        yield get


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_ten_published_splits(graph, name):
    data = graph(name)
    splits = [make_split(name, data, index) for index in range(10)]
    sizes, absent = PUBLISHED[name]
    assert {split.sizes for split in splits} == {sizes}
    assert sum(sizes) == data.num_nodes
    never = set.intersection(*(set(split.absent_classes(data.y)) for split in splits))
    assert sorted(never) == absent
    assert [split.fingerprint() for split in splits] == HASHES["class-balanced"][name]
    assert len(set(HASHES["class-balanced"][name])) == 10


def test_wisconsin_loses_a_third_class_in_some_splits(graph):
    y = graph("wisconsin").y
    lost = [class_balanced_split(y, seed).absent_classes(y) for seed in SPLIT_SEEDS]
    assert [0, 4] in lost
    assert [0, 3, 4] in lost


@pytest.mark.parametrize("name", PUBLIC)
def test_public_masks(graph, name):
    data = graph(name)
    count, sizes = PUBLIC[name]
    splits = [public_split(data, index) for index in range(count)]
    assert {split.sizes for split in splits} == {sizes}
    assert [split.fingerprint() for split in splits] == HASHES["public"][name]
    with pytest.raises(InputError, match=f"split {count} was asked for, but {count} are published"):
        public_split(data, count)


def test_planetoid_public_split_has_twenty_a_class(graph):
    data = graph("cora")
    assert torch.bincount(data.y[public_split(data).train]).tolist() == [20] * 7


@pytest.mark.parametrize("rule", ["class-balanced", "random", "stratified"])
def test_committed_hashes_without_any_file(rule):
    data = Data(y=SYNTHETIC, num_nodes=1000)
    found = [make_split(rule, data, index).fingerprint() for index in range(10)]
    assert found == HASHES["synthetic"][rule]


@pytest.mark.parametrize("seed", SPLIT_SEEDS[:3])
def test_class_balanced_rule_against_plain_python(seed):
    """The rule once more, with lists and sets."""
    labels = [0] * 50 + [1] * 3 + [2] * 30 + [3] * 20
    order = np.random.RandomState(5).permutation(len(labels))
    labels = [labels[i] for i in order]
    state = np.random.RandomState(seed)
    quota, wanted = round(0.6 * 103 / 4), round(0.2 * 103)
    train = []
    for c in range(4):
        members = [i for i, label in enumerate(labels) if label == c]
        train += members if len(members) < quota else state.choice(members, quota, replace=False).tolist()
    rest = [i for i in range(103) if i not in set(train)]
    val = state.choice(rest, wanted, replace=False).tolist()
    split = class_balanced_split(torch.tensor(labels), seed)
    assert split.train.nonzero().flatten().tolist() == sorted(train)
    assert split.val.nonzero().flatten().tolist() == sorted(val)
    assert split.test.nonzero().flatten().tolist() == sorted(set(rest) - set(val))
    assert split.absent_classes(torch.tensor(labels)) == [1]


def test_rounding_is_pythons():
    # 0.6 * 25 / 6 = 2.5 rounds to the even 2; 0.2 * 25 = 5
    assert class_balanced_split(torch.arange(25) % 6, 0).sizes == (12, 5, 8)


def test_class_balanced_ignores_unlabelled_nodes():
    y = torch.arange(40) % 2
    padded = torch.cat([y, torch.full((7,), -1)])
    a, b = class_balanced_split(y, 3), class_balanced_split(padded, 3)
    assert torch.equal(a.train, b.train[:40])
    assert a.sizes == b.sizes


def test_random_split_is_cut_from_one_permutation():
    order = np.random.RandomState(7).permutation(57)
    split = random_split(57, 7)
    assert split.sizes == (5, 5, 47)
    assert sorted(order[:5]) == split.train.nonzero().flatten().tolist()
    assert sorted(order[5:10]) == split.val.nonzero().flatten().tolist()


def test_random_split_of_some_nodes():
    chosen = torch.tensor([3, 8, 1, 19, 11, 4, 6, 15, 0, 2])
    split = random_split(20, 1, nodes=chosen)
    assert split.sizes == (1, 1, 8)
    assert (split.train | split.val | split.test).nonzero().flatten().tolist() == sorted(chosen.tolist())
    mask = torch.zeros(20, dtype=torch.bool)
    mask[chosen] = True
    assert random_split(20, 1, nodes=mask).sizes == (1, 1, 8)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(-1, 4), min_size=1, max_size=120).filter(lambda labels: max(labels) >= 0),
    st.tuples(*[st.integers(0, 10)] * 3).filter(lambda parts: sum(parts) > 0),
    st.integers(0, 2**32 - 1),
)
def test_stratified_split_properties(labels, parts, seed):
    y = torch.tensor(labels)
    fractions = [part / sum(parts) for part in parts]
    split = stratified_split(y, fractions, seed)
    assert torch.equal(split.train | split.val | split.test, y >= 0)
    for c in range(int(y.max()) + 1):
        members = y == c
        for mask, fraction in zip((split.train, split.val, split.test), fractions, strict=True):
            assert abs(int((mask & members).sum()) - fraction * int(members.sum())) < 1
    assert split.fingerprint() == stratified_split(y, fractions, seed).fingerprint()


def test_fractions_below_one_leave_nodes_out():
    assert stratified_split(torch.zeros(100, dtype=torch.int64), (0.1, 0.2, 0.3), 0).sizes == (10, 20, 30)


def test_public_split_of_pygs_own_masks():
    mask = torch.tensor([True, False, False])
    one = Data(train_mask=mask, val_mask=mask.roll(1), test_mask=mask.roll(2), num_nodes=3)
    assert public_split(one).sizes == (1, 1, 1)
    two = Data(
        train_mask=torch.stack([mask, mask.roll(1)], 1), val_mask=torch.stack([mask.roll(1), mask], 1),
        test_mask=torch.stack([mask.roll(2)] * 2, 1), num_nodes=3,
    )  # fmt: skip
    assert public_split(two, 1).train.tolist() == [False, True, False]


def test_apply_leaves_its_argument_alone():
    data = Data(y=torch.arange(10) % 2, num_nodes=10)
    out = random_split(10, 0).apply(data)
    assert (int(out.train_mask.sum()), int(out.test_mask.sum())) == (1, 8)
    assert "train_mask" not in data
    with pytest.raises(InputError, match="the split is for 9 nodes, the graph has 10"):
        random_split(9, 0).apply(data)


def test_absent_classes_of_each_part():
    y = torch.tensor([0, 0, 1, 2, -1])
    split = Split(y == 0, y == 1, y == 2)
    assert [split.absent_classes(y, part) for part in ("train", "val", "test")] == [[1, 2], [0, 2], [0, 1]]
    with pytest.raises(InputError, match="part must be one of train, val, test, got 'all'"):
        split.absent_classes(y, "all")


YES, NO = torch.ones(3, dtype=torch.bool), torch.zeros(3, dtype=torch.bool)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Split(YES, YES, NO), "node 0 is in both train and val"),
        (lambda: Split(YES, NO, torch.zeros(3)), "test must be a boolean tensor"),
        (lambda: Split(YES, NO[:2], NO), "val has 2 nodes, but train has 3"),
        (lambda: make_split("no-such", Data(num_nodes=3)), "'no-such' is neither a split rule"),
        (lambda: make_split("class-balanced", Data(y=SYNTHETIC), 10), "split 10 was asked for, but ten"),
        (lambda: make_split("random", Data(num_nodes=3), -1), "index must be an integer >= 0, got -1"),
        (lambda: public_split(Data(num_nodes=3)), "no published split: neither train_masks nor train_mask"),
        (lambda: class_balanced_split(torch.full((3,), -1), 0), "y has no labelled node"),
        (lambda: class_balanced_split(torch.zeros(3), 0), "y must be int64 class numbers"),
        (lambda: class_balanced_split(torch.arange(3), -1), "seed must be an integer in 0"),
        (lambda: stratified_split(torch.arange(3), (0.6, 0.6, 0.1)), "add up to at most 1"),
        (lambda: stratified_split(torch.arange(3), (0.6, 0.4)), "fractions must be 3 numbers"),
        (lambda: random_split(0, 0), "num_nodes must be an integer >= 1, got 0"),
    ],
)
def test_errors(wrong, message):
    with pytest.raises(InputError, match=message):
        wrong()


def test_every_rule_is_reachable_by_name():
    assert list(SPLIT_RULES) == ["class-balanced", "public", "random", "stratified"]
