"""Dropout of a random variable: one mask for all of its orders."""

import pytest
import torch

from dssgnn import DSSGNN
from dssgnn.nn.dropout import dropout
from dssgnn.training import seeded

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")),
]


def a_state(device="cpu"):
    h = torch.rand(200, 3, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.5
    return h.to(device).requires_grad_()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rate", [0.25, 0.8])
def test_joint_masks_are_one_for_all_orders(rate, device):
    h = a_state(device)
    with seeded(1):
        out = dropout(h, rate, joint=True)
    kept = out != 0
    assert (kept == kept[:, :1]).all()
    torch.testing.assert_close(out, torch.where(kept, h / (1 - rate), 0.0))
    mask = kept[:, 0].double()
    assert float(mask.mean()) == pytest.approx(1 - rate, abs=0.05)
    # Nodes and channels each draw for themselves: their masks are uncorrelated.
    for rows in (mask, mask.T):
        assert len({tuple(row.tolist()) for row in rows}) > 5
    assert torch.corrcoef(mask.T).fill_diagonal_(0).abs().max() < 0.3
    (gradient,) = torch.autograd.grad(out.sum(), h)
    torch.testing.assert_close(gradient, kept.double() / (1 - rate))


@pytest.mark.parametrize("device", DEVICES)
def test_separate_masks_differ_between_orders(device):
    """The negative twin, and the default."""
    kept = dropout(a_state(device), 0.5) != 0
    assert float((kept == kept[:, :1])[:, 1:].double().mean()) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(("rate", "training"), [(0.0, True), (0.9, False)])
def test_without_effect(rate, training):
    h = a_state()
    before = torch.get_rng_state()
    assert dropout(h, rate, training, joint=True) is h
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("joint", [True, False])
def test_the_network_drops_channels_as_asked(joint):
    """With layers that give nothing, an identity skip shows the masks of the lift, never joint, and the readout."""
    with seeded(0):
        model = DSSGNN(4, 6, 3, num_layers=3, residual="identity", lift_dropout=0.3, joint_dropout=joint)
    for layer in model.layers:
        torch.nn.init.zeros_(layer.weight)
    x, edges = torch.randn(5, 4, generator=torch.Generator().manual_seed(1)), torch.tensor([[0, 1], [1, 0]])
    with seeded(1):
        noisy = model(x, edges).coefficients
    with seeded(1):
        lifted = torch.nn.functional.dropout(model.lift(x), 0.3)
        ones = torch.ones(5, 1 if joint else 3, 6)
        mask = [torch.nn.functional.dropout(ones, 0.5) for _ in range(3)][-1]
    torch.testing.assert_close(noisy, (lifted * mask) @ model.readout_weight)
    model.eval()
    torch.testing.assert_close(model(x, edges).coefficients, model.lift(x) @ model.readout_weight)


@pytest.mark.parametrize("joint", [True, False])
def test_an_inner_residual_reads_what_its_layer_reads(joint):
    """Two filters that are the identity: sigma(D(H) (W + R)) with one mask for both."""
    with seeded(0):
        options = {"filter_orders": (0, 0), "residual": "inner", "joint_dropout": joint, "chaos_order": 1}
        model = DSSGNN(4, 6, 3, activation=torch.nn.Identity(), **options)
    for layer in model.layers:
        for one in (layer.low_coefficients, layer.high_coefficients, layer.low_gates):
            torch.nn.init.ones_(one)
        torch.nn.init.zeros_(layer.high_gates)
    x, edges = torch.randn(5, 4, generator=torch.Generator().manual_seed(1)), torch.tensor([[0, 1], [1, 0]])
    with seeded(1):
        noisy = model(x, edges).coefficients
    with seeded(1):
        masks = [torch.nn.functional.dropout(torch.ones(5, 1 if joint else 2, 6), 0.5) for _ in range(2)]
    h = model.lift(x)
    for layer, residual, mask in zip(model.layers, model.residual_weights, masks, strict=True):
        h = h @ (layer.weight + residual) * mask  # what the next one reads
    torch.testing.assert_close(noisy, h @ model.readout_weight)
