"""Every system by name, behind one interface: ``system(x, graph) -> ChaosExpansion``."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

from dssgnn.errors import InputError
from dssgnn.nn import DSSGNN, Deterministic, DSSHybrid, make_encoder
from dssgnn.nn.network import Propagation
from dssgnn.nn.norm import Norm
from dssgnn.spectral.chebyshev import FilterInit
from dssgnn.validation import check_choice, check_count, check_share

__all__ = ["METHODS", "Architecture", "make_system"]


@dataclass(frozen=True)
class Architecture:
    """The shape of a system; each method reads what concerns it, and the modules check the choices.

    Attributes:
        hidden_channels: width.
        num_layers: depth (``gat`` has two layers).
        chaos_order: ``P``.
        filter_orders: ``(K_lp, K_hp)``.
        gate_order: ``P_g``.
        propagation: at every layer, or at the first or the last alone.
        residual: connections around the layers, or into them (``"inner"``).
        norm: batch norm an order, or of the random variables (``"joint"``).
        dropout: between layers.
        joint_dropout: whether it zeroes a channel's orders together.
        input_dropout: on the features.
        filter_init: where the filters start.
        base: the encoder of a hybrid.
        residual_scale: where a hybrid's ``g`` starts.
        warmup_epochs: how long a hybrid's base trains alone.
    """

    hidden_channels: int = 64
    num_layers: int = 2
    chaos_order: int = 1
    filter_orders: tuple[int, int] = (4, 4)
    gate_order: int = 0
    propagation: Propagation = "every"
    residual: bool | Literal["identity", "inner"] = True
    norm: Norm | None = None
    dropout: float = 0.5
    joint_dropout: bool = False
    input_dropout: float = 0.0
    filter_init: FilterInit = "lowpass"
    base: str = "gcn"
    residual_scale: float = 0.1
    warmup_epochs: int = 50

    def __post_init__(self) -> None:
        # Sizes beyond these are typing errors or tampered files, and would only end in a lack of memory.
        for name, minimum, maximum in (
            ("hidden_channels", 1, 1 << 14),
            ("num_layers", 1, 1000),
            ("chaos_order", 0, 100),
            ("gate_order", 0, 100),
            ("warmup_epochs", 0, 1 << 62),
        ):
            if check_count(getattr(self, name), name, minimum=minimum) > maximum:
                raise InputError(f"{name} must be at most {maximum}, got {getattr(self, name)!r}")
        orders = self.filter_orders
        if not isinstance(orders, (tuple, list)) or len(orders) != 2:
            raise InputError(f"filter_orders must be two degrees (K_lp, K_hp), got {orders!r}")
        for order in orders:
            if check_count(order, "filter_orders") > 1000:
                raise InputError(f"filter_orders must be at most 1000, got {orders!r}")
        check_choice(self.joint_dropout, (True, False), "joint_dropout")
        for name in ("dropout", "input_dropout"):
            check_share(getattr(self, name), name)
        scale = self.residual_scale
        if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not math.isfinite(scale):
            raise InputError(f"residual_scale must be a finite number, got {scale!r}")


def _dss_gnn(in_channels: int, classes: int, shape: Architecture) -> DSSGNN:
    return DSSGNN(
        in_channels,
        shape.hidden_channels,
        classes,
        num_layers=shape.num_layers,
        chaos_order=shape.chaos_order,
        filter_orders=shape.filter_orders,
        gate_order=shape.gate_order,
        propagation=shape.propagation,
        residual=shape.residual,
        norm=shape.norm,
        dropout=shape.dropout,
        joint_dropout=shape.joint_dropout,
        input_dropout=shape.input_dropout,
        filter_init=shape.filter_init,
    )


def _encoder(
    name: str, options: Callable[[Architecture], dict[str, Any]] = lambda shape: {}
) -> Callable[[int, int, Architecture], nn.Module]:
    def make(in_channels: int, classes: int, shape: Architecture) -> nn.Module:
        # The comparison systems are those of the paper (two layers, no norm, no input dropout) but for ``options``.
        common = {"dropout": shape.dropout} | options(shape)
        return Deterministic(make_encoder(name, in_channels, shape.hidden_channels, classes, **common))

    return make


def _gcn_res(shape: Architecture) -> dict[str, Any]:
    # Without an order the joint norm is batch norm.
    norm = "batch" if shape.norm == "joint" else shape.norm or "layer"
    return {"num_layers": shape.num_layers, "norm": norm, "input_dropout": shape.input_dropout}


def _tfe_gnn(shape: Architecture) -> dict[str, Any]:
    return {
        "filter_orders": shape.filter_orders,
        "propagation_dropout": shape.input_dropout,
        "weight_init": "glorot",  # theirs needs their rates
    }


def _dss_hybrid(in_channels: int, classes: int, shape: Architecture) -> nn.Module:
    base = make_encoder(shape.base, in_channels, shape.hidden_channels, classes, dropout=shape.dropout)
    branch = _dss_gnn(in_channels, classes, shape)
    return DSSHybrid(base, branch, residual_scale=shape.residual_scale, warmup_epochs=shape.warmup_epochs)


METHODS: dict[str, Callable[[int, int, Architecture], nn.Module]] = {
    "dss-gnn": _dss_gnn,
    "dss-hybrid": _dss_hybrid,
    "gcn": _encoder("gcn"),
    "gcn-res": _encoder("gcn-res", _gcn_res),
    "gat": _encoder("gat"),
    "chebnet": _encoder("chebnet", lambda shape: {"degree": shape.filter_orders[0]}),
    "gpr-gnn": _encoder("gpr-gnn"),
    "bernnet": _encoder("bernnet"),
    "tfe-gnn": _encoder("tfe-gnn", _tfe_gnn),
}


def make_system(method: str, in_channels: int, classes: int, shape: Architecture) -> nn.Module:
    """Build a system by its name in results files.

    Raises:
        InputError: for an unknown method, or a value that a module refuses.
    """
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    return METHODS[method](in_channels, classes, shape)
