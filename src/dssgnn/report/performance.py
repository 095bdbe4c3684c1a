"""How well the model does on the nodes of the test part, figure by figure."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from dssgnn.errors import InputError
from dssgnn.metrics import reliability_curve
from dssgnn.report.folder import Bools, Floats, ModelFolder, number, section
from dssgnn.report.statistics import (
    NodeScores,
    auroc,
    bin_edges,
    bootstrap,
    chance_ece,
    density,
    node_scores,
    risk_coverage,
    wilson,
)
from dssgnn.report.structure import Groups, distance_groups, homophily_groups, integer_groups

__all__ = ["confidence", "energy", "metrics", "outlier_densities", "reliability", "risk", "strata"]

NO_EDGES = "The model folder holds no edges (it was written with --no-graph), so this cannot be drawn."
NO_LABELS = "No node of the test part has both a label and finite probabilities, so this cannot be measured."
METRICS = ("accuracy", "brier", "nll", "ece")
POINTS = 200  # of a curve

Content = dict[str, Any]


def metrics(model: ModelFolder, test: Bools, scores: NodeScores, seed: int) -> Content:
    """Accuracy, Brier, NLL and ECE of the test part with intervals, and what one answer for all would give."""
    n = len(scores.correct)
    if n == 0:
        return {"absent": NO_LABELS}
    intervals = bootstrap(scores, seed=seed)
    stored = section(model.metrics, "test")
    content: Content = {
        "n": n,
        **{name: interval._asdict() for name, interval in intervals.items()},
        "chance_ece": chance_ece(scores.confidence, seed=seed),
        "other": {
            part: {name: number(section(model.metrics, part).get(name)) for name in METRICS}
            for part in ("train", "val")
        },
        "disagree": [
            name
            for name in METRICS
            if (value := number(stored.get(name))) is not None
            and abs(value - intervals[name].value) > 0.002 + 0.01 * abs(value)
        ],
    }
    # The best that one answer for every node could do; the training part may have quite other shares.
    share = np.bincount(model.labels[test], minlength=len(model.classes)) / n
    guess = node_scores(np.broadcast_to(share, (n, len(share))), model.labels[test])
    content["guess"] = {
        "class": model.classes[int(share.argmax())],
        "accuracy": guess.correct.mean(),
        "brier": guess.brier.mean(),
        "nll": guess.nll.mean(),
    }
    content["untested"] = [name for name, part in zip(model.classes, share, strict=True) if part == 0]
    return content


def reliability(model: ModelFolder, test: Bools) -> Content:
    """Accuracy against confidence in ten bins."""
    if not test.any():
        return {"absent": NO_LABELS}
    curve = reliability_curve(
        torch.from_numpy(model.probabilities[test]), torch.from_numpy(model.labels[test])
    )
    confidence, accuracy, count = (field.numpy() for field in curve)
    low, high = wilson(accuracy * count, count)
    rows = zip(confidence, accuracy, count.astype(int), low, high, strict=True)
    return {
        "bins": [dict(zip(("confidence", "accuracy", "n", "low", "high"), row, strict=True)) for row in rows]
    }


def confidence(scores: NodeScores) -> Content:
    """Counts by confidence, right and wrong."""
    if not len(scores.correct):
        return {"absent": NO_LABELS}
    return _histogram(scores.confidence, scores.correct, np.linspace(0, 1, 21))


def energy(model: ModelFolder, test: Bools) -> Content:
    """Counts by energy, right and wrong; all together where no label is known."""
    energy = model.scores["energy"]
    nodes = test if test.any() else model.parts["test"]
    nodes = nodes & np.isfinite(energy)
    if not nodes.any():
        return {"absent": "No node of the test part has a finite energy, so there is nothing to draw."}
    values = energy[nodes]
    right = model.probabilities[nodes].argmax(axis=1) == model.labels[nodes] if test.any() else None
    return _histogram(values, right, bin_edges(values, 30))


def _histogram(values: Floats, right: Bools | None, edges: Floats) -> Content:
    inside = np.clip(values, edges[0], edges[-1])  # far values are counted in the outer bins
    content = {"edges": edges, "clipped": int((inside != values).sum()), "n": len(values)}
    groups = {"all": np.ones(len(values), dtype=bool)} if right is None else {"right": right, "wrong": ~right}
    return {**content, **{name: np.histogram(inside[mask], edges)[0] for name, mask in groups.items()}}


def risk(model: ModelFolder, test: Bools, scores: NodeScores) -> Content:
    """Risk against coverage, ranked by confidence and by whatever else tells nodes apart."""
    if not test.any():
        return {"absent": NO_LABELS}
    wrong = ~scores.correct
    by = {"confidence": -scores.confidence} | {
        name: model.scores[name][test] for name in ("energy", "mutual_information")
    }
    curves = []
    for name, uncertainty in by.items():
        if not np.isfinite(uncertainty).all() or (name != "confidence" and np.ptp(uncertainty) == 0):
            continue
        curve = risk_coverage(uncertainty, wrong)
        keep = np.unique(np.searchsorted(curve.coverage, np.linspace(0, 1, POINTS + 1)[1:]))
        keep = keep[keep < len(curve.answered)]
        coverage, risk, count = (field[keep] for field in curve)
        low, high = wilson(risk * count, count)
        curves.append({"by": name, "coverage": coverage, "risk": risk, "n": count, "low": low, "high": high})
    return {"n": len(wrong), "all": wrong.mean(), "curves": curves}


def strata(model: ModelFolder, test: Bools, scores: NodeScores, place: Mapping[str, Floats]) -> Content:
    """Accuracy and confidence by class, degree, local homophily and distance to the training part."""
    if not test.any():
        return {key: {"absent": NO_LABELS} for key in ("class", "degree", "homophily", "distance")}
    labels = model.labels[test]
    common = np.argsort(-np.bincount(labels, minlength=len(model.classes)), kind="stable")[:12]
    rank = np.full(len(model.classes), -1)
    rank[common] = np.arange(len(common))
    content = {"class": _stratum(Groups([model.classes[c] for c in common], rank[labels]), scores)}
    if not place:
        return content | {key: {"absent": NO_EDGES} for key in ("degree", "homophily", "distance")}
    content["degree"] = _stratum(integer_groups(place["degree"][test].astype(np.int64)), scores)
    content["homophily"] = _stratum(homophily_groups(place["homophily"][test]), scores)
    content["distance"] = (
        _stratum(distance_groups(place["distance"][test]), scores)
        if model.parts["train"].any()
        else {"absent": "The training part is empty, so there is no distance to it."}
    )
    return content


def _stratum(groups: Groups, scores: NodeScores) -> Content:
    def total(values: Floats | None = None) -> Floats:
        kept = groups.number >= 0
        weights = None if values is None else values[kept]
        return np.bincount(groups.number[kept], weights, minlength=len(groups.names)).astype(np.float64)

    n, right = total(), total(scores.correct.astype(np.float64))
    low, high = wilson(right, n)
    safe = np.maximum(n, 1)
    columns = (right / safe, low, high, total(scores.confidence) / safe, total(scores.brier) / safe)
    names = ("name", "n", "accuracy", "low", "high", "confidence", "brier")
    rows = zip(groups.names, n.astype(int), *columns, strict=True)
    return {"rows": [dict(zip(names, row, strict=True)) for row in rows if row[1] > 0]}


def outlier_densities(model: ModelFolder, outliers: Mapping[str, np.ndarray]) -> Content | None:
    """Densities of the energy of the test nodes and of other graphs; None where none was given."""
    if not outliers:
        return None
    energies = {name: _energies(name, values) for name, values in outliers.items()}
    own = model.scores["energy"][model.parts["test"]]
    own = own[np.isfinite(own)]
    if not len(own):
        return {"absent": "No node of the test part has a finite energy to compare with."}
    edges = bin_edges(np.concatenate([own, *energies.values()]), 180)
    pad = (edges[-1] - edges[0]) / 12
    grid = np.linspace(edges[0] - pad, edges[-1] + pad, 241)
    threshold = np.quantile(own, 0.95)
    series = [{"name": "test nodes", "n": len(own), "density": density(own, grid)}]
    for name, values in energies.items():
        series.append(
            {
                "name": name,
                "n": len(values),
                "density": density(values, grid),
                "auroc": auroc(own, values),
                "missed": float((values <= threshold).mean()),
            }
        )
    return {"grid": grid, "series": series, "threshold": threshold}


def _energies(name: str, values: np.ndarray) -> Floats:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "fiu" or not len(array) or not np.isfinite(array).all():
        raise InputError(
            f"outliers {name!r:.60} must be finite energies, one a node, got {array.dtype} {list(array.shape)}"
        )
    return array.astype(np.float64)
