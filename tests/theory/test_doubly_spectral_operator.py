"""Theorem joint_spectral_operator: the linear layer acts frequency by frequency and mixes chaos orders."""

import pytest
import torch

from dssgnn import DSSConv, GraphOperator
from dssgnn.spectral import exact_size, frequency_response, triple_products
from theory.support import F64, gap, normal, random_graph, randomize

GRAPH = random_graph(30)
FREQUENCIES, VECTORS = torch.linalg.eigh(GRAPH.laplacian())
ORDERS = [(p, g) for p in range(5) for g in range(3)]


def linear_layer(order: int, gate_order: int, size: int | None = None, **options) -> DSSConv:
    conv = DSSConv(
        3,
        4,
        order,
        filter_orders=(4, 3),
        gate_order=gate_order,
        quadrature_size=size,
        activation=None,
        **options,
    ).double()
    randomize(conv, seed=10 * order + gate_order)
    return conv


def coupling(gates: torch.Tensor, order: int) -> torch.Tensor:
    """Eq. coupling_matrices: ``M_mn = sum_r a_{n,r} c_{rnm}``."""
    return torch.einsum("nr,rnm->mn", gates, triple_products(gates.size(1) - 1, order))


def transfer(conv: DSSConv, lambda_max: float = 2.0) -> torch.Tensor:
    """Eq. app_transfer_decomp: ``g_lp(lambda_j) M_lp + g_hp(lambda_j) M_hp`` as ``[N, P+1, P+1]``."""
    low = frequency_response(conv.low_coefficients, FREQUENCIES, lambda_max)
    high = frequency_response(conv.high_coefficients, FREQUENCIES, lambda_max)
    m_low, m_high = coupling(conv.low_gates, conv.chaos_order), coupling(conv.high_gates, conv.chaos_order)
    return (low[:, None, None] * m_low + high[:, None, None] * m_high).detach()


@torch.no_grad()
def deviation(conv: DSSConv, matrices: torch.Tensor, operator: GraphOperator | None = None) -> float:
    """Relative distance between the layer and eq. app_joint_transfer, in the joint spectral domain."""
    h = normal(30, conv.chaos_order + 1, 3, seed=7)
    out = conv(h, operator or GRAPH.edge_index)
    measured = torch.einsum("ij,imd->jmd", VECTORS, out)
    state = torch.einsum("ij,ind->jnd", VECTORS, h)
    expected = torch.einsum("jmn,jnd,de->jme", matrices, state, conv.weight)
    return gap(measured, expected) / expected.abs().max().item()


@pytest.mark.parametrize(("order", "gate_order"), ORDERS)
def test_transfer_on_the_eigenbasis(order, gate_order):
    """Theorem joint_spectral_operator, with the smallest rule that suffices and with the default one."""
    for size in (exact_size(order, gate_order), None):
        conv = linear_layer(order, gate_order, size)
        assert deviation(conv, transfer(conv)) < 1e-12


@pytest.mark.parametrize(("order", "gate_order"), [c for c in ORDERS if exact_size(*c) > 1])
def test_one_node_too_few_breaks_it(order, gate_order):
    """Negative twin: ``S = ceil((P_g+2P+1)/2) - 1``.

    It fails in every case, also where ``P_g + 2P`` is odd: the product of that degree vanishes by parity, but
    those of degree ``P_g + 2P - 1 = 2S`` do not and the rule misses them.
    """
    with pytest.warns(UserWarning, match="higher orders alias onto lower ones"):
        conv = linear_layer(order, gate_order, exact_size(order, gate_order) - 1)
    assert deviation(conv, transfer(conv)) > 1e-2


def test_estimated_bound_rescales_the_frequencies():
    """Step 4 of Proposition generalization: ``lambda~ = 2 lambda / lambda_max - 1``; twin: the wrong bound."""
    operator = GraphOperator.from_edge_index(GRAPH.edge_index, lambda_max="estimate", dtype=F64)
    assert operator.lambda_max < 1.99
    conv = linear_layer(2, 1)
    assert deviation(conv, transfer(conv, operator.lambda_max), operator) < 1e-12
    assert deviation(conv, transfer(conv), operator) > 1e-2


@pytest.mark.parametrize("gate_order", [1, 2])
def test_coupling_is_indexed_by_the_source_order(gate_order):
    """Negative twin: gates of the target order (``a_{m,r}``, the transpose) are another operator."""
    conv = linear_layer(3, gate_order)
    assert deviation(conv, transfer(conv).transpose(1, 2)) > 1e-2


def test_constant_gates_do_not_mix_orders():
    """With ``P_g = 0`` the transfer is diagonal; with ``P_g = 1`` it is not."""
    diagonal = transfer(linear_layer(3, 0))
    assert torch.equal(diagonal, torch.diag_embed(diagonal.diagonal(dim1=1, dim2=2)))
    mixed = transfer(linear_layer(3, 1))
    assert gap(mixed, torch.diag_embed(mixed.diagonal(dim1=1, dim2=2))) > 0.1


def test_activation_breaks_it():
    """Negative twin: the theorem is about the layer with its nonlinearity omitted."""
    conv = linear_layer(2, 1)
    conv.activation = torch.relu
    assert deviation(conv, transfer(conv)) > 1e-2
