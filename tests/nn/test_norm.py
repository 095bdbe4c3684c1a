"""`JointNorm`: the batch norm of the random variables that the orders make up."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from dssgnn import DSSGNN
from dssgnn.errors import InputError
from dssgnn.nn.norm import NORMS, JointNorm, SeparateNorm, make_norm
from dssgnn.spectral import gauss_hermite, hermite_basis
from dssgnn.training import seeded

F64 = torch.float64


def a_state(nodes: int = 30, order: int = 2, channels: int = 4, seed: int = 0) -> Tensor:
    """Every order and channel with a mean and a scale of its own."""
    g = torch.Generator().manual_seed(seed)
    scale, shift = torch.rand(2, order + 1, channels, generator=g, dtype=F64)
    return torch.randn(nodes, order + 1, channels, generator=g, dtype=F64) * (3 * scale + 0.1) + 2 * shift


def close(got: Tensor, expected: Tensor, atol: float = 1e-12) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=atol)


def test_at_order_zero_it_is_batch_norm() -> None:
    """Outputs, gradients and buffers, over steps that move the parameters; then in eval."""
    ours, theirs = make_norm("joint", 4, 0).double(), nn.BatchNorm1d(4).double()
    optimizers = [torch.optim.SGD(norm.parameters(), lr=0.1) for norm in (ours, theirs)]
    for seed, training in enumerate((True, True, True, False)):
        h = a_state(7, 0, seed=seed)
        a, b = h.clone().requires_grad_(), h[:, 0].clone().requires_grad_()
        for norm, optimizer in zip((ours, theirs), optimizers, strict=True):
            norm.train(training)
            optimizer.zero_grad()
        out, expected = ours(a)[:, 0], theirs(b)
        close(out, expected)
        for value in (out, expected):
            value.exp().mean().backward()
        close(a.grad[:, 0], b.grad)
        for name, value in ours.named_parameters():
            close(value.grad, theirs.get_parameter(name).grad)
        for optimizer in optimizers:
            optimizer.step()
        for name in ("weight", "bias", "running_mean", "running_var"):
            close(getattr(ours, name), getattr(theirs, name))


@pytest.mark.parametrize("residual", [True, "inner"])
def test_a_deterministic_network_is_normalised_the_same(residual: bool | str) -> None:
    x, edges = torch.randn(9, 3, dtype=F64), torch.randint(0, 9, (2, 30))
    outs, models = [], []
    for norm in NORMS:
        with seeded(0):
            models.append(DSSGNN(3, 4, 2, chaos_order=0, norm=norm, residual=residual, dropout=0.0).double())
        models[-1](x, edges)
        outs.append([models[-1].train(mode)(x, edges).coefficients for mode in (True, False)])
    for ours, theirs in zip(*outs, strict=True):
        close(ours, theirs, 1e-10)
    for name, value in models[1].state_dict().items():
        close(value, models[0].state_dict()[name])


def test_by_hand() -> None:
    """mu = 3, sigma^2 = mean(4 + 4, 4 + 0) = 6, and 6 + eps = 9; unbiased 12."""
    norm = JointNorm(1, eps=3.0).double()
    nn.init.constant_(norm.weight, 6.0)
    nn.init.constant_(norm.bias, 10.0)
    h = torch.tensor([[[1.0], [2.0]], [[5.0], [0.0]]], dtype=F64)
    close(norm(h), torch.tensor([[[6.0], [4.0]], [[14.0], [0.0]]], dtype=F64))
    close(norm.running_mean, torch.tensor([0.3], dtype=F64), 1e-7)
    close(norm.running_var, torch.tensor([0.9 + 1.2], dtype=F64), 1e-7)
    scale = 6 / 5.1**0.5
    expected = [[[10 + 0.7 * scale], [2 * scale]], [[10 + 4.7 * scale], [0.0]]]
    close(norm.eval()(h), torch.tensor(expected, dtype=F64), 1e-7)


@pytest.mark.parametrize("order", [0, 1, 2, 5])
def test_the_random_variable_has_mean_zero_and_variance_one(order: int) -> None:
    h = a_state(order=order)
    out = JointNorm(4, eps=0.0).double()(h).detach()
    close(out[:, 0].mean(0), torch.zeros(4, dtype=F64))
    close(out.square().sum(1).mean(0), torch.ones(4, dtype=F64))
    omega, weights = gauss_hermite(order + 1)
    values = torch.einsum("sn,inc->sic", hermite_basis(omega, order), out)  # a node and a factor at random
    close(torch.einsum("s,sic->c", weights, values) / 30, torch.zeros(4, dtype=F64))
    close(torch.einsum("s,sic->c", weights, values**2) / 30, torch.ones(4, dtype=F64))
    # Also at factors drawn at random, up to the error of so many of them.
    omega = torch.randn(20_000, generator=torch.Generator().manual_seed(0), dtype=F64)
    moments = hermite_basis(omega, order).T @ hermite_basis(omega, order) / 20_000  # E[Psi_n Psi_m]
    drawn = torch.einsum("inc,nm,imc->c", out, moments, out) / 30
    close(drawn, torch.ones(4, dtype=F64), 0.1 if order < 5 else 0.5)


def test_what_is_small_stays_small() -> None:
    """All orders are divided by one number; a norm an order (the twin) makes them equally large."""
    h = a_state()
    h[:, 1:] *= 1e-2
    joint, batch = (make_norm(norm, 4, 2).double()(h).detach() for norm in ("joint", "batch"))
    factor = joint[0, 1] / h[0, 1]  # of a channel
    close(joint[:, 1:], factor * h[:, 1:])
    close(joint[:, 0] - joint[0, 0], factor * (h[:, 0] - h[0, 0]))
    before = h.var(0)[1:] / h.var(0)[0]
    assert before.max() < 0.05
    close(joint.var(0)[1:] / joint.var(0)[0], before)
    assert (batch.var(0)[1:] / batch.var(0)[0]).min() > 0.8


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(0, 4), st.floats(0.01, 100.0), st.floats(-10.0, 10.0))
def test_scale_and_a_common_shift_do_not_matter(nodes: int, order: int, scale: float, shift: float) -> None:
    h = a_state(nodes, order)
    norm = JointNorm(4, eps=0.0).double()
    expected = norm(h)
    moved = scale * h
    moved[:, 0] += shift
    close(norm(moved), expected, 1e-8)
    close(norm(h.flip(0)), expected.flip(0), 1e-8)


def test_a_shift_of_a_higher_order_matters() -> None:
    """It is spread, not mean: nothing takes it off."""
    h = a_state()
    norm = JointNorm(4).double()
    h[:, 1] = 5.0
    assert (norm(h)[:, 1] > 0.5).all()
    assert SeparateNorm(4, 2).double()(h)[:, 1].abs().max() < 1e-6


def test_one_node_cannot_be_trained_on() -> None:
    h = a_state(1)
    norm = JointNorm(4).double()
    with pytest.raises(InputError, match="norm='joint' needs two nodes or more to train on, got 1"):
        norm(h)
    with pytest.raises(InputError, match="got 1"):
        DSSGNN(3, 4, 2, norm="joint")(torch.ones(1, 3), torch.empty(2, 0, dtype=torch.long))
    assert torch.equal(norm.running_var, torch.ones(4, dtype=F64))
    close(norm.eval()(h), h / (1 + 1e-5) ** 0.5)


def test_eval_uses_running_statistics_and_leaves_them() -> None:
    norm = JointNorm(4).double()
    for seed in range(3):
        norm(a_state(seed=seed))
    norm.eval()
    before, h = copy.deepcopy(norm.state_dict()), a_state(seed=9)
    out = norm(h)
    close(norm(h[:1]), out[:1])  # a node by itself
    expected = h.clone()
    expected[:, 0] -= norm.running_mean
    close(out, expected / (norm.running_var + 1e-5).sqrt())
    assert all(torch.equal(before[name], value) for name, value in norm.state_dict().items())


def test_state_dict_round_trip_and_reset() -> None:
    norm = JointNorm(4).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    norm(a_state())
    assert set(norm.state_dict()) == {"weight", "bias", "running_mean", "running_var"}
    other = JointNorm(4).double()
    other.load_state_dict(norm.state_dict())
    h = a_state(seed=1)
    assert torch.equal(other.eval()(h), norm.eval()(h))
    norm.reset_parameters()
    fresh = JointNorm(4).double().state_dict()
    assert all(torch.equal(fresh[name], value) for name, value in norm.state_dict().items())


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", NORMS)
def test_half_precision_in_and_out_and_single_in_between(kind: str, training: bool) -> None:
    h = a_state(500).float()
    norm = make_norm(kind, 4, 2).train(training)
    narrow = h.bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        out = norm(narrow)
        out.float().square().sum().backward()
    assert out.dtype == narrow.grad.dtype == torch.bfloat16
    assert all(value.dtype == torch.float32 for value in norm.state_dict().values() if value.dim())
    assert norm.weight.grad.dtype == torch.float32
    exact = make_norm(kind, 4, 2).train(training)
    expected = exact(narrow.detach().float())
    assert (out.float() - expected).abs().max() < 0.01 * expected.abs().max()
    close(norm.running_var, exact.running_var, 1e-5)  # its sums are not in half precision
