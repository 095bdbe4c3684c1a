"""The fused evaluate-activate-project against the torch path; on the CPU through Triton's interpreter."""

import pytest
import torch

from dssgnn.nn.projection import ACTIVATIONS, evaluate_activate_project
from dssgnn.spectral import projection_tables

pytest.importorskip("triton", reason="needs Triton: pip install triton")
from dssgnn.kernels import projecting

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

TOLERANCE = {torch.float64: 1e-13, torch.float32: 5e-6, torch.bfloat16: 1e-2}


def test_every_named_activation_has_a_kernel():
    assert set(projecting.ACTIVATIONS) == set(ACTIVATIONS)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_values_and_gradients(name, dtype):
    for order, size, biased in ((2, 4, False), (3, 5, True)):
        generator = torch.Generator().manual_seed(order)
        tables = projection_tables(order, size, torch.float64, torch.device("cpu"))
        u = (3 * torch.randn(3, order + 1, 6, generator=generator, dtype=torch.float64)).to(dtype)
        grad = torch.randn(3, order + 1, 6, generator=generator, dtype=torch.float64).to(dtype)
        bias = torch.randn(6, generator=generator, dtype=torch.float64) if biased else None
        exact = u.double().requires_grad_()
        exact_bias = None if bias is None else bias.clone().requires_grad_()
        expected = evaluate_activate_project(exact, *tables, ACTIVATIONS[name], exact_bias)
        expected.backward(grad.double())

        sums = torch.float64 if dtype == torch.float64 else torch.float32
        u, grad = u.to(DEVICE), grad.to(DEVICE)
        evaluation, projection = (t.to(DEVICE, sums) for t in tables)
        bias = None if bias is None else bias.to(DEVICE, sums)
        out = projecting.project(u, evaluation, projection, name, bias)
        grad_u = projecting.project_adjoint(u, evaluation, projection, name, bias, grad)
        assert out.dtype == grad_u.dtype == dtype
        pairs = [(out, expected), (grad_u, exact.grad)]
        if exact_bias is not None:
            pairs.append((grad_u.cpu().double()[:, 0].sum(dim=0), exact_bias.grad))
        for ours, reference in pairs:
            assert (ours.cpu().double() - reference).norm() < TOLERANCE[dtype] * reference.norm()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_entry_by_entry(name, dtype):
    """Nothing is lost near zero."""
    one = torch.ones(1, 1, dtype=dtype, device=DEVICE)
    sizes = torch.tensor([1e-8, 1e-6, 1e-4, 0.01, 0.0199, 0.0201, 0.3, 30.0], dtype=torch.float64)
    u = torch.cat([-sizes, torch.zeros(1, dtype=torch.float64), sizes]).to(dtype)
    expected = ACTIVATIONS[name](u.double())
    ours = projecting.project(u.view(1, 1, -1).to(DEVICE), one, one, name, None).cpu().double().flatten()
    tolerance = 1e-13 if dtype == torch.float64 else 1e-5
    assert torch.allclose(ours, expected, rtol=tolerance, atol=1e-12)


def test_relu_of_what_is_no_number():
    one = torch.ones(1, 1, device=DEVICE)
    u = torch.tensor([[[float("-inf"), float("inf"), float("nan")]]], device=DEVICE)
    ours = projecting.project(u, one, one, "relu", None).cpu().flatten()
    assert ours[:2].tolist() == [0, float("inf")]
    assert ours[2].isnan()
