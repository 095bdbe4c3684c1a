"""A second opinion: the model as dense float64 matrices and plain loops, written from the equations alone.

Nothing here comes from `dssgnn`. Where the library folds filters, shares recurrences and keeps few tensors,
this file does what the paper writes, in the paper's order: dense ``T_k``, both branches of every order, one
pre-activation for each quadrature node, one sum a projection. Gradients are autograd's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from torch import Tensor

F64 = torch.float64
Activation = Callable[[Tensor], Tensor]


def hermite(omega: float, order: int) -> list[float]:
    """Psi_0(omega)..Psi_order(omega), Psi_n = He_n / sqrt(n!)."""
    return [
        float(np.polynomial.hermite_e.hermeval(omega, [0.0] * n + [1.0])) / math.sqrt(math.factorial(n))
        for n in range(order + 1)
    ]


def quadrature(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights with sum_s mu_s f(omega_s) = E[f(omega)] for polynomials up to degree 2 size - 1."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(size)
    return nodes, weights / math.sqrt(2.0 * math.pi)


def default_size(chaos_order: int, gate_order: int = 0) -> int:
    return max(4, math.ceil((gate_order + 2 * chaos_order + 1) / 2))


def adjacency(
    edge_index: Tensor,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    *,
    direction: str = "both",
    self_loops: bool | str = False,
    symmetrize: str = "max",
) -> Tensor:
    """``A[i, j]`` = weight of the edges ``j -> i``, edge by edge."""
    a = torch.zeros(num_nodes, num_nodes, dtype=F64)
    for e in range(edge_index.shape[1]):
        source, target = int(edge_index[0, e]), int(edge_index[1, e])
        a[target, source] += 1.0 if edge_weight is None else float(edge_weight[e])
    if direction == "both":
        other = a.T.clone()
        a = torch.maximum(a, other) if symmetrize == "max" else (a + other) / 2.0
    elif direction == "out":
        a = a.T.clone()
    if self_loops != "keep":
        for i in range(num_nodes):
            a[i, i] = 1.0 if self_loops is True else 0.0
    return a


def normalized(a: Tensor, normalization: str = "sym") -> Tensor:
    """Ahat, with the inverse of zero taken as zero."""
    n = a.shape[0]
    rows = [float(a[i, :].sum()) for i in range(n)]
    columns = [float(a[:, j].sum()) for j in range(n)]
    hat = torch.zeros_like(a)
    for i in range(n):
        for j in range(n):
            if a[i, j] == 0.0:
                continue
            if normalization == "sym":
                hat[i, j] = float(a[i, j]) / math.sqrt(rows[i]) / math.sqrt(columns[j])
            elif normalization == "rw":
                hat[i, j] = float(a[i, j]) / rows[i]
            elif normalization == "col":
                hat[i, j] = float(a[i, j]) / columns[j]
            else:
                raise ValueError(normalization)
    return hat


def operator(
    edge_index: Tensor,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    *,
    normalization: str = "sym",
    lambda_max: float | str = 2.0,
    **options: bool | str,
) -> Tensor:
    """L~ = (2 / lambda_max) (I - Ahat) - I, dense."""
    laplacian = torch.eye(num_nodes, dtype=F64) - normalized(
        adjacency(edge_index, num_nodes, edge_weight, **options), normalization
    )
    if lambda_max == "estimate":
        lambda_max = float(torch.linalg.eigvalsh(laplacian)[-1])
    return (2.0 / lambda_max) * laplacian - torch.eye(num_nodes, dtype=F64)


def chebyshev(l_tilde: Tensor, degree: int) -> list[Tensor]:
    """The matrices T_0(L~)..T_degree(L~)."""
    eye = torch.eye(l_tilde.shape[0], dtype=l_tilde.dtype)
    matrices = [eye, l_tilde]
    for _ in range(2, degree + 1):
        matrices.append(2.0 * l_tilde @ matrices[-1] - matrices[-2])
    return matrices[: degree + 1]


def monomials(hat: Tensor, degree: int) -> list[Tensor]:
    return [torch.linalg.matrix_power(hat, k) for k in range(degree + 1)]


def graph_filter(l_tilde: Tensor, coefficients: Tensor) -> Tensor:
    """G = sum_k c_k T_k(L~) as a matrix (eq. cheby_filters)."""
    matrices = chebyshev(l_tilde, coefficients.shape[0] - 1)
    return sum(coefficients[k] * matrices[k] for k in range(coefficients.shape[0]))


def layer(
    h: Tensor,
    l_tilde: Tensor,
    params: Mapping[str, Tensor],
    *,
    size: int,
    activation: Activation | None,
    branches: str = "sum",
) -> Tensor:
    """Eqs. cheby_filters to dss_projection_update for a state ``h [N, P+1, d]``.

    Without coefficients in ``params`` the layer has no graph: G_lp = I, G_hp = 0, alpha = 1.
    """
    n_nodes, orders, width = h.shape
    weight = params["weight"]
    propagates = "low_coefficients" in params
    if propagates:
        low = graph_filter(l_tilde, params["low_coefficients"])
        high = graph_filter(l_tilde, params["high_coefficients"])
        a, b = params["low_gates"], params["high_gates"]
    nodes, weights = quadrature(size)
    new = [torch.zeros(n_nodes, weight.shape[1], dtype=h.dtype) for _ in range(orders)]
    for s in range(size):
        psi = hermite(nodes[s], orders - 1)
        if propagates:
            gate_psi = hermite(nodes[s], a.shape[1] - 1)
            from_low = torch.zeros(n_nodes, width, dtype=h.dtype)
            from_high = torch.zeros(n_nodes, width, dtype=h.dtype)
            for n in range(orders):
                alpha = sum(a[n, r] * gate_psi[r] for r in range(a.shape[1]))
                beta = sum(b[n, r] * gate_psi[r] for r in range(b.shape[1]))
                from_low = from_low + psi[n] * alpha * (low @ h[:, n])
                from_high = from_high + psi[n] * beta * (high @ h[:, n])
            if branches == "concat":
                v = torch.cat([from_low, from_high], dim=1) @ weight
            else:
                v = (from_low + from_high) @ weight
        else:
            v = sum(psi[n] * h[:, n] for n in range(orders)) @ weight
        if "bias" in params:
            v = v + params["bias"]
        u = v if activation is None else activation(v)
        for m in range(orders):
            new[m] = new[m] + weights[s] * psi[m] * u
    return torch.stack(new, dim=1)


def batch_norm(
    h: Tensor, gain: Tensor, shift: Tensor, running: tuple[Tensor, Tensor] | None, eps: float = 1e-5
) -> Tensor:
    """One BatchNorm1d an order: each (order, channel) over the nodes; running statistics where given."""
    orders, width = h.shape[1:]
    out = []
    for n in range(orders):
        here = slice(n * width, (n + 1) * width)
        if running is None:
            mean = h[:, n].mean(dim=0)
            variance = ((h[:, n] - mean) ** 2).mean(dim=0)
        else:
            mean, variance = running[0][here], running[1][here]
        out.append((h[:, n] - mean) / torch.sqrt(variance + eps) * gain[here] + shift[here])
    return torch.stack(out, dim=1)


def joint_norm(
    h: Tensor, gain: Tensor, shift: Tensor, running: tuple[Tensor, Tensor] | None, eps: float = 1e-5
) -> Tensor:
    """Batch norm of the field h(omega): over nodes and omega together, on its values, projected back."""
    orders = h.shape[1]
    nodes, weights = quadrature(orders)  # exact for squares of the field
    basis = [hermite(omega, orders - 1) for omega in nodes]
    values = [sum(psi[n] * h[:, n] for n in range(orders)) for psi in basis]  # [N, d] for each omega
    if running is None:
        mean = sum(mu * v.mean(dim=0) for mu, v in zip(weights, values, strict=True))
        variance = sum(mu * ((v - mean) ** 2).mean(dim=0) for mu, v in zip(weights, values, strict=True))
    else:
        mean, variance = running
    new = [(v - mean) / torch.sqrt(variance + eps) * gain + shift for v in values]
    return torch.stack(
        [sum(weights[s] * basis[s][n] * new[s] for s in range(orders)) for n in range(orders)], dim=1
    )


def inner_layer(
    h: Tensor,
    l_tilde: Tensor,
    params: Mapping[str, Tensor],
    skip: Tensor,
    *,
    size: int,
    activation: Activation,
    branches: str = "sum",
    norm: Activation | None = None,
) -> Tensor:
    """`layer` with constant gates and ``H_n R`` (``skip`` is R) inside: sigma of norm(U + H R) and the bias."""
    u = []
    for n in range(h.shape[1]):
        parts = [h[:, n]]
        if "low_coefficients" in params:
            low = graph_filter(l_tilde, params["low_coefficients"]) @ h[:, n] * params["low_gates"][n, 0]
            high = graph_filter(l_tilde, params["high_coefficients"]) @ h[:, n] * params["high_gates"][n, 0]
            parts = [low, high] if branches == "concat" else [low + high]
        u.append(torch.cat(parts, dim=1) @ params["weight"] + h[:, n] @ skip)
    state = torch.stack(u, dim=1)
    if norm is not None:
        state = norm(state)
    new = [torch.zeros_like(state[:, 0]) for _ in u]
    for omega, mu in zip(*quadrature(size), strict=True):
        psi = hermite(omega, len(u) - 1)
        v = sum(psi[n] * state[:, n] for n in range(len(u))) + params.get("bias", 0.0)
        for m in range(len(u)):
            new[m] = new[m] + mu * psi[m] * activation(v)
    return torch.stack(new, dim=1)


def under(params: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) :]: value for name, value in params.items() if name.startswith(prefix)}


def network(
    x: Tensor,
    l_tilde: Tensor,
    params: Mapping[str, Tensor],
    *,
    num_layers: int,
    chaos_order: int,
    size: int,
    activation: Activation,
    readout: str = "linear",
    residual: bool | str = False,
    branches: str = "sum",
    norm: str | None = None,
    running: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """Coefficients ``Z [N, P+1, C]``: lift, L layers, readout; no dropout.

    ``params`` has the names of the library's `named_parameters`. ``running`` holds the running statistics of
    the norms; without it the norms use those of the nodes at hand.
    """
    lift = params["lift.weight"]
    if "lift.gains" in params:
        h = torch.stack([params["lift.gains"][n] * (x @ lift[0]) for n in range(chaos_order + 1)], dim=1)
    else:
        h = torch.stack([x @ lift[n] for n in range(chaos_order + 1)], dim=1)
    for i in range(num_layers):
        is_output = readout == "filtered" and i == num_layers - 1
        here = under(params, f"layers.{i}.")
        options = {"size": size, "branches": branches if i == 0 else "sum"}
        if is_output:
            return layer(h, l_tilde, here, activation=None, **options)
        normalize = None
        if norm is not None:
            statistics = None
            if running is not None:
                statistics = (running[f"norms.{i}.running_mean"], running[f"norms.{i}.running_var"])
            affine = params[f"norms.{i}.weight"], params[f"norms.{i}.bias"]
            kind = {"batch": batch_norm, "joint": joint_norm}[norm]
            normalize = partial(kind, gain=affine[0], shift=affine[1], running=statistics)
        if residual == "inner":
            skip = params[f"residual_weights.{i}"]
            h = inner_layer(h, l_tilde, here, skip, activation=activation, norm=normalize, **options)
            continue
        new = layer(h, l_tilde, here, activation=activation, **options)
        if normalize is not None:
            new = normalize(new)
        if residual is True:
            new = new + torch.stack(
                [h[:, m] @ params[f"residual_weights.{i}"] for m in range(chaos_order + 1)], dim=1
            )
        elif residual == "identity":
            new = new + h
        h = new
    z = torch.stack([h[:, n] @ params["readout_weight"] for n in range(chaos_order + 1)], dim=1)
    if "readout_bias" in params:
        # A bias is a constant in omega: it belongs to Psi_0 = 1 alone.
        z = torch.cat([z[:, :1] + params["readout_bias"], z[:, 1:]], dim=1)
    return z


def field(z: np.ndarray, omega: float) -> np.ndarray:
    """z(omega) = sum_n Z_n Psi_n(omega) for one node's ``Z [P+1, C]``."""
    psi = hermite(omega, z.shape[0] - 1)
    return sum(psi[n] * z[n] for n in range(z.shape[0]))


def softmax(v: np.ndarray) -> np.ndarray:
    e = np.exp(v - v.max())
    return e / e.sum()


def entropy(p: np.ndarray) -> float:
    return -sum(float(q) * math.log(float(q)) for q in p if q > 0.0)


def readouts(z: np.ndarray, size: int, temperature: float = 1.0) -> dict[str, np.ndarray | float]:
    """Every readout of section 3.2 for one node's ``Z [P+1, C]``."""
    orders, classes = z.shape
    covariance = np.zeros((classes, classes))
    for n in range(1, orders):
        for c in range(classes):
            for d in range(classes):
                covariance[c, d] += z[n, c] * z[n, d]
    nodes, weights = quadrature(size)
    samples = [softmax(field(z, omega)) for omega in nodes]
    predictive = sum(mu * p for mu, p in zip(weights, samples, strict=True))
    largest = z[0].max() / temperature
    return {
        "mean": z[0],
        "covariance": covariance,
        "variance": np.diag(covariance),
        "chaos_energy": float(sum(z[n, c] ** 2 for n in range(1, orders) for c in range(classes))),
        "predictive": predictive,
        "entropy": entropy(predictive),
        "mutual_information": entropy(predictive)
        - sum(mu * entropy(p) for mu, p in zip(weights, samples, strict=True)),
        "energy": -temperature * (largest + math.log(np.exp(z[0] / temperature - largest).sum())),
    }
