"""Value and gradient are linear in the numbers drawn: their joint covariance is that of the draw they replace."""

import pytest
import torch

from dssgnn.baselines.gaussian_product import gaussian_product

N, D, K = 4, 6, 3


def numbers(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def value_and_gradient(product, weight, grad):
    """Of the loss ``<product, grad>``, as one vector."""
    weight = weight.clone().requires_grad_()
    value = product(weight)
    (by_weight,) = torch.autograd.grad((value * grad).sum(), weight)
    return torch.cat([value.detach().flatten(), by_weight.flatten()])


def map_of(function, size):
    """The matrix of a linear function of ``size`` numbers, transposed."""
    return torch.stack([function(unit) for unit in torch.eye(size, dtype=torch.float64)])


WEIGHTS = {
    "full rank": numbers(D, K),
    "two equal columns": numbers(D, K)[:, [0, 1, 1]],
    "a column of zeros": numbers(D, K) * torch.tensor([1.0, 0.0, 1.0]),
    "columns of all sizes": numbers(D, K) * torch.tensor([1e-9, 1.0, 1e6]),
    "more columns than rows": numbers(D, D + 2, seed=4),
}
GRADS = {
    "full rank": lambda k: numbers(N, k, seed=1),
    "a dead column": lambda k: numbers(N, k, seed=1) * (torch.arange(k) > 0),
    "one row": lambda k: numbers(N, k, seed=1) * (torch.arange(N) == 2)[:, None],
}


@pytest.mark.parametrize("weight", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("grad", GRADS.values(), ids=GRADS)
def test_the_joint_law(weight, grad):
    k = weight.size(1)
    grad, deviation = grad(k), numbers(D, seed=2).exp()

    def with_rows(drawn):
        return value_and_gradient(lambda w: drawn.view(N, D) @ (deviation[:, None] * w), weight, grad)

    def ours(drawn):
        near, far = drawn[: N * k].view(N, k), drawn[N * k :].view(D, k)
        return value_and_gradient(lambda w: gaussian_product(w, deviation, near, far), weight, grad)

    expected, got = map_of(with_rows, N * D), map_of(ours, (N + D) * k)
    expected, got = expected.T @ expected, got.T @ got
    scale = expected.diagonal().sqrt().clamp_min(1e-30)
    correlation = got / (scale[:, None] * scale)
    torch.testing.assert_close(correlation, expected / (scale[:, None] * scale), rtol=0, atol=2e-5)
    torch.testing.assert_close(got.diagonal().sqrt(), expected.diagonal().sqrt(), rtol=2e-5, atol=1e-12)


def test_a_population_has_its_own_products():
    weights, deviations = numbers(2, D, K), numbers(2, D, seed=1).exp()
    near, far = numbers(2, N, K, seed=2), numbers(2, D, K, seed=3)
    weights.requires_grad_()

    def gradient(values):
        return torch.autograd.grad(values.square().sum(), weights)[0]

    alone = torch.stack(
        [gaussian_product(*each) for each in zip(weights, deviations, near, far, strict=True)]
    )
    together = torch.func.vmap(gaussian_product)(weights, deviations, near, far)
    torch.testing.assert_close(together, alone)
    torch.testing.assert_close(gradient(together), gradient(alone))
    shared = torch.func.vmap(gaussian_product, in_dims=(0, None, None, None))(
        weights, deviations[0], near[0], far[0]
    )
    torch.testing.assert_close(shared[1], gaussian_product(weights[1], deviations[0], near[0], far[0]))
    assert torch.isfinite(gradient(shared)).all()


def test_a_column_without_gradient_gets_none():
    weight = numbers(D, K).float().requires_grad_()
    near, far = numbers(N, K).float(), numbers(D, K).float()
    gaussian_product(weight, torch.ones(D), near, far)[:, 0].sum().backward()
    assert bool((weight.grad[:, 1:] == 0).all())
    assert bool((weight.grad[:, 0] != 0).all())
