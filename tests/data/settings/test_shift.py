"""GOOD's split generators, against the rule as a plain loop and the counts of baselines.md section 4."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from dssgnn.data.settings import good
from dssgnn.data.settings.shift import CONCEPT_BIAS, concept_split, covariate_split, domain_ids
from dssgnn.errors import InputError

ROLES = ("train", "test", "train", "train")
PICK = (0.4, 0.6, 0.5, 1.0)


def walked_parts(domain, cuts):
    """The walk over sorted nodes, one at a time."""
    part, parts = -1, []
    for i, value in enumerate(domain):
        if part < len(cuts) - 1 and i >= cuts[part + 1] and (i == 0 or value != domain[i - 1]):
            part += 1
        parts.append(part)
    return parts


def looped_concept(domain, y, seed, bias):
    """The concept passes with one pair of draws a node, as a loop: the part and environment of every node."""
    rng, _ = np.random.default_rng(seed).spawn(2)
    labelled = [v for v in range(len(y)) if y[v] >= 0]
    mean = sum(y[v] for v in labelled) / len(labelled)
    members = {}
    for v in labelled:
        members.setdefault(domain[v], []).append(v)
    sign, before = {}, 0
    for value in sorted(members):
        sign[value] = 1 if before < len(labelled) / 2 else -1
        before += len(members[value])
    where, environment, train_passes = {}, {}, 0
    for number, role in enumerate(ROLES):
        for value in sorted(members):
            direction = sign[value] if role == "train" else -sign[value]
            taken, rejected, present = [], {}, set()
            for v in members[value]:
                u1, u2 = rng.random(), rng.random()
                aligned = direction * (y[v] - mean) > 0
                present.add(aligned)
                if u1 < PICK[number] and (u2 < bias[number] if aligned else u2 > bias[number]):
                    taken.append((v, aligned))
                else:
                    rejected[aligned] = v
            kinds = {aligned for _, aligned in taken}
            if len(present) == 2 and len(kinds) == 1:
                missing = not kinds.pop()
                taken.append((rejected[missing], missing))
            for v, _ in taken:
                where[v] = role
                environment[v] = train_passes
                members[value].remove(v)
        train_passes += role == "train"
    for rest in members.values():
        where.update(dict.fromkeys(rest, "val"))
    return where, environment


def pools(split):
    """Training pool, validation and test: what is drawn before id_val and id_test leave the pool."""
    return split.train | split.id_val | split.id_test, split.val, split.test


domains = st.lists(st.integers(-3, 6), min_size=12, max_size=80)


@settings(max_examples=100, deadline=None)
@given(domains, st.integers(0, 2**31), st.booleans(), st.integers(1, 12))
def test_covariate_split_is_the_walk(domain, seed, descending, environments):
    ordered = sorted(domain, reverse=descending)
    n = len(domain)
    parts = walked_parts(ordered, [0, int(n * 0.6), int(n * 0.8)])
    pool = [value for value, part in zip(ordered, parts, strict=True) if part == 0]
    m = int(0.1 * n)
    keywords = {"seed": seed, "descending": descending, "num_environments": environments}
    if max(parts) < 2 or len(pool) <= 2 * m:
        with pytest.raises(InputError, match="leave a mask empty"):
            covariate_split(domain, **keywords)
        return
    split = covariate_split(domain, **keywords)
    part_of = dict(zip(ordered, parts, strict=True))  # a domain is never cut
    expected = torch.tensor([part_of[value] for value in domain])
    for number, mask in enumerate(pools(split)):
        assert torch.equal(mask, expected == number)
    assert split.sizes()[1:3] == (m, m)
    step = len(pool) // environments
    numbers = dict(zip(pool, walked_parts(pool, [step * e for e in range(environments)]), strict=True))
    wanted = [numbers[v] if t else -1 for v, t in zip(domain, split.train.tolist(), strict=True)]
    assert split.environment.tolist() == wanted


@settings(max_examples=60, deadline=None)
@given(domains, st.randoms(use_true_random=False), st.integers(0, 1000))
def test_covariate_parts_follow_a_renumbering_of_nodes(domain, random, seed):
    order = list(range(len(domain)))
    random.shuffle(order)
    try:
        split = covariate_split(domain, seed=seed)
    except InputError:
        with pytest.raises(InputError):
            covariate_split([domain[i] for i in order], seed=seed)
        return
    other = covariate_split([domain[i] for i in order], seed=seed)
    for a, b in zip(pools(split), pools(other), strict=True):
        assert torch.equal(a[order], b)
    assert split.sizes() == other.sizes()


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(0, 2**31), st.sampled_from([CONCEPT_BIAS, (0.8, 0.7, 0.8, 0.7)]))
def test_concept_split_is_the_loop(data, seed, bias):
    n = data.draw(st.integers(30, 120))
    domain = data.draw(st.lists(st.integers(0, 7), min_size=n, max_size=n))
    y = data.draw(st.lists(st.integers(-1, 4), min_size=n, max_size=n))
    labelled = {v for v in range(n) if y[v] >= 0}
    if len({domain[v] for v in labelled}) < 2:
        with pytest.raises(InputError, match="at least 2 domains"):
            concept_split(domain, torch.tensor(y), seed=seed, bias=bias)
        return
    where, environment = looped_concept(domain, y, seed, bias)
    try:
        split = concept_split(domain, torch.tensor(y), seed=seed, bias=bias)
    except InputError:
        pool = sum(role == "train" for role in where.values())
        assert int(0.15 * pool) == 0 or set(where.values()) != {"train", "val", "test"}
        return
    for name, mask in zip(("train", "val", "test"), pools(split), strict=True):
        assert set(mask.nonzero().flatten().tolist()) == {v for v, role in where.items() if role == name}
    for v in range(n):
        assert int(split.environment[v]) == (environment[v] if split.train[v] else -1)
    assert torch.equal(torch.stack(list(split.masks().values())).sum(dim=0), (torch.tensor(y) >= 0).long())
    again = concept_split(domain, torch.tensor(y), seed=seed, bias=bias)
    assert all(torch.equal(a, b) for a, b in zip(split.masks().values(), again.masks().values(), strict=True))


def test_concept_probabilities():
    """Two domains of many nodes and balanced labels: every mask's share by kind of node is known exactly."""
    n = 80_000
    domain = ["a"] * (n // 2) + ["b"] * (n // 2)
    y = torch.arange(n) % 2
    split = concept_split(domain, y, seed=0)
    aligned = (y == 1) == (
        torch.arange(n) < n // 2
    )  # in training; domain b starts at N/2, where the sign turns
    for kind, mask in ((True, aligned), (False, ~aligned)):
        left, share = 1.0, {"train": 0.0, "test": 0.0}
        for role, bias, pick in zip(ROLES, CONCEPT_BIAS, PICK, strict=True):
            chance = pick * (bias if kind == (role == "train") else 1 - bias)
            share[role] += left * chance
            left *= 1 - chance
        expected = (share["train"], left, share["test"])
        got = [float(pool[mask].double().mean()) for pool in pools(split)]
        assert got == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(n / 2))
    # Training ties high labels to the low domain, test reverses it.
    first = torch.arange(n) < n // 2
    assert float(y[split.train & first].double().mean()) > 0.85
    assert float(y[split.train & ~first].double().mean()) < 0.15
    assert float(y[split.test & first].double().mean()) < 0.15
    assert split.num_environments == 3


def test_twitch_shaped_covariate_counts():
    languages = np.repeat(["DE", "EN", "ES", "FR", "PT", "RU"], [9498, 7126, 4648, 6551, 1912, 4385])
    split = covariate_split(np.random.default_rng(0).permutation(languages), seed=0)
    assert split.sizes() == (14_448, 3_412, 3_412, 6_551, 6_297)
    assert split.num_environments == 3


def test_arxiv_shaped_time_counts():
    # The totals of the three periods are OGB's; how they fall on the years before 2017 is made up.
    years = np.repeat([2012, 2015, 2017, 2018, 2019, 2020], [20_000, 35_000, 35_941, 29_799, 39_711, 8_892])
    data = Data(
        x=torch.zeros(169_343, 1),
        edge_index=torch.zeros(2, 0, dtype=torch.int64),
        y=torch.arange(169_343) % 40,
    )
    setting = good.arxiv(data, torch.from_numpy(years), "covariate", seed=0)
    assert setting.split.sizes() == (57_073, 16_934, 16_934, 29_799, 48_603)
    assert good.arxiv(data, torch.from_numpy(years), "concept", seed=0).split.num_environments == 3


def test_a_domain_may_be_strings_numbers_tensors_or_a_column():
    values = ["b", "a", "c", "a"]
    assert domain_ids(values).tolist() == [1, 0, 2, 0]
    assert domain_ids(pd.Series(values)).tolist() == [1, 0, 2, 0]
    assert domain_ids(np.array(values, dtype=object)).tolist() == [1, 0, 2, 0]
    assert domain_ids(torch.tensor([0.5, -1.0, 2.0, -1.0])).tolist() == [1, 0, 2, 0]
    assert domain_ids(values, torch.tensor([True, False, True, False])).tolist() == [0, -1, 1, -1]


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        ([1.0, float("nan")], "domain value of node 1 is nan"),
        ([[1, 2]], r"one number or string a node, got int64 \[1, 2\]"),
        ([], "one number or string a node"),
        ([None, "a"], "one number or string a node, got object"),
        ([1] * 30, "leave a mask empty"),
        ([1] * 15 + [2] * 15, "leave a mask empty"),
        ([1, 2, 3], "leave a mask empty.*id_val 0"),
    ],
)
def test_bad_domains_are_refused(domain, message):
    with pytest.raises(InputError, match=message):
        covariate_split(domain, seed=0)


def test_bad_arguments_are_refused():
    domain, y = [0, 1, 2] * 20, torch.arange(60) % 4
    with pytest.raises(InputError, match=r"sum below 1.*got 0\.9, 0\.2"):
        covariate_split(domain, seed=0, train_fraction=0.9)
    with pytest.raises(InputError, match="seed must be an integer >= 0, got -3"):
        covariate_split(domain, seed=-3)
    with pytest.raises(InputError, match="num_environments must be"):
        covariate_split(domain, seed=0, num_environments=0)
    with pytest.raises(InputError, match="bias must be four probabilities"):
        concept_split(domain, y, seed=0, bias=(0.9, 0.9, 0.9))
    with pytest.raises(InputError, match=r"domain has 60 values, but labels or mask have shape \[59\]"):
        concept_split(domain, y[:-1], seed=0)
    with pytest.raises(InputError, match="at least 2 domains, got 1"):
        concept_split([0] * 60, y, seed=0)


def random_graph(n=300, channels=6, classes=4):
    gen = torch.Generator().manual_seed(1)
    edges = torch.randint(n, (2, 5 * n), generator=gen)
    return Data(
        x=torch.randint(3, (n, channels), generator=gen).float(),
        edge_index=edges,
        y=torch.randint(classes, (n,), generator=gen),
    )


def test_degree_and_mass_train_on_large_values():
    data = random_graph()
    degree = [int((data.edge_index[0] == v).sum()) for v in range(300)]
    assert good.degree(data).tolist() == degree
    for make, value in ((good.by_degree, good.degree(data)), (good.by_feature_mass, data.x.sum(dim=1))):
        setting = make("random", data, "covariate", seed=0)
        pool, val, test = pools(setting.split)
        assert value[pool].min() > value[val].max() >= value[val].min() > value[test].max()
        assert setting.name == ("random-degree" if make is good.by_degree else "random-word")
        assert make("random", data, "concept", seed=0).split.num_environments == 3
    assert setting.data is data


def test_normalised_features_have_no_mass():
    data = random_graph()
    data.x = data.x / data.x.sum(dim=1, keepdim=True)
    with pytest.raises(InputError, match="normalise after"):
        good.by_feature_mass("random", data, "covariate", seed=0)


def test_named_settings_put_graphs_side_by_side():
    sizes = {"DE": 60, "ENGB": 50, "ES": 40, "FR": 46, "PTBR": 20, "RU": 30}
    regions = {name: random_graph(size) for name, size in reversed(sizes.items())}
    setting = good.twitch(regions, "covariate", seed=0)
    pool, val, test = pools(setting.split)
    assert [int(mask.sum()) for mask in (pool, val, test)] == [150, 46, 50]
    assert bool(pool[:150].all())
    assert torch.equal(setting.data.x[60:110], regions["ENGB"].x)
    assert torch.equal(setting.data.edge_index[:, 300:550], regions["ENGB"].edge_index + 60)
    with pytest.raises(InputError, match="twitch needs PT, RU too, got DE, EN, ES, FR"):
        good.twitch({name: regions[name] for name in ("DE", "ENGB", "ES", "FR")}, "concept", seed=0)
    with pytest.raises(InputError, match="'covariate' or 'concept', got 'label'"):
        good.twitch(regions, "label", seed=0)
    regions["RU"].x = regions["RU"].x[:, :2]
    with pytest.raises(InputError, match=r"same number of features, got \[2, 6\]"):
        good.twitch(regions, "concept", seed=0)


def test_apply_adds_masks_to_a_copy():
    setting = good.by_degree("random", random_graph(), "concept", seed=0)
    graph = setting.split.apply(setting.data)
    assert torch.equal(graph.id_val_mask, setting.split.id_val)
    assert torch.equal(graph.environment, setting.split.environment)
    assert graph.x is setting.data.x
    assert "train_mask" not in setting.data
    with pytest.raises(InputError, match="split is of 300 nodes, but the graph has 10"):
        setting.split.apply(random_graph(10))
