"""Section training: order 0 depends on every higher order, through the activation or through random gates.

Eq. dss_projection_update evaluates all orders together, so that the loss on ``Z_0`` trains the others too.
"""

import pytest
import torch

from dssgnn import DSSGNN, DSSConv
from theory.support import gap, normal, random_graph, randomize

GRAPH = random_graph(12, seed=1)
ORDER = 4


def layer(activation: str | None, gate_order: int = 0, *, bias: bool = False, seed: int = 0) -> DSSConv:
    conv = DSSConv(
        3, 3, ORDER, filter_orders=(2, 2), gate_order=gate_order, activation=activation, bias=bias
    ).double()
    randomize(conv, seed)
    return conv


def sensitivity(*convs: DSSConv, shift: float = 0.0) -> torch.Tensor:
    """The norm of ``d Z_0 / d Z_n`` over all of its entries, one number for each input order ``n``."""
    h = normal(12, ORDER + 1, 3, seed=5)
    h[:, 0] += shift

    def zeroth(state: torch.Tensor) -> torch.Tensor:
        for conv in convs:
            state = conv(state, GRAPH.edge_index)
        return state[:, 0]

    jacobian = torch.autograd.functional.jacobian(zeroth, h)  # [N, d, N, P+1, d]
    return jacobian.square().sum(dim=(0, 1, 2, 4)).sqrt()


@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu"])
def test_order_zero_depends_on_every_order(activation):
    """Eq. dss_projection_update with constant gates: every derivative is non-zero."""
    assert (sensitivity(layer(activation)) > 1e-2).all()


@pytest.mark.parametrize(("activation", "moves"), [("relu", True), ("tanh", True), (None, False)])
def test_the_value_of_order_zero_moves_with_every_order(activation, moves):
    """The same by differences, which do not trust the layer's own backward pass; the linear layer is the twin."""
    conv, h = layer(activation), normal(12, ORDER + 1, 3, seed=5)
    with torch.no_grad():
        before = conv(h, GRAPH.edge_index)[:, 0]
        for n in range(1, ORDER + 1):
            without = h.clone()
            without[:, n] = 0
            change = gap(conv(without, GRAPH.edge_index)[:, 0], before)
            assert change > 1e-2 if moves else change == 0


def test_it_stops_with_a_linear_activation_and_constant_gates():
    """Negative twin: ``activation=None`` and ``P_g = 0`` leave every order alone, exactly."""
    values = sensitivity(layer(None))
    assert values[0] > 1
    assert torch.equal(values[1:], torch.zeros(ORDER).double())


def test_it_stops_through_the_quadrature_as_well():
    """The same through evaluation and projection (a bias takes that path), up to rounding."""
    values = sensitivity(layer(None, bias=True))
    assert values[0] > 1
    assert values[1:].max() < 1e-13


@pytest.mark.parametrize("gate_order", [1, 2, 3])
def test_random_gates_couple_linear_layers(gate_order):
    """Lemma product_triple: ``c_{rn0} = delta_rn``, so one linear layer reaches the orders up to ``P_g``."""
    values = sensitivity(layer(None, gate_order))
    assert (values[: gate_order + 1] > 1e-2).all()
    assert values[gate_order + 1 :].max() < 1e-12


def test_two_linear_layers_reach_twice_as_far():
    """With ``P_g = 1`` every linear layer reaches one order more."""
    for depth in (1, 2, 3, 4):
        values = sensitivity(*(layer(None, 1, seed=s) for s in range(depth)))
        assert (values[: depth + 1] > 1e-2).all()
        assert (values[depth + 1 :] < 1e-10 * values[0]).all()


def test_a_relu_that_is_nowhere_active_does_not_couple():
    """ReLU couples only where the sign of the field changes between nodes.

    Non-negative filters on a state shifted far to the positive leave it linear, and the derivative is zero.
    """
    conv = layer("relu")
    with torch.no_grad():
        for parameter in conv.parameters():
            parameter.abs_()
        conv.low_coefficients[1:] = 0
        conv.high_coefficients[1:] = 0
    assert sensitivity(conv, shift=1e3)[1:].max() < 1e-12
    assert (sensitivity(conv)[1:] > 1e-2).all()


@pytest.mark.parametrize("readout", ["linear", "filtered"])
def test_the_loss_on_the_mean_logit_trains_every_order(readout):
    """Section training: the mean objective reaches each lift ``W_in^(n)``; not without an activation."""
    x = normal(12, 5, seed=6)

    def gradients(activation) -> torch.Tensor:
        model = DSSGNN(
            5, 6, 3, chaos_order=ORDER, readout=readout, activation=activation, dropout=0.0
        ).double()
        randomize(model, seed=7)
        model(x, GRAPH.edge_index).mean.square().sum().backward()
        return model.lift.weight.grad.flatten(1).norm(dim=1)

    assert (gradients("relu") > 1e-3).all()
    linear = gradients(lambda v: 2 * v)
    assert linear[0] > 1
    assert (linear[1:] < 1e-12 * linear[0]).all()
