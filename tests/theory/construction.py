"""The one-layer network of Theorem universal_approx, its parameters set as in the proof."""

import math
from collections.abc import Callable

import numpy as np
import torch

from dssgnn import DSSGNN
from dssgnn.spectral import gauss_hermite, hermite_basis
from theory.support import F64, gap, set_parameters
from theory.support_integrals import gaussian_grid

NO_EDGES = torch.empty(2, 0, dtype=torch.long)


def positive_and_negative(values: torch.Tensor) -> torch.Tensor:
    """Step 3: ``R_s = [V_s^+, V_s^-]``."""
    return torch.cat([values.clamp_min(0), (-values).clamp_min(0)], dim=2)


def shifted_by_a_constant(values: torch.Tensor) -> torch.Tensor:
    """Remark rank_deficient: ``V_s^+ = V_s + c 11^T`` and ``V_s^- = c 11^T``."""
    c = values.abs().max()
    return torch.cat([values + c, torch.full_like(values, c.item())], dim=2)


def build(
    x: torch.Tensor,
    target: torch.Tensor,
    parts: Callable[[torch.Tensor], torch.Tensor] = positive_and_negative,
    activation: str = "relu",
) -> DSSGNN:
    """The one-layer network of the proof for features ``x [N, d_in]`` and coefficients ``target [N, P+1, d]``.

    ``DSSGNN`` has one hidden width, so that the proof's ``W_0 [2d(P+1), 2d]`` and ``W_out [2d, d]`` are padded
    with zeros: the channels added are zero before and after the activation.
    """
    _, orders, d = target.shape
    nodes, weights = gauss_hermite(orders)
    theta = hermite_basis(nodes, orders - 1)  # Theta_st = Psi_{t-1}(w_s)
    phi = theta.T * weights  # Phi_ns = mu_s Psi_n(w_s); at S = P+1 each is the other's inverse
    values = torch.einsum("sn,ind->sid", theta, target)  # solves eq. quadrature_inversion
    r = parts(values)  # [S, N, 2d]
    a = torch.einsum("ts,siq->tiq", phi, r)  # solves eq. block_linear_system
    b = torch.linalg.pinv(x) @ a  # [S, d_in, 2d]

    q = 2 * d
    width = q * orders
    lift = torch.zeros(orders, x.size(1), width, dtype=F64)
    for t in range(orders):
        lift[t, :, t * q : (t + 1) * q] = b[t]
    first = torch.zeros(width, width, dtype=F64)
    first[:, :q] = torch.eye(q, dtype=F64).repeat(orders, 1)
    readout = torch.zeros(width, d, dtype=F64)
    readout[:d], readout[d:q] = torch.eye(d, dtype=F64), -torch.eye(d, dtype=F64)

    model = DSSGNN(
        x.size(1),
        width,
        d,
        num_layers=1,
        chaos_order=orders - 1,
        filter_orders=(0, 0),
        quadrature_size=orders,
        activation=activation,
        dropout=0.0,
    ).double()
    set_parameters(model, lift__weight=lift, readout_weight=readout)
    set_parameters(
        model.layers[0], low_coefficients=1, high_coefficients=0, low_gates=1, high_gates=0, weight=first
    )
    return model


@torch.no_grad()
def output(model: DSSGNN, x: torch.Tensor) -> torch.Tensor:
    return model(x, NO_EDGES).coefficients


def coefficients(function: Callable[[np.ndarray], np.ndarray], order: int) -> torch.Tensor:
    """``E[f Psi_n]`` for ``n <= order``, for a function that is smooth on either side of 0."""
    points, weights = gaussian_grid(np.zeros(1))
    basis = hermite_basis(torch.from_numpy(points), order)
    return torch.from_numpy(weights * function(points)) @ basis


def truncation_errors(function: Callable[[np.ndarray], np.ndarray], orders: list[int]) -> np.ndarray:
    """``||Y - Y_P||`` of the built network at a single node whose target is the function."""
    points, weights = gaussian_grid(np.zeros(1))
    x = torch.ones(1, 1, dtype=F64)
    errors = []
    for order in orders:
        target = coefficients(function, order).view(1, -1, 1)
        z = output(build(x, target), x)
        assert gap(z, target) < 1e-8
        values = (hermite_basis(torch.from_numpy(points), order) @ z[0, :, 0]).numpy()
        errors.append(math.sqrt((weights * (function(points) - values) ** 2).sum()))
    return np.array(errors)
