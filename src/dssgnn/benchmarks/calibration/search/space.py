"""The declared spaces from which tuned rows are drawn: DSS-GNN's `best`, its controls, and its strongest rivals."""

from collections.abc import Callable
from dataclasses import replace

from torch import nn

from dssgnn.baselines import TFE_PRESETS
from dssgnn.benchmarks.calibration.search.arm import RATES, Arm, Config, Values
from dssgnn.benchmarks.frame import Setup
from dssgnn.nn import DSSGNN, Deterministic, make_encoder
from dssgnn.training import ParameterGroup, TrainingConfig

__all__ = [
    "ARMS",
    "COEFFICIENT_DECAY",
    "EARLIER",
    "OBJECTIVES",
    "OURS",
    "PENALTY",
    "TWINS",
    "dss_setup",
]

_OPERATOR = ("direction", "self_loops", "normalization")

# Each family is an architecture with its own ranges; draws go through them in turn. One value a parameter is drawn, a
# value that is listed twice with twice the chance. The first values are where a search begins. ``direction`` is drawn
# where a graph has one.
_DIRECTION = ("both", "out")
_EDGES = (None, "undirected")  # the rivals' choice: as the catalog has them, or without their direction
DSS_FAMILIES: dict[str, Values] = {
    "every": {
        "propagation": ("every",),
        "num_layers": (2, 2, 3),
        "hidden_channels": (64, 128),
        "filter_orders": ((4, 4), (2, 2), (8, 8)),
        "filter_init": ("lowpass", "flat", "published", "highpass"),
        "residual": (True,),
        "norm": ("joint", None),
        "joint_dropout": (True,),
        "dropout": (0.5, 0.2, 0.7),
        "input_dropout": (0.5, 0.0, 0.8),
        "direction": _DIRECTION,
        "self_loops": (False, True),
    },
    "filtered": {  # the paper's two layers, of which the second gives the logits
        "propagation": ("every",),
        "readout": ("filtered",),
        "num_layers": (2,),
        "hidden_channels": (64, 128),
        "filter_orders": ((4, 4), (2, 2), (8, 8)),
        "filter_init": ("published", "lowpass", "flat", "highpass"),
        "weight_init": ("glorot", "published"),
        "joint_dropout": (True,),
        "lift_dropout": (0.5, 0.0, 0.8),
        "dropout": (0.0, 0.5),
        "input_dropout": (0.0, 0.5),
        "direction": _DIRECTION,
        "self_loops": (False, True),
    },
    "last": {  # an MLP, then one filter of its logits
        "propagation": ("last",),
        "readout": ("filtered",),
        "num_layers": (2,),
        "hidden_channels": (64, 128),
        "filter_orders": ((10, 10), (4, 4)),
        "filter_init": ("published", "lowpass", "flat"),
        "joint_dropout": (True,),
        "dropout": (0.5, 0.2, 0.7),
        "input_dropout": (0.5, 0.0, 0.8),
        "direction": _DIRECTION,
        "self_loops": (False, True),
    },
    "first": {
        "propagation": ("first",),
        "num_layers": (2, 1),
        "hidden_channels": (256, 64),
        "filter_orders": ((10, 10), (6, 5), (16, 16)),
        "filter_init": ("published", "lowpass", "flat"),
        "branches": ("sum", "concat"),
        "norm": ("joint", None),
        "joint_dropout": (True,),
        "dropout": (0.5, 0.0),
        "input_dropout": (0.7, 0.5, 0.8),
        "direction": _DIRECTION,
        "self_loops": (True, False),
        "normalization": ("sym", "rw"),
    },
    "deep": {
        "propagation": ("every",),
        "num_layers": (6, 4, 3),
        "hidden_channels": (64, 128),
        "filter_orders": ((2, 2), (4, 4)),
        "filter_init": ("lowpass", "flat", "published"),
        "residual": ("inner", True),
        "norm": ("joint", None),
        "joint_dropout": (True,),
        "bias": (True,),
        "dropout": (0.5, 0.2),
        "input_dropout": (0.0, 0.5),
        "direction": _DIRECTION,
        "self_loops": (False, True),
    },
}
OBJECTIVES = ("quadrature", "predictive", "brier")
# The order and its quadrature; at P=0 every quadrature is the same.
_ORDERS = ((3, 4), (1, 2), (5, 6))
DSS_RATES: Values = {
    "lr": (0.01, 0.005),
    "weight_decay": (5e-4, 0.0, 5e-3),
    "chaos_weight": (0.0, 0.001, 0.01),
    "logit_weight": (0.0, 0.0, 0.001, 0.01),  # for both arms: it is no control of the other
    "coefficient_lr": (None, None, 0.1),
}

# What earlier trials on validation data found good somewhere (docs/chaos_axis.md): a family's first values but for
# these, rates among them, and options that no family draws; ``order`` counts in `_ORDERS`. They stand in for rounds of
# breeding, as many.
DSS_STARTS: tuple[Config, ...] = (
    {"family": "every", "objective": "predictive", "coefficient_lr": 0.1},
    {"family": "every", "norm": None, "filter_init": "highpass", "lr": 0.05},
    {"family": "filtered", "filter_orders": (4, 0), "weight_init": "published"},
    {
        "family": "last", "hidden_channels": 128, "filter_orders": (4, 4), "filter_init": "flat", "self_loops": True,
        "objective": "predictive",
    },
    {
        "family": "first", "filter_init": "flat", "self_loops": False, "lr": 0.005, "logit_weight": 0.01,
        "coefficient_lr": 0.1,
    },
    {
        "family": "first", "num_layers": 1, "hidden_channels": 64, "filter_orders": (16, 16), "dropout": 0.0,
        "self_loops": False, "direction": "out", "objective": "brier", "order": 1, "weight_decay": 0.0,
        "coefficient_lr": 0.1,
    },
    {"family": "deep", "hidden_channels": 128, "lr": 0.005, "order": 1},
    {"family": "deep", "num_layers": 3, "weight_decay": 0.0, "order": 1},
    *(
        {
            "family": "last", "filter_orders": (2, 2), "filter_init": "flat", "bias": True, "dropout": 0.7,
            "input_dropout": rate, "coefficient_lr": 0.001, "coefficient_decay": 0.0,
        }
        for rate in (0.5, 0.0)
    ),
    {
        "family": "first", "num_layers": 1, "hidden_channels": 512, "filter_basis": "monomial", "filter_init": "halves",
        "eta": -0.5, "branches": "concat", "norm": None, "dropout": 0.8, "input_dropout": 0.8, "objective": "brier",
        "lr": 0.005, "weight_decay": 0.0, "coefficient_lr": 0.1,
    },
    {
        "family": "first", "hidden_channels": 512, "filter_basis": "monomial", "filter_init": "halves", "eta": -0.3,
        "filter_orders": (6, 5), "norm": None, "input_dropout": 0.8, "direction": "out", "order": 2, "lr": 0.005,
        "weight_decay": 0.0, "logit_weight": 0.003, "coefficient_lr": 0.1,
    },
)  # fmt: skip

GCN_FAMILIES: dict[str, Values] = {
    "gcn-res": {
        "num_layers": (3, 2, 2, 4, 6),
        "hidden_channels": (64, 128, 256),
        "norm": ("layer", None, "batch"),
        "dropout": (0.5, 0.2, 0.7),
        "input_dropout": (0.5, 0.0, 0.8),
        "objective": ("mean", "brier"),
        "edges": _EDGES,
    }
}
TFE_FAMILIES: dict[str, Values] = {
    "presets": {
        name: tuple(dict.fromkeys(TFE_PRESETS[kind]["model"][name] for kind in ("dss_paper", "tuned")))
        for name in TFE_PRESETS["tuned"]["space"]
    }
    | {"objective": ("mean", "brier"), "edges": _EDGES},
    "tfe-gnn": {**TFE_PRESETS["tuned"]["space"], "objective": ("mean", "brier"), "edges": _EDGES},
}
_PLAIN_RATES: Values = {"lr": (0.01, 0.005), "weight_decay": (0.0, 5e-4, 5e-3)}

# Of filters' coefficients that have a rate of their own, as in the authors' code, where a configuration says nothing.
COEFFICIENT_DECAY = 0.05

# On the squared logits of a penalised twin whose winner's regulariser has no weight: the least that is declared.
PENALTY = 0.001


def dss_setup(config: Config, epochs: int, patience: int) -> Setup:
    """A configuration of DSS-GNN; at order 0 the weight of the chaos energy acts on nothing."""
    others = (*_OPERATOR, *RATES, "objective", "family")
    network = {k: v for k, v in config.items() if k not in others}
    width = network.pop("hidden_channels")

    def make(in_channels: int, classes: int) -> nn.Module:
        return DSSGNN(in_channels, width, classes, **network)

    training = replace(
        _training(config, ("*coefficients",), epochs, patience),
        chaos_weight=config["chaos_weight"] if config["chaos_order"] else 0.0,
        logit_weight=config.get("logit_weight", 0.0),
    )
    operator = {name: config[name] for name in _OPERATOR if name in config}
    return Setup(make, training, operator, config=dict(config))


def _encoder_setup(name: str, groups: tuple[str, ...] = ()) -> Callable[[Config, int, int], Setup]:
    """An encoder whose parameters ``groups`` are its filters' coefficients."""

    def setup(config: Config, epochs: int, patience: int) -> Setup:
        others = (*RATES, "objective", "hidden_channels", "edges", "family")
        options = {k: v for k, v in config.items() if k not in others}

        def make(in_channels: int, classes: int) -> nn.Module:
            width = config["hidden_channels"]
            return Deterministic(make_encoder(name, in_channels, width, classes, **options))

        training = _training(config, groups, epochs, patience)
        preparation = {"edges": config["edges"]} if config.get("edges") else {}
        return Setup(make, training, preparation=preparation, config={"encoder": name, **config})

    return setup


def _training(config: Config, groups: tuple[str, ...], epochs: int, patience: int) -> TrainingConfig:
    """How all of them are trained."""
    lr, decay = config["lr"], config["weight_decay"]
    own, own_decay = config.get("coefficient_lr"), config.get("coefficient_decay", COEFFICIENT_DECAY)
    return TrainingConfig(
        objective=config["objective"],
        chaos_weight=0.0,
        lr=lr,
        weight_decay=decay,
        groups=tuple(
            ParameterGroup(pattern, lr, decay) if own is None else ParameterGroup(pattern, own, own_decay)
            for pattern in groups
        ),
        epochs=epochs,
        patience=patience,
        monitor="brier",
    )


# By method and variant. DSS-GNN's two differ in nothing but the order: the same first draws, and as many.
_DSS = Arm(DSS_FAMILIES, DSS_RATES, dss_setup, _ORDERS, DSS_STARTS)
_TFE_RATES: Values = {**_PLAIN_RATES, "coefficient_lr": (None, 0.1)}
_TFE_GROUPS = ("*_filter", "*branch_weights")
ARMS: dict[tuple[str, str], Arm] = {
    ("dss-gnn", "best"): _DSS,
    ("dss-gnn", "best-p0"): replace(_DSS, orders=((0, 1),)),
    ("gcn-res", "tuned"): Arm(GCN_FAMILIES, _PLAIN_RATES, _encoder_setup("gcn-res")),
    ("tfe-gnn", "tuned"): Arm(TFE_FAMILIES, _TFE_RATES, _encoder_setup("tfe-gnn", _TFE_GROUPS)),
}

# What an earlier search of the residual GCN chose on the WebKB graphs, by the best epochs of its trials.
_EARLIER: Config = {
    "family": "gcn-res", "num_layers": 2, "norm": "layer", "dropout": 0.5, "input_dropout": 0.5, "objective": "brier",
    "edges": "undirected", "lr": 0.005, "weight_decay": 0.005,
}  # fmt: skip
EARLIER: dict[str, Config] = {
    "texas": {**_EARLIER, "hidden_channels": 256, "input_dropout": 0.0},
    "cornell": {**_EARLIER, "hidden_channels": 128, "dropout": 0.2, "objective": "mean"},
    "wisconsin": {**_EARLIER, "hidden_channels": 64},
}

# The row that the pages compare with all others.
OURS = ("dss-gnn", "best")

# What is not searched: the winner of ``best`` with nothing but its order changed, and with a penalty on its logits.
TWINS = (("dss-gnn", "twin-p0"), ("dss-gnn", "twin-p0-penalty"))
