"""What a training run is told, frozen and checked on construction."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from dssgnn.errors import InputError
from dssgnn.validation import check_choice, check_count, check_share

__all__ = ["MONITORS", "MarginTerm", "Objective", "ParameterGroup", "TrainingConfig"]

Objective = Literal["mean", "quadrature", "predictive", "brier"]
Optimizer = Literal["adam", "adamw", "rmsprop", "sgd"]
Precision = Literal["fp32", "bf16"]

# Which validation metrics can choose the epoch, and whether a lower value is better.
MONITORS = {
    "brier": True,
    "nll": True,
    "ece": True,
    "accuracy": False,
    "brier_mean": True,
    "nll_mean": True,
    "accuracy_mean": False,
}


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters with a learning rate and a weight decay of their own.

    Attributes:
        pattern: a shell pattern on parameter names, such as ``"*coefficients"``; the first group that
            matches takes the parameter.
        lr: learning rate.
        weight_decay: L2 weight decay.
    """

    pattern: str
    lr: float
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _check_number(self.lr, "lr", minimum=0)
        _check_number(self.weight_decay, "weight_decay", minimum=0)


@dataclass(frozen=True)
class MarginTerm:
    """The energy-margin term of GNNSafe++; it needs outliers to train against.

    Attributes:
        inside: ``m_in``, above which the energy of a training node costs.
        outside: ``m_out``, below which the energy of an outlier costs.
        weight: ``lambda``.
        steps: how often the energies are propagated along the edges before they are compared.
        alpha: the share a node keeps of its own energy in each step.
    """

    inside: float
    outside: float
    weight: float
    steps: int = 2
    alpha: float = 0.5

    def __post_init__(self) -> None:
        for name in ("inside", "outside"):
            _check_number(getattr(self, name), name)
        _check_number(self.weight, "weight", minimum=0)
        check_count(self.steps, "steps")
        check_share(self.alpha, "alpha")


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained.

    Attributes:
        objective: ``"mean"`` (eq. loss_base), ``"quadrature"`` (eq. loss_quad), ``"predictive"`` (negative log
            of the quadrature-averaged probability) or ``"brier"`` (Brier score of the averaged probabilities).
        chaos_weight: ``lambda_reg`` of the chaos-energy regulariser.
        logit_weight: weight of a penalty on the squared mean logits; the control for every claim about the chaos
            axis, whose regulariser can act as just that.
        chaos_nodes: the nodes both average over, ``"train"`` (the paper) or ``"all"`` (the authors' code).
        margin: the energy-margin term, or ``None``.
        epochs: at most this many.
        patience: stop after so many epochs without improvement; ``None`` never stops early.
        monitor: the validation metric that chooses the epoch (`MONITORS`).
        optimizer: which one.
        lr: learning rate of what no group takes.
        weight_decay: L2 weight decay of what no group takes.
        groups: parameters with rates of their own.
        clip: largest gradient norm, or ``None``.
        precision: ``"bf16"`` trains under autocast where the GPU has it; evaluation is always full precision.
        seed: of everything random in the run.
        checkpoint_every: epochs between two checkpoints, where a file for them is given.
        capture: ``"auto"`` replays an epoch as a CUDA graph on a GPU, where the model allows it.
    """

    objective: Objective = "mean"
    chaos_weight: float = 0.01
    logit_weight: float = 0.0
    chaos_nodes: Literal["train", "all"] = "train"
    margin: MarginTerm | None = None
    epochs: int = 1000
    patience: int | None = 200
    monitor: str = "brier"
    optimizer: Optimizer = "adam"
    lr: float = 0.01
    weight_decay: float = 5e-4
    groups: tuple[ParameterGroup, ...] = ()
    clip: float | None = None
    precision: Precision = "fp32"
    seed: int = 0
    checkpoint_every: int = 10
    capture: Literal["auto", "never"] = "auto"

    def __post_init__(self) -> None:
        for name, choices in (
            ("objective", get_args(Objective)),
            ("chaos_nodes", ("train", "all")),
            ("monitor", tuple(MONITORS)),
            ("optimizer", get_args(Optimizer)),
            ("precision", get_args(Precision)),
            ("capture", ("auto", "never")),
        ):
            check_choice(getattr(self, name), choices, name)
        for name in ("chaos_weight", "logit_weight", "lr", "weight_decay"):
            _check_number(getattr(self, name), name, minimum=0)
        check_count(self.epochs, "epochs", minimum=1)
        check_count(self.seed, "seed")
        check_count(self.checkpoint_every, "checkpoint_every", minimum=1)
        if self.patience is not None:
            check_count(self.patience, "patience", minimum=1)
        if self.clip is not None:
            _check_number(self.clip, "clip", minimum=0)
            if self.clip == 0:
                raise InputError("clip must be positive or None, got 0.0")


def _check_number(value: object, name: str, minimum: float = -math.inf) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not minimum <= value < math.inf:
        bound = "finite" if minimum == -math.inf else f">= {minimum:g} and finite"
        raise InputError(f"{name} must be {bound}, got {value!r}")
