"""What `dssgnn bench calibration` was asked for, as rows that can be run."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import torch

from dssgnn.benchmarks.calibration.ablations import ABLATIONS, ablation, datasets_of
from dssgnn.benchmarks.calibration.defaults import DATASETS
from dssgnn.benchmarks.calibration.norms import JOINT, norm_rows, size_rows
from dssgnn.benchmarks.calibration.presets import Variant
from dssgnn.benchmarks.calibration.search import ARMS, TWINS, check_alone, chosen, chosen_alone, searched_row
from dssgnn.benchmarks.calibration.systems import SYSTEMS, has_row, setup_of
from dssgnn.benchmarks.frame import Setup, SweepRow
from dssgnn.data import names, status_rows
from dssgnn.errors import InputError
from dssgnn.systems import METHODS

__all__ = [
    "ALONE_WORDS",
    "OUR_ABLATIONS",
    "ablation_rows",
    "alone_rows",
    "asked_graphs",
    "asked_splits",
    "asked_systems",
    "is_searched",
    "known_systems",
    "rows_of",
]

System = tuple[str, str]  # method and variant

ALONE_WORDS = ", chosen on split "  # between a variant and the split that chose its configuration

# Of the search's start, whatever the base.
OUR_ABLATIONS = {
    "start-norms": norm_rows(),
    "start-joint": norm_rows(JOINT),
    "start-size": size_rows(),
}


def known_systems() -> list[System]:
    """Every method and variant."""
    return sorted({*((method, "default") for method in METHODS), *SYSTEMS, *ARMS, *TWINS})


def is_searched(system: System) -> bool:
    """Whether a search chooses a system's configuration."""
    return system in ARMS or system in TWINS


def asked_systems(methods: str, variants: str) -> list[System]:
    """Those of ``known_systems`` that two options name; ``all`` variants are all but the defaults."""
    known = known_systems()
    every = list(dict.fromkeys(method for method, _ in known))
    wanted = every if methods == "all" else _names(methods)
    for method in wanted:
        if method not in every:
            raise InputError(f"--methods knows {', '.join(every)}, got {method!r}")
    of_these = sorted({v for m, v in known if m in wanted})
    kinds = [v for v in of_these if v != "default"] if variants == "all" else _names(variants)
    for variant in kinds:
        if variant not in of_these:
            raise InputError(f"--variants knows {', '.join(of_these)} of these methods, got {variant!r}")
    return [(method, variant) for method in wanted for variant in kinds if (method, variant) in known]


def asked_graphs(datasets: str) -> list[str]:
    """Catalog names; the paper's that are present where none is given."""
    if not datasets:
        present = {row["name"] for row in status_rows(verify=False) if row["present"]}
        if graphs := [name for name in DATASETS if name in present]:
            return graphs
        raise InputError("none of the paper's graphs is here; `dssgnn datasets` says where each is expected")
    for name in _names(datasets):
        if name not in names():
            raise InputError(f"--datasets knows {', '.join(names())}, got {name!r}")
    return _names(datasets)


def _names(text: str) -> list[str]:
    """What commas separate, each once."""
    return list(dict.fromkeys(text.split(",")))


def asked_splits(splits: str) -> list[int]:
    """``10`` for the first ten, ``5-9`` for those, ``0`` for none: then a search chooses and no more."""
    first, dash, last = splits.partition("-")
    if first.isdecimal() and (last.isdecimal() or not dash):
        numbers = list(range(int(first), int(last) + 1) if dash else range(int(first)))
        if numbers or not dash:
            return numbers
    raise InputError(f"--splits takes a number (10) or a range (5-9), got {splits!r}")


def rows_of(
    graphs: Sequence[str],
    systems: Sequence[System],
    search: Path,
    device: torch.device,
    say: Callable[[str], None],
) -> list[SweepRow]:
    """Systems on graphs; those that are searched for read ``search``, and run what it does not hold."""

    def setup(graph: str, system: System) -> Callable[[], Setup]:
        if is_searched(system):
            return partial(chosen, graph, system, search, device, say=say)
        return partial(setup_of, *system, graph)

    def group(graph: str, system: System) -> Hashable:
        return (graph, searched_row(system)) if is_searched(system) else None

    return [
        SweepRow(graph, *system, setup(graph, system), group(graph, system))
        for graph in graphs
        for system in systems
        if system[1] != "default" and has_row(*system, graph)
    ]


def alone_rows(
    graphs: Sequence[str],
    systems: Sequence[System],
    splits: Sequence[int],
    search: Path,
    device: torch.device,
    say: Callable[[str], None],
) -> list[SweepRow]:
    """Searched systems whose configuration every split chooses alone: a row a split.

    Raises:
        InputError: before anything is run, where a system or a split cannot choose alone.
    """
    for graph in graphs:
        for system in systems:
            check_alone(graph, system, splits)
    return [
        SweepRow(
            graph,
            method,
            f"{variant}{ALONE_WORDS}{split}",
            partial(chosen_alone, graph, (method, variant), split, search, device, say=say),
            group=(graph, method, variant),
            splits=(split,),
        )
        for graph in graphs
        for method, variant in systems
        for split in splits
    ]


def ablation_rows(asked: str, base: str, graphs: Sequence[str]) -> list[SweepRow]:
    """Ablations of the presets ``base``, each on the graphs that the paper has it for, and of norms on all."""
    if base not in ("published", "paper"):
        raise InputError(f"--base must be published or paper, got {base!r}")
    known = [*ABLATIONS, *OUR_ABLATIONS]
    given = known if asked == "all" else _names(asked)
    for name in given:
        if name not in known:
            raise InputError(f"--ablations knows {', '.join(known)}, got {name!r}")
    variant = cast(Variant, base)
    rows = [
        SweepRow(graph, "dss-gnn", label, partial(make, graph))
        for name in given
        if name not in OUR_ABLATIONS
        for graph in graphs
        if graph in datasets_of(name, variant)
        for label, make in ablation(name, variant).items()
    ]
    rows += [
        SweepRow(graph, "dss-gnn", label, partial(make, graph))
        for name in given
        if name in OUR_ABLATIONS
        for graph in graphs
        for label, make in OUR_ABLATIONS[name].items()
    ]
    if not rows:
        raise InputError(f"the paper has no such ablation of {', '.join(graphs)}")
    return rows
