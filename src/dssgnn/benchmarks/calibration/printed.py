"""What the paper printed, beside which our records are put."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["printed_text", "published", "published_ablations"]


@cache
def _content() -> dict[str, Any]:
    text = files("dssgnn.benchmarks.calibration").joinpath("published.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def published() -> dict[str, dict[str, dict[str, Any]]]:
    """What the paper printed: dataset, then method (the labels of its tables are in the file)."""
    datasets: dict[str, dict[str, dict[str, Any]]] = _content()["datasets"]
    return datasets


def published_ablations() -> dict[str, dict[str, dict[str, Any]]]:
    """What the paper printed of ablations: table, then dataset, then the setting's label (or the figure's name)."""
    tables: dict[str, dict[str, dict[str, Any]]] = _content()["ablations"]
    return tables


def printed_text(row: dict[str, Any], key: str, scale: float = 1, digits: int = 3) -> str:
    """What the paper printed, or a dash."""
    if row.get(key) is None:
        return "–"
    sd = row.get(f"{key}_sd")
    return f"{scale * row[key]:.{digits}f}" + ("" if sd is None else f" ± {scale * sd:.{digits}f}")
