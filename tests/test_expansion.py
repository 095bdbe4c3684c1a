"""`ChaosExpansion`: every readout against brute force, and finite whatever the size of the logits."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from torch import Tensor

import reference
from dssgnn import ChaosExpansion
from dssgnn.errors import InputError

F64 = torch.float64
READOUTS = ("predictive", "log_predictive", "entropy", "mutual_information", "energy")


def some(nodes: int, order: int, classes: int, scale: float = 1.0, seed: int = 0) -> Tensor:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(nodes, order + 1, classes, generator=g, dtype=F64) * scale


@pytest.mark.parametrize("size", [None, 1, 3, 20])
@pytest.mark.parametrize(("order", "classes"), [(0, 2), (1, 1), (2, 3), (5, 7)])
def test_every_readout_against_loops(order: int, classes: int, size: int | None) -> None:
    z = some(6, order, classes, scale=1.5, seed=order)
    expansion = ChaosExpansion(z, size)
    used = max(4, order + 1) if size is None else size
    assert expansion.quadrature_size == used
    assert (expansion.num_nodes, expansion.chaos_order, expansion.num_classes) == (6, order, classes)
    for i in range(6):
        expected = reference.readouts(z[i].numpy(), used)
        for name in ("mean", "variance", "covariance", "chaos_energy"):
            got = getattr(expansion, name)[i]
            assert torch.allclose(got, torch.tensor(expected[name], dtype=F64), atol=1e-12, rtol=0), name
        for name in ("predictive", "entropy", "mutual_information", "energy"):
            got = getattr(expansion, name)()[i]
            assert torch.allclose(got, torch.tensor(expected[name], dtype=F64), atol=1e-12, rtol=0), name
        for temperature in (0.1, 2.5):
            want = reference.readouts(z[i].numpy(), used, temperature)["energy"]
            assert float(expansion.energy(temperature)[i]) == pytest.approx(want, abs=1e-12)
    assert torch.allclose(expansion.log_predictive(), expansion.predictive().log(), atol=1e-12, rtol=0)
    assert torch.equal(expansion.penalized_energy, expansion.chaos_energy)


def test_known_values() -> None:
    """Order 1, two classes: the predictive is E[sigmoid(m + s omega)] by the 4-node rule."""
    expansion = ChaosExpansion(torch.tensor([[[2.0, 0.0], [1.0, 0.0]]], dtype=F64))
    nodes = [s * math.sqrt(3 + t * math.sqrt(6)) for t in (1, -1) for s in (1, -1)]
    weights = [1 / (4 * (3 + t * math.sqrt(6))) for t in (1, 1, -1, -1)]
    want = sum(mu / (1 + math.exp(-2 - w)) for w, mu in zip(nodes, weights, strict=True))
    assert float(expansion.predictive()[0, 0]) == pytest.approx(want, abs=1e-14)
    assert expansion.mean.tolist() == [[2.0, 0.0]]
    assert expansion.covariance.tolist() == [[[1.0, 0.0], [0.0, 0.0]]]
    assert expansion.chaos_energy.tolist() == [1.0]
    assert float(expansion.energy()[0]) == pytest.approx(-math.log(math.exp(2) + 1), abs=1e-14)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_large_rules_reach_the_integral(order: int) -> None:
    """With 128 nodes the readouts are the integrals over omega, computed by adaptive quadrature."""
    z = some(3, order, 3, scale=0.4, seed=order)
    z[:, 1:] /= order**3  # the softmax of a cubic has poles close to the real axis: keep them away
    expansion = ChaosExpansion(z, 128)

    def mean_of(function) -> float:
        def weighted(w: float) -> float:
            return function(w) * math.exp(-w * w / 2) / math.sqrt(2 * math.pi)

        return integrate.quad(weighted, -12, 12, epsabs=1e-13, epsrel=1e-13, limit=400)[0]

    for i in range(3):
        node = z[i].numpy()
        predictive = [
            mean_of(lambda w, z=node, c=c: reference.softmax(reference.field(z, w))[c]) for c in range(3)
        ]
        assert np.allclose(expansion.predictive()[i].numpy(), predictive, atol=1e-8, rtol=0)
        within = mean_of(lambda w, z=node: reference.entropy(reference.softmax(reference.field(z, w))))
        want = reference.entropy(np.array(predictive)) - within
        assert float(expansion.mutual_information()[i]) == pytest.approx(want, abs=1e-8)
        for c in range(3):
            variance = mean_of(lambda w, z=node, c=c: (reference.field(z, w)[c] - z[0, c]) ** 2)
            assert float(expansion.variance[i, c]) == pytest.approx(variance, abs=1e-9)


def test_at() -> None:
    z = some(4, 3, 2)
    omega = torch.tensor([-2.5, 0.0, 0.7], dtype=F64)
    got = ChaosExpansion(z).at(omega)
    assert got.shape == (3, 4, 2)
    for s in range(3):
        for i in range(4):
            want = reference.field(z[i].numpy(), float(omega[s]))
            assert np.allclose(got[s, i].numpy(), want, atol=1e-13, rtol=0)
    assert ChaosExpansion(z.float()).at(omega).dtype == torch.float32


def test_log_predictive_where_probabilities_underflow() -> None:
    """log p of order -1e4 to 60 digits by mpmath; the plain probability is zero there."""
    z = some(3, 2, 3, scale=100.0, seed=4)
    z[:, 0] += torch.tensor([0.0, 2000.0, -3000.0])
    got = ChaosExpansion(z, 6).log_predictive()
    assert (ChaosExpansion(z, 6).predictive() == 0).any()
    nodes, weights = reference.quadrature(6)
    with mpmath.workdps(60):
        for i in range(3):
            fields = [reference.field(z[i].numpy(), w) for w in nodes]
            for c in range(3):
                total = mpmath.mpf(0)
                for mu, v in zip(weights, fields, strict=True):
                    bottom = sum(mpmath.exp(mpmath.mpf(float(t))) for t in v)
                    total += mpmath.mpf(float(mu)) * mpmath.exp(mpmath.mpf(float(v[c]))) / bottom
                want = float(mpmath.log(total))
                assert float(got[i, c]) == pytest.approx(want, rel=1e-11, abs=1e-11)


sizes = st.sampled_from([1e-30, 1e-20, 1e-10, 1e-3, 1.0, 10.0, 100.0, 1e3, 1e5, 1e10, 1e20, 1e30])


@settings(max_examples=150, deadline=None)
@given(
    sizes,
    sizes,
    st.integers(0, 5),
    st.integers(1, 6),
    st.integers(0, 2**20),
    st.sampled_from([torch.float32, F64]),
    st.sampled_from([None, 1, 33, 128]),
)
def test_safe_for_logits_of_any_size(
    mean_size: float,
    spread: float,
    order: int,
    classes: int,
    seed: int,
    dtype: torch.dtype,
    size: int | None,
) -> None:
    z = some(5, order, classes, seed=seed).clamp(-3, 3)
    z[:, 0] *= mean_size
    z[:, 1:] *= spread
    # Hermite values at the nodes of a large rule reach 1e7: keep the logits themselves representable.
    z = z.clamp(-1e30, 1e30).to(dtype).requires_grad_()
    expansion = ChaosExpansion(z, size)
    p = expansion.predictive()
    assert p.dtype == dtype
    assert (p >= 0).all()
    assert (p.sum(-1) - 1).abs().max() < 1e-6
    slack = 1e-5 if dtype == torch.float32 else 1e-12
    entropy, mutual = expansion.entropy(), expansion.mutual_information()
    assert (entropy >= -slack).all()
    assert (entropy <= math.log(classes) + slack).all()
    assert (mutual >= 0).all()
    assert (mutual <= entropy + slack).all()
    if order == 0 or classes == 1:
        assert mutual.max() <= slack
    assert (expansion.log_predictive() <= slack).all()
    for name in READOUTS:
        values = getattr(expansion, name)()
        assert torch.isfinite(values).all(), name
        (gradient,) = torch.autograd.grad(values.sum(), z, retain_graph=True)
        assert torch.isfinite(gradient).all(), f"gradient of {name}"


@pytest.mark.parametrize("name", READOUTS)
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_gradients_are_right(name: str, scale: float) -> None:
    z = some(2, 2, 3, scale=scale, seed=8).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: getattr(ChaosExpansion(t), name)(), z)


@pytest.mark.parametrize("dtype", [torch.float32, F64])
def test_gradient_of_an_entropy_with_a_certain_class(dtype: torch.dtype) -> None:
    """-p log p has slope infinity at p = 0, but p itself has none: together nothing, not NaN."""
    z = torch.tensor([[[900.0, 0.0, -900.0], [1.0, -1.0, 0.0]]], dtype=dtype, requires_grad=True)
    for name in ("entropy", "mutual_information"):
        values = getattr(ChaosExpansion(z), name)()
        assert abs(float(values.detach()[0])) < 2 * torch.finfo(dtype).eps
        (gradient,) = torch.autograd.grad(values.sum(), z)
        assert (gradient.abs() < 1e-12).all(), name


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(0, 5),
    st.integers(1, 6),
    st.integers(0, 2**20),
    st.sampled_from([1e-3, 1.0, 50.0]),
)
def test_bounds(nodes: int, order: int, classes: int, seed: int, scale: float) -> None:
    expansion = ChaosExpansion(some(nodes, order, classes, scale, seed))
    covariance = expansion.covariance
    assert torch.equal(covariance, covariance.transpose(1, 2))
    eigenvalues = torch.linalg.eigvalsh(covariance)
    assert eigenvalues.min() >= -1e-12 * max(1.0, float(eigenvalues.max()))
    assert (eigenvalues > 1e-9 * scale**2).sum(-1).max() <= order
    trace = covariance.diagonal(dim1=1, dim2=2)
    assert torch.allclose(trace, expansion.variance, rtol=1e-13, atol=0)
    assert torch.allclose(trace.sum(-1), expansion.chaos_energy, rtol=1e-13, atol=0)
    p = expansion.predictive()
    assert (p.sum(-1) - 1).abs().max() < 1e-14
    assert (expansion.entropy() <= math.log(classes) + 1e-14).all()
    mutual = expansion.mutual_information()
    assert (mutual >= 0).all()
    assert (mutual <= expansion.entropy() + 1e-14).all()
    if order == 0:
        assert mutual.max() < 1e-14


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**20), st.floats(-50, 50))
def test_a_common_shift_moves_the_energy_alone(seed: int, shift: float) -> None:
    z = some(3, 2, 4, seed=seed)
    moved = z.clone()
    moved[:, 0] += shift
    a, b = ChaosExpansion(z), ChaosExpansion(moved)
    assert torch.allclose(b.energy(), a.energy() - shift, atol=1e-12, rtol=0)
    for name in ("predictive", "entropy", "mutual_information"):
        assert torch.allclose(getattr(a, name)(), getattr(b, name)(), atol=1e-12, rtol=0), name


def test_energy_temperature_limits() -> None:
    z = some(5, 1, 4, seed=2)
    cold = ChaosExpansion(z).energy(1e-6)
    assert torch.allclose(cold, -z[:, 0].max(-1).values, atol=1e-5, rtol=0)
    hot = ChaosExpansion(z).energy(1e8)
    assert torch.allclose(hot / 1e8, torch.full((5,), -math.log(4), dtype=F64), atol=1e-6, rtol=0)
    with pytest.raises(InputError, match=r"positive, got 0"):
        ChaosExpansion(z).energy(0)


def test_half_precision_coefficients_are_read_in_float32() -> None:
    z = some(4, 2, 3)
    for dtype in (torch.bfloat16, torch.float16):
        expansion = ChaosExpansion(z.to(dtype))
        assert expansion.predictive().dtype == torch.float32
        assert (expansion.predictive().sum(-1) - 1).abs().max() < 1e-6
        assert torch.equal(expansion.coefficients, z.to(dtype).float())


def test_a_choice_of_nodes() -> None:
    z = some(5, 2, 3)
    expansion = ChaosExpansion(z, 7)
    mask = torch.tensor([True, False, True, False, False])
    for nodes in (mask, torch.tensor([0, 2]), slice(0, 3, 2)):
        part = expansion[nodes]
        assert torch.equal(part.coefficients, z[[0, 2]])
        assert part.quadrature_size == 7
        assert torch.allclose(part.predictive(), expansion.predictive()[[0, 2]], atol=1e-15, rtol=0)


def test_a_choice_of_no_nodes() -> None:
    none = ChaosExpansion(some(5, 2, 3))[torch.zeros(5, dtype=torch.bool)]
    assert none.at(torch.zeros(2)).shape == (2, 0, 3)
    assert none.predictive().shape == none.log_predictive().shape == (0, 3)
    assert none.entropy().shape == none.mutual_information().shape == none.energy().shape == (0,)
    assert none.covariance.shape == (0, 3, 3)
