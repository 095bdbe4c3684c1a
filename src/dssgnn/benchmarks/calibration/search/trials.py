"""Trials of a search: architectures and rates that are drawn from an arm's space, declared in it, or bred."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from dssgnn.benchmarks.calibration.search.arm import RATES, Arm, Config, Values
from dssgnn.benchmarks.calibration.search.space import OBJECTIVES
from dssgnn.errors import InputError

__all__ = ["begin", "best_shapes", "breed", "draw", "shape_of", "text_of"]


def draw(arm: Arm, shapes: int, rates: int, seed: int = 0) -> list[dict[str, Any]]:
    """The first trials of an arm: ``shapes`` architectures with ``rates`` settings of the training each.

    Every family begins with its first values; the others are drawn.

    Example:
        >>> from dssgnn.benchmarks.calibration.search.space import ARMS
        >>> best = ARMS["dss-gnn", "best"]
        >>> draw(best, 2, 3) == draw(best, 4, 3)[:6]
        True
    """
    rng = np.random.default_rng(seed)
    families = list(arm.families.items())
    trials = []
    for i in range(shapes):
        name, values = families[i % len(families)]
        config = _pick(rng, values) if i >= len(families) else {k: each[0] for k, each in values.items()}
        if arm.orders:
            # Drawn alike for every arm, however many orders it has.
            order, objective = rng.integers(2**31, size=2) if i >= len(families) else (0, 0)
            config["chaos_order"], config["quadrature_size"] = arm.orders[order % len(arm.orders)]
            config["objective"] = OBJECTIVES[objective % len(OBJECTIVES)]
        trials += [{"family": name, **config, **own} for own in _distinct(rng, arm.rates, rates)]
    return trials


def begin(arm: Arm, starts: int, rates: int, seed: int = 0) -> list[dict[str, Any]]:
    """An arm's first ``starts``, each under its own rates and drawn ones, ``rates`` in all; of every order the same."""
    rng = np.random.default_rng(seed)
    trials = []
    for start in arm.starts[:starts]:
        values = arm.families[start["family"]]
        shape = {k: each[0] for k, each in values.items()}
        shape |= {k: v for k, v in start.items() if k not in ("family", "objective", "order", *RATES)}
        if shape["direction"] not in values["direction"]:
            shape["direction"] = values["direction"][0]
        shape["chaos_order"], shape["quadrature_size"] = arm.orders[start.get("order", 0) % len(arm.orders)]
        shape["objective"] = start.get("objective", OBJECTIVES[0])
        own = {name: each[0] for name, each in arm.rates.items()} | {k: start[k] for k in RATES if k in start}
        trials += [
            {"family": start["family"], **shape, **each} for each in _distinct(rng, arm.rates, rates, own)
        ]
    return trials


def breed(
    arm: Arm, scored: Sequence[tuple[Config, float]], children: int, rates: int, seed: int
) -> list[dict[str, Any]]:
    """Architectures like the best so far, with two parameters changed each, under its rates and others.

    Args:
        arm: whose ranges; one without a chaos axis, as those with one have declared starts in the place of this.
        scored: every trial so far with its score, of which less is better.
        children: how many architectures.
        rates: settings of the training, for each.
        seed: of the changes.
    """
    rng = np.random.default_rng(seed)
    seen = {text_of(shape_of(config)) for config, _ in scored}
    parents = best_shapes(scored)
    trials: list[dict[str, Any]] = []
    for i in range(children):
        parent = parents[min(max(0, i - 1), len(parents) - 1)]  # the best twice, the next ones once
        shape = shape_of(parent)
        changed = _changed(rng, arm, shape)
        for _ in range(1000):
            if text_of(changed) not in seen:
                break
            changed = _changed(rng, arm, shape)
        seen.add(text_of(changed))
        kept = {name: parent[name] for name in arm.rates}
        trials += [changed | own for own in _distinct(rng, arm.rates, rates, kept)]
    return trials


def best_shapes(scored: Sequence[tuple[Config, float]]) -> list[Config]:
    """Of every architecture its best trial, the best one first; less is better."""
    best: dict[str, Config] = {}
    for config, _ in sorted(scored, key=lambda pair: pair[1]):
        best.setdefault(text_of(shape_of(config)), config)
    return list(best.values())


def _changed(rng: np.random.Generator, arm: Arm, shape: Config) -> dict[str, Any]:
    """Two of an architecture's parameters set to other values."""
    now, values = dict(shape), arm.families[shape["family"]]
    others = {name: [v for v in dict.fromkeys(each) if v != now[name]] for name, each in values.items()}
    able = [name for name, each in others.items() if each]
    for name in rng.choice(able, size=min(2, len(able)), replace=False):
        now[str(name)] = others[str(name)][rng.integers(len(others[str(name)]))]
    return now


def _distinct(
    rng: np.random.Generator, values: Values, count: int, first: Config | None = None
) -> list[dict[str, Any]]:
    """Settings that differ from each other, ``first`` among them where it is given."""
    drawn: dict[tuple[Any, ...], dict[str, Any]] = {}

    def add(own: Config) -> None:
        # Also where there is no chaos energy to weigh.
        drawn.setdefault(tuple(v for k, v in own.items() if k != "chaos_weight"), dict(own))

    if first is not None:
        add(first)
    for _ in range(1000):
        if len(drawn) >= count:
            return list(drawn.values())
        add(_pick(rng, values))
    raise InputError(f"there are not {count} settings of {', '.join(values)} to draw")


def shape_of(config: Config) -> dict[str, Any]:
    """What configurations must share to be trained as one block."""
    return {k: v for k, v in config.items() if k not in RATES}


def _pick(rng: np.random.Generator, values: Values) -> dict[str, Any]:
    return {name: each[rng.integers(len(each))] for name, each in values.items()}


def text_of(config: Config) -> str:
    """A configuration as a key: the same text where it is the same, also when it was read from a file."""
    return json.dumps(config, sort_keys=True, default=list)
