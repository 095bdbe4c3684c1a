"""Objectives against closed forms and brute force in float64."""

import math

import numpy as np
import pytest
import torch

from dssgnn import ChaosExpansion
from dssgnn.nn import HybridExpansion
from dssgnn.training import OBJECTIVES, Part, TrainingConfig, energy_margin, training_loss


@pytest.fixture
def expansion():
    generator = torch.Generator().manual_seed(0)
    return ChaosExpansion(torch.randn(6, 3, 4, generator=generator, dtype=torch.float64), quadrature_size=5)


Y = torch.tensor([0, 3, 2, 1, 1, 0])


def node_probabilities(expansion):
    """Softmax at every quadrature node, by numpy alone: [S, N, C] and weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(expansion.quadrature_size)
    z = expansion.coefficients.numpy()
    basis = np.stack(
        [
            np.polynomial.hermite_e.hermeval(nodes, np.eye(n + 1)[n]) / math.sqrt(math.factorial(n))
            for n in range(3)
        ]
    )
    logits = np.einsum("ns,inc->sic", basis, z)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    return p, weights / weights.sum()


def by_hand(name, expansion):
    p, mu = node_probabilities(expansion)
    picked = p[:, np.arange(6), Y.numpy()]
    mean = expansion.mean.numpy()
    softmax = np.exp(mean) / np.exp(mean).sum(-1, keepdims=True)
    averaged = np.einsum("s,sic->ic", mu, p)
    return {
        "mean": -np.log(softmax[np.arange(6), Y.numpy()]),
        "quadrature": -(mu @ np.log(picked)),
        "predictive": -np.log(mu @ picked),
        "brier": ((averaged - np.eye(4)[Y.numpy()]) ** 2).sum(-1),
    }[name]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_equals_the_formula(name, expansion):
    assert OBJECTIVES[name](expansion, Y).numpy() == pytest.approx(by_hand(name, expansion), abs=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradients(name, expansion):
    z = expansion.coefficients.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda c: OBJECTIVES[name](ChaosExpansion(c, 5), Y), (z,))


def test_order_zero_log_losses_agree():
    z = ChaosExpansion(torch.randn(6, 1, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64))
    values = [OBJECTIVES[name](z, Y).mean().item() for name in ("mean", "quadrature", "predictive")]
    assert values[1:] == pytest.approx([values[0]] * 2, abs=1e-12)


def test_quadrature_loss_bounds_predictive_loss(expansion):
    """Jensen: the mean of the logarithms is below the logarithm of the mean."""
    assert (OBJECTIVES["quadrature"](expansion, Y) > OBJECTIVES["predictive"](expansion, Y)).all()


def test_regulariser_reads_training_nodes_only(expansion):
    part = Part.of(torch.tensor([True, True, False, False, False, False]))
    config = TrainingConfig(chaos_weight=0.5)
    plain = TrainingConfig(chaos_weight=0.0)
    difference = training_loss(expansion, Y, part, config) - training_loss(expansion, Y, part, plain)
    assert difference.item() == pytest.approx(0.5 * expansion.chaos_energy[:2].mean().item(), abs=1e-12)
    everywhere = TrainingConfig(chaos_weight=0.5, chaos_nodes="all")
    difference = training_loss(expansion, Y, part, everywhere) - training_loss(expansion, Y, part, plain)
    assert difference.item() == pytest.approx(0.5 * expansion.chaos_energy.mean().item(), abs=1e-12)


def test_regulariser_of_a_hybrid_is_on_the_branch(expansion):
    hybrid = HybridExpansion(0.1 * expansion.coefficients, expansion)
    part = Part.of(torch.ones(6, dtype=torch.bool))
    config, plain = TrainingConfig(chaos_weight=1.0), TrainingConfig(chaos_weight=0.0)
    difference = training_loss(hybrid, Y, part, config) - training_loss(hybrid, Y, part, plain)
    assert difference.item() == pytest.approx(expansion.chaos_energy.mean().item(), abs=1e-12)


def test_padding_counts_for_nothing(expansion):
    masks = torch.tensor([[True] * 5 + [False], [False, True, True, False, False, False]])
    stacked = Part.stack(list(masks))
    assert stacked.nodes.tolist() == [[0, 1, 2, 3, 4], [1, 2, 1, 1, 1]]
    assert stacked.weight.tolist() == [[1] * 5, [1, 1, 0, 0, 0]]
    config = TrainingConfig(chaos_weight=0.3)
    for member, mask in enumerate(masks):
        padded = training_loss(expansion, Y, Part(*(t[member] for t in stacked)), config)
        assert padded.item() == pytest.approx(
            training_loss(expansion, Y, Part.of(mask), config).item(), abs=1e-14
        )


def test_energy_margin_known_answer():
    inside, outside = torch.tensor([-3.0, -9.0, 100.0]), torch.tensor([-2.0, 0.0])
    assert energy_margin(inside, outside, -5.0, -1.0).item() == pytest.approx((4 + 1 + 0 + 0) / 2)


@pytest.mark.parametrize("nodes", ["train", "all"])
def test_penalty_on_squared_logits(nodes, expansion):
    part = Part.of(torch.tensor([True, False, True, True, False, False]))
    plain = TrainingConfig(chaos_weight=0.0)
    penalized = TrainingConfig(chaos_weight=0.0, logit_weight=0.25, chaos_nodes=nodes)
    added = training_loss(expansion, Y, part, penalized) - training_loss(expansion, Y, part, plain)
    rows = expansion.mean[part.nodes] if nodes == "train" else expansion.mean
    assert float(added) == pytest.approx(0.25 * float((rows**2).sum()) / len(rows), rel=1e-12)
