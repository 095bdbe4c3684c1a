"""The page's first words: what the numbers say, and no more than their sample allows."""

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["findings"]

FEW = 30  # nodes below which a group is not singled out


def findings(content: Mapping[str, Any]) -> list[str]:
    """Plain sentences for the top of the page, from the rest of its content."""
    metrics, about = content["metrics"], content["about"]
    sentences = []
    if about["broken"]:
        sentences.append(
            f"{about['broken']:,} test nodes have no finite probabilities and are left out of every figure: "
            "the model has diverged on them."
        )
    if "absent" in metrics:
        return [*sentences, metrics["absent"]]
    sentences += [_accuracy(metrics), _calibration(metrics), *_coverage(content["risk"])]
    sentences += _weakest(content["strata"], metrics["accuracy"]["value"])
    for series in (content["outliers"] or {}).get("series", [])[1:]:
        sentences.append(
            f"A node of {isolate(series['name'])} has more energy than a test node with chance "
            f"{percent(series['auroc'])} (50\u00a0% would be no signal)."
        )
    if metrics["disagree"]:
        sentences.append(
            f"metrics.json and predictions.parquet disagree on {', '.join(metrics['disagree'])}: the files may "
            "not be of the same run. The figures here are from predictions.parquet."
        )
    if metrics["untested"]:
        named = " or ".join(f"“{isolate(name)}”" for name in metrics["untested"][:3])
        more = f" or {len(metrics['untested']) - 3:,} others" if len(metrics["untested"]) > 3 else ""
        sentences.append(
            f"No labelled test node is of class {named}{more}: how well such nodes are recognised is unknown."
        )
    if metrics["n"] < 200:
        sentences.append(
            f"Only {metrics['n']} test nodes: the intervals are wide, and small differences mean nothing."
        )
    return sentences


def percent(share: float) -> str:
    """One decimal and a space that does not break: ``84.3 %``; never 0 or 100 for what only comes near."""
    if 0 < share < 5e-4:
        return "less than 0.1\u00a0%"
    if 0.9995 <= share < 1:
        return "more than 99.9\u00a0%"
    return f"{100 * share:.1f}\u00a0%"


def isolate(text: str) -> str:
    """A name between marks that keep its writing direction to itself, cut where it is long."""
    return f"\u2068{text if len(text) <= 60 else text[:59] + '…'}\u2069"


def _accuracy(metrics: Mapping[str, Any]) -> str:
    accuracy, guess = metrics["accuracy"], metrics["guess"]
    text = (
        f"On {metrics['n']:,} test nodes the prediction is right for {percent(accuracy['value'])} "
        f"(95\u00a0% interval {percent(accuracy['low'])} to {percent(accuracy['high'])})"
    )
    verdict = (
        "the model beats it"
        if accuracy["low"] > guess["accuracy"]
        else "the model does worse"
        if accuracy["high"] < guess["accuracy"]
        else "the interval does not rule out that the model is no better"
    )
    return f"{text}; always answering “{isolate(guess['class'])}” would give {percent(guess['accuracy'])}: {verdict}."


def _calibration(metrics: Mapping[str, Any]) -> str:
    gap = metrics["gap"]
    if gap["low"] > 0 or gap["high"] < 0:
        side, away = ("over", "above") if gap["value"] > 0 else ("under", "below")
        return (
            f"It is {side}-confident: its mean confidence lies {100 * abs(gap['value']):.1f} points {away} its "
            f"accuracy."
        )
    tail = (
        "" if metrics["ece"]["value"] <= metrics["chance_ece"] else ", though some ranges are off (see below)"
    )
    return f"On average its confidence matches its accuracy, as far as {metrics['n']:,} nodes can tell{tail}."


def _coverage(risk: Mapping[str, Any]) -> list[str]:
    curve = risk["curves"][0]
    half = next((k for k, c in enumerate(curve["coverage"]) if c >= 0.5), None)
    if half is None or curve["coverage"][half] > 0.6 or risk["n"] < FEW:
        return []
    return [
        f"Answering only the {percent(curve['coverage'][half])} it is most confident of, it is right for "
        f"{percent(1 - curve['risk'][half])} of them."
    ]


def _weakest(strata: Mapping[str, Any], overall: float) -> list[str]:
    # Three standard errors, not two: the worst of some twenty groups is chosen here.
    words = {
        "class": "nodes of class “{}”",
        "degree": "nodes with {} neighbours",
        "homophily": "nodes of local homophily {} (share of neighbours with their label)",
        "distance": "nodes at distance “{}” from the training nodes",
    }
    rows = [
        (row["accuracy"], words[kind].format(isolate(row["name"])), row)
        for kind in words
        for row in strata[kind].get("rows", [])
        if row["n"] >= FEW and row["accuracy"] < overall - 3 * math.sqrt(overall * (1 - overall) / row["n"])
    ]
    if not rows:
        return []
    _, name, row = min(rows, key=lambda item: item[0])
    return [
        f"It is weakest on {name}: right for {percent(row['accuracy'])} of {row['n']:,}, at a mean confidence "
        f"of {percent(row['confidence'])}."
    ]
