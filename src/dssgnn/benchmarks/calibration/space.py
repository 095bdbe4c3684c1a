"""The declared spaces from which tuned rows are drawn: DSS-GNN's `best`, its controls, and its strongest rivals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import nn

from dssgnn.baselines import TFE_PRESETS
from dssgnn.benchmarks.calibration.setup import Setup
from dssgnn.nn import DSSGNN, Deterministic, make_encoder
from dssgnn.training import ParameterGroup, TrainingConfig

__all__ = ["ARMS", "TWINS", "Arm", "Config", "Values", "draw", "dss_setup", "shape_of"]

Config = Mapping[str, Any]
Values = Mapping[str, tuple[Any, ...]]

# What may differ between members of one block: numbers of the training, not what is computed.
_RATES = ("lr", "weight_decay", "chaos_weight", "coefficient_lr")
_OPERATOR = ("direction", "self_loops", "normalization")

# Each family is an architecture with its own ranges; draws go through them in turn. One value a parameter is drawn, a
# value that is listed twice with twice the chance.
DSS_FAMILIES: dict[str, Values] = {
    "every": {
        "propagation": ("every",),
        "num_layers": (2, 2, 3),
        "hidden_channels": (64, 128),
        "filter_orders": ((4, 4), (2, 2)),
        "filter_init": ("lowpass", "flat", "published", "highpass"),
        "residual": (True,),
        "norm": (None, "batch"),
        "dropout": (0.2, 0.5, 0.7),
        "input_dropout": (0.0, 0.5, 0.8),
        "direction": ("both", "both", "out"),
        "self_loops": (False, True),
    },
    "last": {  # an MLP, then one filter of its logits
        "propagation": ("last",),
        "readout": ("filtered",),
        "num_layers": (2,),
        "hidden_channels": (64, 128),
        "filter_orders": ((10, 10), (4, 4)),
        "filter_init": ("lowpass", "lowpass", "flat", "published"),
        "dropout": (0.2, 0.5, 0.7),
        "input_dropout": (0.0, 0.5, 0.8),
        "direction": ("both", "both", "out"),
        "self_loops": (False, True),
    },
    "first": {
        "propagation": ("first",),
        "num_layers": (2,),
        "hidden_channels": (64, 256),
        "filter_orders": ((6, 5), (10, 10), (16, 16)),
        "filter_init": ("lowpass", "flat", "published"),
        "branches": ("sum", "concat"),
        "norm": (None, "batch"),
        "dropout": (0.0, 0.5),
        "input_dropout": (0.5, 0.7, 0.8),
        "direction": ("both", "out"),
        "self_loops": (False, True),
        "normalization": ("sym", "rw"),
    },
    "deep": {
        "propagation": ("every",),
        "num_layers": (4, 6),
        "hidden_channels": (64,),
        "filter_orders": ((2, 2),),
        "filter_init": ("lowpass", "flat", "published"),
        "residual": (True,),
        "norm": (None, "batch"),
        "dropout": (0.2, 0.5),
        "input_dropout": (0.0, 0.5),
        "direction": ("both",),
        "self_loops": (False, True),
    },
}
_OBJECTIVES = ("predictive", "brier", "quadrature")
# The order and its quadrature; at P=0 every quadrature is the same.
_ORDERS = ((1, 2), (1, 4), (2, 4), (3, 4))
DSS_RATES: Values = {
    "lr": (0.01, 0.005),
    "weight_decay": (0.0, 5e-4, 5e-3),
    "chaos_weight": (0.0, 0.001, 0.01),
    "coefficient_lr": (None, None, 0.1),
}

GCN_FAMILIES: dict[str, Values] = {
    "gcn-res": {
        "num_layers": (2, 2, 3, 4, 6),
        "hidden_channels": (64, 128, 256),
        "norm": (None, "batch", "layer"),
        "dropout": (0.2, 0.5, 0.7),
        "input_dropout": (0.0, 0.5, 0.8),
        "objective": ("mean", "brier"),
    }
}
TFE_FAMILIES: dict[str, Values] = {
    "tfe-gnn": {**TFE_PRESETS["tuned"]["space"], "objective": ("mean", "brier")}
}
_PLAIN_RATES: Values = {"lr": (0.01, 0.005), "weight_decay": (0.0, 5e-4, 5e-3)}

# Of a penalised control whose regulariser has no weight: the least that is declared, so as not to handicap it.
_PENALTY = 0.001


def dss_setup(config: Config, arm: str, epochs: int, patience: int) -> Setup:
    """A configuration of DSS-GNN as an arm trains it; ``best-p0-penalty`` has the regulariser's weight on the squared
    mean logits instead.
    """
    network = {k: v for k, v in config.items() if k not in (*_OPERATOR, *_RATES, "objective")}
    width = network.pop("hidden_channels")
    penalty = (config["chaos_weight"] or _PENALTY) if arm == "best-p0-penalty" else 0.0

    def make(in_channels: int, classes: int) -> nn.Module:
        return DSSGNN(in_channels, width, classes, **network)

    training = replace(
        _training(config, ("*coefficients",), epochs, patience),
        chaos_weight=0.0 if penalty else config["chaos_weight"],
        logit_weight=penalty,
    )
    operator = {name: config[name] for name in _OPERATOR if name in config}
    return Setup(make, training, operator, config=dict(config))


def _encoder_setup(name: str, groups: tuple[str, ...] = ()) -> Callable[[Config, str, int, int], Setup]:
    """An encoder whose parameters ``groups`` are its filters' coefficients."""

    def setup(config: Config, arm: str, epochs: int, patience: int) -> Setup:
        others = (*_RATES, "objective", "hidden_channels", "edges")
        options = {k: v for k, v in config.items() if k not in others}

        def make(in_channels: int, classes: int) -> nn.Module:
            width = config["hidden_channels"]
            return Deterministic(make_encoder(name, in_channels, width, classes, **options))

        training = _training(config, groups, epochs, patience)
        preparation = {"edges": "undirected"} if config.get("edges") == "undirected" else {}
        return Setup(make, training, preparation=preparation, config={"encoder": name, **config})

    return setup


def _training(config: Config, groups: tuple[str, ...], epochs: int, patience: int) -> TrainingConfig:
    """How all of them are trained; coefficients with a rate of their own decay as in the authors' code."""
    lr, decay = config["lr"], config["weight_decay"]
    own = config.get("coefficient_lr")
    return TrainingConfig(
        objective=config["objective"],
        chaos_weight=0.0,
        lr=lr,
        weight_decay=decay,
        groups=tuple(
            ParameterGroup(pattern, lr, decay) if own is None else ParameterGroup(pattern, own, 0.05)
            for pattern in groups
        ),
        epochs=epochs,
        patience=patience,
        monitor="brier",
    )


def _dss_starts(dataset: str) -> list[dict[str, Any]]:
    """The package's defaults. Not the authors' configurations, which were chosen on the test data of these splits."""
    return [
        {
            "propagation": "every", "num_layers": 2, "hidden_channels": 64, "filter_orders": (4, 4), "residual": True,
            "filter_init": "lowpass", "norm": None, "dropout": 0.5, "input_dropout": 0.5,
        }
    ]  # fmt: skip


@dataclass(frozen=True)
class Arm:
    """A row that is searched for.

    Attributes:
        name: the row's variant.
        families: ranges of what is computed, and of the numbers it is trained with.
        rates: ranges of the numbers.
        setup: ``setup(config, arm, epochs, patience)``.
        orders: ``(P, S)``; none where there is no chaos axis.
        starts: configurations of a dataset that come before any draw; rates are drawn for them too.
    """

    name: str
    families: Mapping[str, Values]
    rates: Values
    setup: Callable[[Config, str, int, int], Setup]
    orders: tuple[tuple[int, int], ...] = ()
    starts: Callable[[str], list[dict[str, Any]]] = lambda dataset: []


def _gcn_starts(dataset: str) -> list[dict[str, Any]]:
    return [
        {
            "num_layers": 3,
            "hidden_channels": 64,
            "norm": "layer",
            "dropout": 0.5,
            "input_dropout": 0.5,
            "objective": "mean",
        }
    ]


def _tfe_starts(dataset: str) -> list[dict[str, Any]]:
    return [{**TFE_PRESETS[kind]["model"], "objective": "mean"} for kind in ("tuned", "dss_paper")]


# By method and variant. DSS-GNN's three differ in nothing but the order and the penalty: the same draws, as many.
_DSS = Arm("best", DSS_FAMILIES, DSS_RATES, dss_setup, _ORDERS, _dss_starts)
_TFE_RATES: Values = {**_PLAIN_RATES, "coefficient_lr": (None, 0.1)}
_TFE_GROUPS = ("*_filter", "*branch_weights")
ARMS: dict[tuple[str, str], Arm] = {
    ("dss-gnn", "best"): _DSS,
    ("dss-gnn", "best-p0"): replace(_DSS, name="best-p0", orders=((0, 1),)),
    ("dss-gnn", "best-p0-penalty"): replace(_DSS, name="best-p0-penalty", orders=((0, 1),)),
    ("gcn-res", "tuned"): Arm(
        "tuned", GCN_FAMILIES, _PLAIN_RATES, _encoder_setup("gcn-res"), starts=_gcn_starts
    ),
    ("tfe-gnn", "tuned"): Arm(
        "tuned", TFE_FAMILIES, _TFE_RATES, _encoder_setup("tfe-gnn", _TFE_GROUPS), starts=_tfe_starts
    ),
}

# What is not searched: the winner of ``best`` with nothing but its order changed, and with the penalty as well.
TWINS = {("dss-gnn", "twin-p0"): "best-p0", ("dss-gnn", "twin-p0-penalty"): "best-p0-penalty"}


def draw(arm: Arm, dataset: str, shapes: int, rates: int, seed: int = 0) -> list[dict[str, Any]]:
    """The trials of an arm: ``shapes`` architectures with ``rates`` settings of the training each.

    Example:
        >>> best = ARMS["dss-gnn", "best"]
        >>> draw(best, "cora", 2, 3) == draw(best, "cora", 4, 3)[:6]
        True
    """
    rng = np.random.default_rng(seed)
    families, starts = list(arm.families.values()), arm.starts(dataset)
    trials = []
    for i in range(shapes):
        # Drawn also where a start takes the place, so that arms with other starts have the same draws.
        config = _pick(rng, families[i % len(families)])
        if i < len(starts):
            config = dict(starts[i])
        if arm.orders:
            # Every family meets every order and objective, and these each other.
            turn = i + i // len(families)
            config["chaos_order"], config["quadrature_size"] = arm.orders[turn % len(arm.orders)]
            config["objective"] = _OBJECTIVES[(i + i // len(_OBJECTIVES)) % len(_OBJECTIVES)]
        trials += [config | own for own in _distinct(rng, arm.rates, rates)]
    return trials


def _distinct(rng: np.random.Generator, values: Values, count: int) -> list[dict[str, Any]]:
    """Settings that differ, also where the regulariser has nothing to act on."""
    drawn: dict[tuple[Any, ...], dict[str, Any]] = {}
    while len(drawn) < count:
        own = _pick(rng, values)
        drawn.setdefault(tuple(v for k, v in own.items() if k != "chaos_weight"), own)
    return list(drawn.values())


def shape_of(config: Config) -> dict[str, Any]:
    """What configurations must share to be trained as one block."""
    return {k: v for k, v in config.items() if k not in _RATES}


def _pick(rng: np.random.Generator, values: Values) -> dict[str, Any]:
    return {name: each[rng.integers(len(each))] for name, each in values.items()}
