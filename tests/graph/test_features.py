"""`SparseFeatures` and its product, against the dense ones."""

import subprocess
import sys
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dssgnn.errors import InputError
from dssgnn.graph import SparseFeatures, sparse_linear, sparse_where_faster

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def bag(
    rows: int, columns: int, density: float, seed: int = 0, dtype: torch.dtype = torch.float64
) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, columns, generator=generator, dtype=dtype)
    return x * (torch.rand(rows, columns, generator=generator) < density)


patterns = st.builds(
    bag,
    st.integers(1, 7),
    st.integers(1, 7),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),  # 0 is a matrix of zeros; 0.1 leaves rows and columns empty
    st.integers(0, 10_000),
)


@given(patterns)
def test_dense_gives_back_what_was_given(x: torch.Tensor) -> None:
    sparse = SparseFeatures.from_dense(x)
    assert torch.equal(sparse.dense(), x)
    assert sparse.shape == x.shape
    assert sparse.density == pytest.approx(int(x.count_nonzero()) / x.numel())


@given(patterns)
def test_the_transpose_is_the_transpose(x: torch.Tensor) -> None:
    sparse = SparseFeatures.from_dense(x)
    values = sparse.values[sparse.permutation]
    identity = torch.eye(x.size(0), dtype=x.dtype)
    assert torch.equal(sparse.transposed.product(values, identity), x.T)


@given(patterns, st.integers(1, 3))
def test_product_and_gradient_are_the_dense_ones(x: torch.Tensor, width: int) -> None:
    weight = torch.randn(x.size(1), width, dtype=x.dtype, requires_grad=True)
    outer = torch.randn(x.size(0), width, dtype=x.dtype)
    ours, theirs = sparse_linear(SparseFeatures.from_dense(x), weight), x @ weight
    torch.testing.assert_close(ours, theirs, **EXACT)
    got, want = (torch.autograd.grad(out, weight, outer)[0] for out in (ours, theirs))
    torch.testing.assert_close(got, want, **EXACT)


@pytest.mark.parametrize("width", [1, 5, 64])
def test_float32_takes_another_kernel_to_the_same_result(width: int) -> None:
    x = bag(50, 30, 0.1)
    weight = torch.randn(30, width, dtype=torch.float64)
    got = sparse_linear(SparseFeatures.from_dense(x).to(torch.float32), weight.float())
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), x @ weight, rtol=1e-5, atol=1e-5)


def test_a_gradient_that_is_not_contiguous() -> None:
    x, weight = bag(6, 4, 0.5), torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    outer = torch.randn(3, 6, dtype=torch.float64)
    (got,) = torch.autograd.grad(sparse_linear(SparseFeatures.from_dense(x), weight), weight, outer.T)
    torch.testing.assert_close(got, x.T @ outer.T, **EXACT)


def test_values_are_replaced_in_both_layouts() -> None:
    x = bag(8, 5, 0.4)
    sparse = SparseFeatures.from_dense(x)
    doubled = sparse.with_values(2 * sparse.values)
    weight = torch.randn(5, 2, dtype=torch.float64, requires_grad=True)
    out = sparse_linear(doubled, weight)
    torch.testing.assert_close(out, 2 * x @ weight, **EXACT)
    (grad,) = torch.autograd.grad(out.sum(), weight)
    torch.testing.assert_close(grad, 2 * x.T @ torch.ones(8, 2, dtype=torch.float64), **EXACT)
    assert torch.equal(sparse.dense(), x)


@pytest.mark.parametrize(("own_values", "own_weight"), [(False, True), (True, False), (True, True)])
def test_a_population_equals_its_members(own_values: bool, own_weight: bool) -> None:
    x = SparseFeatures.from_dense(bag(9, 6, 0.3))
    values = torch.randn(4, x.values.numel(), dtype=torch.float64) if own_values else x.values
    weight = torch.randn(*((4,) if own_weight else ()), 6, 2, dtype=torch.float64, requires_grad=True)
    dims = (0 if own_values else None, 0 if own_weight else None)
    out = torch.vmap(lambda v, w: sparse_linear(x.with_values(v), w), in_dims=dims)(values, weight)
    members = [
        sparse_linear(x.with_values(values[i] if own_values else values), weight[i] if own_weight else weight)
        for i in range(4)
    ]
    torch.testing.assert_close(out, torch.stack(members), **EXACT)
    outer = torch.randn_like(out)
    got, want = (torch.autograd.grad(o, weight, outer)[0] for o in (out, torch.stack(members)))
    torch.testing.assert_close(got, want, **EXACT)


def test_a_batch_of_weights_in_any_dimension() -> None:
    x = SparseFeatures.from_dense(bag(9, 6, 0.3))
    weight = torch.randn(6, 2, 4, dtype=torch.float64)
    out = torch.vmap(lambda w: sparse_linear(x, w), in_dims=2, out_dims=2)(weight)
    torch.testing.assert_close(out, torch.einsum("nf,fdb->ndb", x.dense(), weight), **EXACT)


def test_conversion() -> None:
    x = SparseFeatures.from_dense(bag(4, 3, 0.5))
    assert x.to(torch.float64) is x
    assert x.to("cpu") is x
    assert x.to(torch.float32).dtype == torch.float32
    assert x.device == torch.device("cpu")
    assert (x.size(0), x.size(1)) == (4, 3)
    assert repr(x) == f"SparseFeatures(4 x 3, {x.values.numel()} entries, torch.float64)"


def test_only_a_matrix_of_mostly_zeros_is_converted() -> None:
    assert isinstance(sparse_where_faster(bag(50, 200, 0.01)), SparseFeatures)
    dense = bag(50, 200, 0.9)
    assert sparse_where_faster(dense) is dense


@pytest.mark.parametrize("x", [torch.ones(3), torch.ones(2, 2, dtype=torch.int64), [[1.0]]])
def test_what_is_not_a_matrix_of_floats_is_refused(x: object) -> None:
    with pytest.raises(InputError, match=r"floating-point tensor \[N, features\]"):
        SparseFeatures.from_dense(x)  # type: ignore[arg-type]


def test_wrong_shapes_are_refused() -> None:
    x = SparseFeatures.from_dense(torch.eye(3))
    with pytest.raises(InputError, match=r"weight must have shape \[3, d\], got \[4, 2\]"):
        sparse_linear(x, torch.ones(4, 2))
    with pytest.raises(InputError, match=r"values \[3\], got \[2\]"):
        x.with_values(torch.ones(2))


def test_values_that_learn_are_refused() -> None:
    x = SparseFeatures.from_dense(torch.eye(3))
    with pytest.raises(InputError, match=r"sparse features are constants: give values\.detach\(\)"):
        x.with_values(torch.ones(3, requires_grad=True))


def test_a_product_leaves_the_filters_of_the_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads that change and restore them would leave them changed."""

    def changed(*_: object, **__: object) -> None:
        raise AssertionError("the filters were changed")

    x, weight = bag(8, 5, 0.4), torch.ones(5, 2, dtype=torch.float64)
    with monkeypatch.context() as patch:
        patch.setattr(warnings, "catch_warnings", changed)
        got = sparse_linear(SparseFeatures.from_dense(x), weight)
    torch.testing.assert_close(got, x @ weight, **EXACT)


def test_what_torch_says_of_csr_is_not_heard() -> None:
    code = """
import warnings, scipy.sparse, torch
warnings.simplefilter("always")
before = list(warnings.filters)
from dssgnn.graph import GraphOperator, SparseFeatures, sparse_linear
one = torch.ones(1, 1, dtype=torch.float64)
sparse_linear(SparseFeatures.from_dense(one), one)
GraphOperator.from_edge_index(torch.tensor([[0], [1]]), 2).to(torch.float64)
assert [f for f in warnings.filters if f not in before and "sparse" in str(f[1])] == []
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Sparse" not in done.stderr
