"""Figures of ``docs/calibration.md``: reliability, the curvature correction, the chaos order; needs matplotlib."""

import statistics
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from dssgnn.benchmarks.calibration.curves import BENCHMARK, variant_of
from dssgnn.benchmarks.calibration.defaults import DATASETS
from dssgnn.benchmarks.calibration.tables.orders import Sweep, measured_sweeps, printed_sweep
from dssgnn.benchmarks.drawing import tidy, write_figures
from dssgnn.benchmarks.frame import LISTS, Key, Runs, all_runs, by_row
from dssgnn.benchmarks.records import Record, read_records

__all__ = ["draw"]

# Method, variant and reading of a record, its label, and how it is drawn: Okabe and Ito's colours, markers for print.
_SYSTEMS = (
    ("dss-gnn", "best", "reliability", "DSS-GNN, best", "#0072B2", "o"),
    ("gcn", "paper", "reliability", "GCN", "#D55E00", "s"),
    ("gcn", "paper", "reliability_scaled", "GCN, temperature", "#E69F00", "^"),
    ("deep-ensemble", "paper", "reliability", "deep ensemble", "#009E73", "D"),
)
_FEWEST = 10  # nodes of a bin that is drawn
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_GREY = "#888888"


def draw(results_folder: Path, figures_folder: Path) -> list[Path]:
    """Draw every calibration figure that has records in ``results_folder``; returns the files that changed.

    ``calibration_reliability.svg`` and ``calibration_curvature_<dataset>.svg`` are from ``calibration_curves.json``,
    ``calibration_order.svg`` is from ``calibration.json``.
    """
    curves = _records(results_folder / "calibration_curves.json", BENCHMARK, _one_run)
    bins = [record for record in curves if "reliability" in record.config.get(LISTS, {})]
    sweeps = measured_sweeps(_records(results_folder / "calibration.json", "calibration-ablation"))
    figures: dict[Path, Callable[[], Any]] = {}

    def path(name: str) -> Path:
        return figures_folder / f"calibration_{name}.svg"

    if any((r.method, r.variant) == system[:2] for r in bins for system in _SYSTEMS):
        figures[path("reliability")] = partial(_reliability, bins)
    if sweeps:
        figures[path("order")] = partial(_order, sweeps)
    for name in _in_order(record.setting for record in curves if "curvature" in record.config.get(LISTS, {})):
        of_name = [r for r in curves if "curvature" in r.config.get(LISTS, {}) and r.setting == name]
        figures[path(f"curvature_{name}")] = partial(_curvature, of_name)
    return write_figures(figures)


def _records(
    file: Path, benchmark: str, counted: Callable[[Key, Runs], list[dict[int, Record]]] = all_runs
) -> list[Record]:
    """Those of a benchmark, of one configuration a row: means over the runs that count."""
    found = by_row(read_records(file) if file.exists() else [], benchmark, counted)
    return [record for splits in found.values() for record in splits.values()]


def _one_run(key: Key, runs: Runs) -> list[dict[int, Record]]:
    """Lists have no mean, so that metrics beside them must not be means either."""
    return list(runs.values())[:1]


def _in_order(datasets: Iterable[str]) -> list[str]:
    """Each once, as the paper lists them."""
    rank = {name: i for i, name in enumerate(DATASETS)}
    return sorted(set(datasets), key=lambda name: (rank.get(name, len(rank)), name))


def _shared(records: list[Record]) -> list[Record]:
    """Those of the splits that every row has."""
    of_row: dict[tuple[str, str], set[int | None]] = {}
    for record in records:
        of_row.setdefault((record.method, record.variant), set()).add(record.split)
    common = set.intersection(*of_row.values())
    return [record for record in records if record.split in common]


def _reliability(records: list[Record]) -> Any:
    """Accuracy against confidence of the test nodes of all splits together, a panel a dataset."""
    from matplotlib.figure import Figure

    shown = {system[:2] for system in _SYSTEMS}
    datasets = _in_order(r.setting for r in records if (r.method, r.variant) in shown)
    columns = min(len(datasets), 4)
    rows = -(-len(datasets) // columns)
    figure = Figure(figsize=(max(2.4 * columns, 3.3) + 0.3, 2.4 * rows + 0.6), layout="constrained")
    panels = list(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat)
    for panel in panels[len(datasets) :]:
        panel.remove()
    for panel in panels[len(datasets) - columns : len(datasets)]:
        panel.tick_params(labelbottom=True)  # also where nothing is below
    handles: dict[str, Any] = {}
    for panel, dataset in zip(panels, datasets, strict=False):
        panel.plot([0, 1], [0, 1], color=_GREY, linestyle="--", linewidth=1)
        shared = _shared([r for r in records if r.setting == dataset and (r.method, r.variant) in shown])
        notes = 0
        for method, variant, reading, label, color, marker in _SYSTEMS:
            of_row = [r for r in shared if (r.method, r.variant) == (method, variant)]
            if not of_row:
                continue
            x, y = _pooled([r.config[LISTS][reading] for r in of_row])
            (handles[label],) = panel.plot(x, y, color=color, marker=marker, markersize=3, linewidth=1)
            ece = statistics.fmean(r.metrics[reading.replace("reliability", "ece15")] for r in of_row)
            panel.text(0.97, 0.04 + 0.085 * notes, f"{ece:.3f}", color=color, ha="right", fontsize=7.5)
            notes += 1
        panel.text(0.97, 0.04 + 0.085 * notes, "ECE", ha="right", fontsize=7.5)
        panel.set_title(dataset, fontsize=9)
        tidy(panel)
    figure.supxlabel("confidence", fontsize=9)
    figure.supylabel("accuracy", fontsize=9)
    figure.legend(
        handles.values(), handles, loc="outside upper center", ncols=4 if columns > 2 else 2, frameon=False
    )
    return figure


def _pooled(bins: list[dict[str, list[float]]]) -> tuple[list[float], list[float]]:
    """Mean confidence and accuracy of the bins of several splits, without those that have hardly a node."""
    count, confidence, correct = (
        [sum(values) for values in zip(*(part[key] for part in bins), strict=True)]
        for key in ("count", "confidence", "correct")
    )
    kept = [i for i, nodes in enumerate(count) if nodes >= _FEWEST]
    return [confidence[i] / count[i] for i in kept], [correct[i] / count[i] for i in kept]


def _curvature(records: list[Record]) -> Any:
    """The paper's figure of Proposition curvature, two panels a row: where the correction is, and whom it meets."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 2.9 * len(records)), layout="constrained")
    for part, record in zip(figure.subfigures(len(records), 1, squeeze=False).flat, records, strict=True):
        data, metrics = record.config[LISTS]["curvature"], record.metrics
        part.suptitle(
            f"{record.setting}, {record.method} {variant_of(record)}, P = {data['chaos_order']}, split {record.split}; "
            f"means: chaos energy {metrics['mean_energy']:.2g}, correction {metrics['mean_correction']:.2g}, "
            f"loss gap {metrics['mean_gap']:.2g}",
            fontsize=9,
        )
        nodes, quartiles = part.subplots(1, 2, width_ratios=(1.25, 1))
        _scatter(part, nodes, data)
        _quartiles(quartiles, metrics)
    return figure


def _scatter(figure: Any, panel: Any, data: dict[str, list[float]]) -> None:
    from matplotlib.colors import LogNorm

    points = zip(data["curvature"], data["energy"], data["correction"], strict=True)
    # Smallest first, so that the largest are seen; no logarithm of nothing.
    alive = sorted((point for point in points if point[1] > 0 and point[2] > 0), key=lambda point: point[2])
    panel.set(xlabel="loss curvature, tr H", ylabel="chaos energy")
    tidy(panel)
    if not alive:
        panel.text(0.5, 0.5, "no chaos energy", ha="center", transform=panel.transAxes)
        return
    x, y, c = zip(*alive, strict=True)
    # Not more than four decades of colour: what is below them is as good as nothing.
    norm = LogNorm(max(c[0], c[-1] / 1e4), c[-1] if c[-1] > c[0] else c[-1] * 1.01)
    drawn = panel.scatter(x, y, c=c, s=7, norm=norm, cmap="viridis", linewidths=0, rasterized=True)
    panel.set_yscale("log")
    figure.colorbar(drawn, ax=panel, label="correction", extend="min" if c[0] < norm.vmin else "neither")


def _quartiles(panel: Any, metrics: dict[str, float]) -> None:
    places = [1, 2, 3, 4]
    for key, shift, color in (("accuracy", -0.2, "#0072B2"), ("brier", 0.2, "#D55E00")):
        at = [place + shift for place in places]
        panel.bar(at, [metrics[f"{key}_q{q}"] for q in places], width=0.38, color=color, label=key.title())
        panel.plot(
            at, [metrics[f"{key}_curvature_q{q}"] for q in places], color="black", marker="_", markersize=9,
            linestyle="none", label="by curvature alone" if key == "brier" else None,
        )  # fmt: skip
    panel.set_xticks(places, ["lowest", "second", "third", "highest"])
    panel.set_xlabel("nodes by quartile of the correction")
    panel.set_ylim(top=max(1.0, *(metrics[f"brier_q{q}"] for q in places)) * 1.25)
    tidy(panel)
    panel.legend(frameon=False, ncols=3, fontsize=7, loc="upper center", columnspacing=0.8, handlelength=1.2)


def _order(sweeps: dict[str, Sweep]) -> Any:
    """The paper's figure of the chaos order, two panels a row: the best order's gain, and every order's Brier score."""
    from matplotlib.figure import Figure

    datasets = _in_order(name for sweep in sweeps.values() for name in sweep)
    printed = {name: orders for name, orders in printed_sweep().items() if name in datasets}
    rows = ({"as printed": printed} if printed else {}) | {f"ours: {k}": sweep for k, sweep in sweeps.items()}
    figure = Figure(figsize=(9.5, 2.2 * len(rows) + 0.6), layout="constrained")
    panels = figure.subplots(len(rows), 2, squeeze=False, sharex="col", sharey="col")
    marks: dict[str, Any] = {}
    colours: dict[str, Any] = {}
    for (gains, lines), (title, sweep) in zip(panels, rows.items(), strict=True):
        gains.set_title(title, fontsize=9, loc="left")
        marks |= _gains(gains, datasets, sweep, {} if sweep is printed else printed)
        for i, name in enumerate(datasets):
            if name in sweep:
                y = [order.test for order in sweep[name].values()]
                look = {"color": _COLOURS[i % 7], "linestyle": "-" if i < 7 else "--", "linewidth": 1}
                (colours[name],) = lines.plot(list(sweep[name]), y, marker="o", markersize=3, **look)
        lines.axhline(1, color=_GREY, linewidth=0.8)
        lines.set_ylabel("Brier over that at P = 0")
        tidy(gains)
        tidy(lines)
    panels[-1][0].set_xticks(range(len(datasets)), datasets, rotation=45, ha="right")
    panels[-1][1].set_xlabel("chaos order P")
    handles = marks | {name: colours[name] for name in datasets}
    figure.legend(handles.values(), handles, loc="outside right upper", frameon=False, fontsize=8)
    return figure


def _gains(panel: Any, datasets: list[str], sweep: Sweep, printed: Sweep) -> dict[str, Any]:
    """The best order above 0, chosen on the test part as in the paper, and the one that validation nodes choose."""
    best, chosen, paper = {}, {}, {}
    for i, name in enumerate(datasets):
        above = [order for p, order in sweep.get(name, {}).items() if p > 0]
        if above:
            best[i] = min(order.test for order in above)
            if above[0].validation is not None:
                chosen[i] = min(above, key=lambda order: order.validation or 0).test
        if name in printed:
            paper[i] = min(order.test for p, order in printed[name].items() if p > 0)
    handles = {"best order on test": panel.bar(*_percent(best), color="#56B4E9")}
    for label, values, marker in (("chosen on validation", chosen, "_"), ("printed", paper, "D")):
        if values:
            size = 9 if marker == "_" else 4
            look = {"color": "black", "marker": marker, "markersize": size, "markerfacecolor": "none"}
            (handles[label],) = panel.plot(*_percent(values), linestyle="none", **look)
    panel.axhline(0, color=_GREY, linewidth=0.8)
    panel.set_ylabel("Brier reduction, %")
    return handles


def _percent(relative: dict[int, float]) -> tuple[list[int], list[float]]:
    """Places, and how far below 1 the values are there."""
    return list(relative), [100 - 100 * value for value in relative.values()]
