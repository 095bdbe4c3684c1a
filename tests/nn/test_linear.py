"""The product with a learned matrix and its vmap rule, against the plain one."""

import pytest
import torch

from dssgnn.nn import linear as module
from dssgnn.nn.linear import _inner, _Linear, linear


@pytest.mark.parametrize("shape", [(7, 4), (5, 3, 4)])
@pytest.mark.parametrize("width", [2, 40])
def test_is_the_matrix_product(shape, width):
    h = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(4, width, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(linear, (h, weight))
    assert torch.allclose(linear(h, weight), h @ weight)


@pytest.mark.parametrize("dims", [(0, 0), (None, 0), (1, None), (1, 2)])
def test_vmap_is_a_loop(dims):
    shapes = [[6, 4], [4, 3]]
    for shape, dim in zip(shapes, dims, strict=True):
        if dim is not None:
            shape.insert(dim, 5)
    h, weight = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes)
    out = torch.vmap(_Linear.apply, dims)(h, weight)
    grad = torch.randn_like(out)
    ours = torch.autograd.grad(out, (h, weight), grad)
    members = [
        (h if dims[0] is None else h.select(dims[0], i))
        @ (weight if dims[1] is None else weight.select(dims[1], i))
        for i in range(5)
    ]
    expected = torch.stack(members)
    theirs = torch.autograd.grad(expected, (h, weight), grad)
    for a, b in zip((out, *ours), (expected, *theirs), strict=True):
        assert torch.allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("rows", [1, 63, 64, 200, 1025])
def test_gradient_in_parts(rows, monkeypatch):
    monkeypatch.setattr(module, "_PARTS", 12)
    h, grad = torch.randn(3, rows, 4, dtype=torch.float64), torch.randn(3, rows, 2, dtype=torch.float64)
    assert torch.allclose(_inner(h, grad), h.mT @ grad, atol=1e-12)
