"""Paired comparisons: known answers, an independent count of the exact test, and Holm by its definition."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dssgnn.errors import InputError
from dssgnn.metrics import compare_paired, holm


def exact_signed_rank(differences):
    """The two-sided p-value by counting all sign patterns."""
    ranks = np.argsort(np.argsort(np.abs(differences))) + 1
    observed = ranks[np.asarray(differences) > 0].sum()
    sums = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s)
        for signs in itertools.product([0, 1], repeat=len(ranks))
    ]
    below, above = (sum(s <= observed for s in sums), sum(s >= observed for s in sums))
    return min(1.0, 2 * min(below, above) / len(sums))


@pytest.mark.parametrize("seed", range(5))
def test_wilcoxon_is_the_exact_test(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(0.2, 0.05, 10), rng.normal(0.22, 0.05, 10)
    found = compare_paired(a, b)
    assert math.isclose(found.p_value, exact_signed_rank(a - b), rel_tol=1e-12)
    assert math.isclose(found.difference, (a - b).mean())
    assert found.wins == (a < b).sum()
    assert found.count == 10


def test_smallest_possible_p_value_of_ten_splits():
    a = np.linspace(0.1, 0.2, 10)
    assert compare_paired(a, a + np.linspace(0.01, 0.02, 10)).p_value == 2 / 2**10


def test_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    hits = 0
    for i in range(300):
        d = rng.normal(0.01, 0.02, 40)
        found = compare_paired(d, np.zeros(40), level=0.9, resamples=500, seed=i)
        hits += found.low <= 0.01 <= found.high
    assert 0.84 < hits / 300 < 0.95


def test_equal_systems():
    found = compare_paired([0.1, 0.2], [0.1, 0.2])
    assert (found.difference, found.low, found.high, found.p_value, found.wins) == (0, 0, 0, 1, 0)


def test_same_seed_same_interval():
    assert compare_paired([1, 2, 4], [2, 2, 3]) == compare_paired([1, 2, 4], [2, 2, 3])


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ([1], [1, 2], "equal length"),
        ([], [], "equal length"),
        ([math.nan], [1], "finite"),
        ([[1]], [[1]], "equal length"),
    ],
)
def test_bad_values(a, b, message):
    with pytest.raises(InputError, match=message):
        compare_paired(a, b)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_by_its_definition(p):
    order = sorted(range(len(p)), key=lambda i: p[i])
    expected, running = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p) - rank) * p[i]))
        expected[i] = running
    assert holm(p) == pytest.approx(expected)


def test_holm_refuses_what_is_no_p_value():
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        holm([0.5, 1.5])
