"""Choosing a configuration on validation data: successive halving over a declared space."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dssgnn.errors import InputError
from dssgnn.validation import check_choice

__all__ = ["BUDGETS", "SPACE", "Search", "Trial", "halving"]

Search = Literal["quick", "thorough"]

# What is drawn from, one value a parameter, each with equal chance. The estimator's own settings are the first
# candidate, so a search never ends below them on the data it looks at.
SPACE: dict[str, tuple[Any, ...]] = {
    "num_layers": (2, 3, 4, 6),
    "hidden_channels": (32, 64, 128),
    "chaos_order": (1, 2, 3),
    "propagation": ("every", "every", "first"),
    "norm": (None, "joint"),
    "dropout": (0.2, 0.5, 0.7),
    "input_dropout": ("auto", 0.0, 0.8),
    "filter_init": ("lowpass", "highpass", "flat", "published"),
    "direction": ("both", "both", "in", "out"),
    "objective": ("predictive", "brier", "mean"),
    "chaos_weight": (0.0, 0.01),
    "lr": (0.01, 0.005),
    "weight_decay": (0.0, 5e-4, 5e-3),
}

# Candidates, and the epochs that each round of survivors trains for; a third survives a round.
BUDGETS: dict[str, tuple[int, tuple[int, ...]]] = {"quick": (9, (40, 150)), "thorough": (27, (40, 120, 360))}


@dataclass(frozen=True)
class Trial:
    """A configuration and how it did.

    Attributes:
        parameters: what differs from the estimator's own settings.
        epochs: how long it was trained at the most.
        brier: its best validation Brier.
    """

    parameters: dict[str, Any]
    epochs: int
    brier: float


def halving(
    score: Callable[[dict[str, Any], int], float],
    kind: Search,
    *,
    seed: int = 0,
    seconds: float | None = None,
    say: Callable[[Trial], None] = lambda trial: None,
) -> list[Trial]:
    """Find a configuration with a low validation Brier.

    Args:
        score: trains a configuration for so many epochs and returns its best validation Brier.
        kind: ``"quick"`` (9 candidates) or ``"thorough"`` (27).
        seed: of the candidates drawn.
        seconds: no trial is begun after this long; the best so far is then the answer.
        say: called with every finished trial.

    Returns:
        Every trial, the best of the last round that was run first.

    Example:
        >>> best = halving(lambda parameters, epochs: parameters.get("lr", 0.01) / epochs, "quick")[0]
        >>> best.epochs, best.parameters["lr"]
        (150, 0.005)
    """
    check_choice(kind, Search, "search")
    if seconds is not None and not 0 < seconds < math.inf:
        raise InputError(f"search_seconds must be positive or None, got {seconds!r}")
    count, rounds = BUDGETS[kind]
    rng = np.random.default_rng(seed)
    candidates: list[dict[str, Any]] = [{}]
    candidates += [{k: v[rng.integers(len(v))] for k, v in SPACE.items()} for _ in range(count - 1)]
    start = time.perf_counter()
    finished: list[Trial] = []
    for epochs in rounds:
        trials = []
        for parameters in candidates:
            if finished and seconds is not None and time.perf_counter() - start > seconds:
                break
            trial = Trial(parameters, epochs, score(parameters, epochs))
            say(trial)
            trials.append(trial)
            finished.append(trial)
        trials.sort(key=lambda trial: trial.brier)
        candidates = [trial.parameters for trial in trials[: max(1, len(trials) // 3)]]
        if not trials:
            break
    # A longer run is better informed than a shorter one, whatever their figures.
    return sorted(finished, key=lambda trial: (-trial.epochs, trial.brier))
