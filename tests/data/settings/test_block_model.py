"""The block model: pairs decoded exactly, subsets uniform, counts binomial, edges simple and symmetric."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dssgnn.data.settings.block_model import block_model, distinct_integers, unordered_pair
from dssgnn.errors import InputError


def test_pair_numbers_are_a_bijection():
    n = 400
    low, high = unordered_pair(np.arange(n * (n - 1) // 2))
    expected = [(i, j) for j in range(n) for i in range(j)]
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == expected


@given(st.integers(1, 3_000_000_000), st.data())
def test_pair_numbers_are_exact_where_doubles_are_not(high, data):
    # The largest number here is beyond 2**61, the square root is rounded there.
    low = data.draw(st.sampled_from([0, high // 2, high - 1]))
    got_low, got_high = unordered_pair(np.array([high * (high - 1) // 2 + low]))
    assert (int(got_low[0]), int(got_high[0])) == (low, high)


@pytest.mark.parametrize(("population", "count"), [(8, 2), (9, 2), (6, 5)])
def test_subsets_are_uniform(population, count):
    rng = np.random.default_rng(0)
    subsets = dict.fromkeys(combinations(range(population), count), 0)
    draws = 200 * len(subsets)
    for _ in range(draws):
        subsets[tuple(sorted(distinct_integers(rng, population, count).tolist()))] += 1
    assert stats.chisquare(list(subsets.values())).pvalue > 0.01


@given(st.integers(0, 2000), st.data())
def test_subsets_hold_distinct_members(population, data):
    count = data.draw(st.integers(0, population))
    drawn = distinct_integers(np.random.default_rng(count), population, count)
    assert len(np.unique(drawn)) == len(drawn) == count
    assert drawn.dtype == np.int64
    assert count == 0 or (drawn.min() >= 0 and drawn.max() < population)


def test_a_huge_population_needs_no_memory():
    drawn = distinct_integers(np.random.default_rng(0), 2**62, 1000)
    assert len(np.unique(drawn)) == 1000
    assert stats.kstest(drawn / 2**62, "uniform").pvalue > 0.01


def test_every_pair_is_an_edge_with_its_own_probability():
    sizes = [3, 2, 4]
    chance = np.array([[0.6, 0.1, 0.3], [0.1, 0.9, 0.5], [0.3, 0.5, 0.2]])
    block = np.repeat(np.arange(3), sizes)
    draws, seen = 4000, np.zeros((9, 9))
    counts = []
    rng = np.random.default_rng(1)
    for _ in range(draws):
        edges = block_model(sizes, chance, rng).numpy()
        seen[edges[0], edges[1]] += 1
        counts.append(edges.shape[1] // 2)
    expected = chance[block][:, block]
    np.fill_diagonal(expected, 0)
    z = (seen / draws - expected) / np.sqrt(np.maximum(expected * (1 - expected), 1e-9) / draws)
    assert np.abs(z).max() < 4
    # Pairs are independent: the variance of the number of edges is the sum over the pairs.
    upper = expected[np.triu_indices(9, 1)]
    assert np.mean(counts) == pytest.approx(upper.sum(), abs=4 * np.sqrt((upper * (1 - upper)).sum() / draws))
    assert np.var(counts) == pytest.approx((upper * (1 - upper)).sum(), rel=0.1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=5), st.floats(0, 1), st.integers(0, 2**32))
def test_edges_are_simple_symmetric_and_sorted(sizes, chance, seed):
    probabilities = np.full((len(sizes), len(sizes)), chance)
    edges = block_model(sizes, probabilities, np.random.default_rng(seed))
    pairs = list(zip(*edges.tolist(), strict=True))
    assert edges.dtype == torch.int64
    assert pairs == sorted(set(pairs))
    assert all(i != j and (j, i) in set(pairs) for i, j in pairs)
    assert edges.numel() == 0 or (edges.min() >= 0 and edges.max() < sum(sizes))
    again = block_model(sizes, probabilities, np.random.default_rng(seed))
    assert torch.equal(edges, again)


def test_certain_edges_make_a_complete_graph():
    edges = block_model([4, 3], np.ones((2, 2)), np.random.default_rng(0))
    assert edges.size(1) == 7 * 6


@pytest.mark.parametrize(
    ("sizes", "chance", "message"),
    [
        ([2, -1], np.zeros((2, 2)), r"block_sizes must be one or more numbers >= 0, got \[2, -1\]"),
        ([], np.zeros((0, 0)), "block_sizes must be one or more"),
        ([2, 1], np.zeros((3, 3)), r"shape \[2, 2\], got \[3, 3\]"),
        ([2], [[1.5]], r"within 0\.\.1, got 1.5"),
        ([2], [[float("nan")]], r"within 0\.\.1, got nan"),
        ([2, 2], [[0.1, 0.2], [0.3, 0.1]], "symmetric"),
    ],
)
def test_bad_models_are_refused(sizes, chance, message):
    with pytest.raises(InputError, match=message):
        block_model(sizes, chance, np.random.default_rng(0))
