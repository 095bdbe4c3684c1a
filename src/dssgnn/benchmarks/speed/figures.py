"""Figures of ``docs/speed.md``: how time and memory grow; needs matplotlib."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dssgnn.benchmarks.drawing import tidy, write_figures
from dssgnn.benchmarks.records import Record
from dssgnn.benchmarks.speed.tables import by_axis

__all__ = ["draw_growth"]

# Okabe and Ito's colours, which the colour-blind tell apart; markers for print.
_STYLES = {
    "published": {"color": "#D55E00", "marker": "s"},
    "published-csr": {"color": "#E69F00", "marker": "^"},
    "ours": {"color": "#0072B2", "marker": "o"},
    "ours-bf16": {"color": "#009E73", "marker": "D"},
}
_AXES = {"nodes": "nodes", "P": "chaos order P", "K": "filter degree K"}


def draw_growth(records: list[Record], folder: Path) -> list[Path]:
    """Draw ``speed_<axis>.svg`` for every axis that was measured; returns the files that changed.

    Where several devices were measured, the figure is of the first GPU among them.
    """
    figures: dict[Path, Callable[[], Any]] = {}
    for axis in _AXES:
        rows = by_axis(records, axis)
        if rows:
            device = min((device for device, _ in rows), key=lambda name: (name.startswith("cpu"), name))
            of_it = {value: row for (place, value), row in rows.items() if place == device}
            figures[folder / f"speed_{axis}.svg"] = partial(_figure, axis, device, of_it)
    return write_figures(figures, font_size=10)


def _figure(axis: str, device: str, rows: dict[int, dict[str, Record]]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    figure.suptitle(device, fontsize=10)
    memory, label = "peak_mib", "peak memory, MiB"
    if not any(memory in record.metrics for row in rows.values() for record in row.values()):
        memory, label = "saved_mib", "kept for the backward pass, MiB"
    panels = figure.subplots(1, 2)
    for panel, metric, title in zip(
        panels, ("step_ms", memory), ("one training step, ms", label), strict=True
    ):
        for name, style in _STYLES.items():
            points = [(v, row[name].metrics[metric]) for v, row in rows.items() if metric in _of(row, name)]
            if points:
                panel.plot(*zip(*points, strict=True), label=name, **style)
            if axis == "nodes" and name == "ours" and points:
                _linear(panel, points)
        if axis == "nodes":
            panel.set(xscale="log", yscale="log")
        else:
            panel.set_ylim(bottom=0)
            panel.set_xticks(list(rows))
        panel.set(xlabel=_AXES[axis], ylabel=title)
        tidy(panel)
    panels[0].legend(frameon=False)
    return figure


def _of(row: dict[str, Record], name: str) -> dict[str, float]:
    return row[name].metrics if name in row else {}


def _linear(panel: Any, points: list[tuple[int, float]]) -> None:
    """The line of proportional growth that ends in the last point."""
    x, y = points[-1]
    first = points[0][0]
    panel.plot([first, x], [y * first / x, y], color="#888888", linestyle="--", linewidth=1, label="linear")
