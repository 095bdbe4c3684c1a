"""Every detection and shift setting by name, on graphs of the catalog.

>>> sorted(OOD_SETTINGS)[:3]
['amazon-photo-feature', 'amazon-photo-label', 'amazon-photo-structure']
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from torch_geometric.data import Data

from dssgnn.data.catalog import load, status
from dssgnn.data.settings import good
from dssgnn.data.settings.good import Shift, ShiftSetting
from dssgnn.data.settings.ood import (
    OODSetting,
    arxiv_years,
    feature_shift,
    label_leave_out,
    structure_shift,
    twitch_regions,
)
from dssgnn.data.splits import public_split, random_split
from dssgnn.errors import InputError
from dssgnn.validation import check_count

__all__ = ["OOD_SETTINGS", "SHIFT_SETTINGS", "Recipe", "ood_setting", "setting_rows", "shift_setting"]

Load = Callable[..., Data]
MakeOOD = Callable[[Load, int], OODSetting]
MakeShift = Callable[[Load, Shift, int], ShiftSetting]
Make = TypeVar("Make", MakeOOD, MakeShift)


@dataclass(frozen=True)
class Recipe(Generic[Make]):
    """How a setting is made, and the graphs of the catalog it is made from."""

    graphs: tuple[str, ...]
    make: Make


def ood_setting(name: str, seed: int, **options: Any) -> OODSetting:
    """Make a detection setting of `OOD_SETTINGS`; its graph in distribution has train, val and test masks.

    Features are normalised by rows, but for Arxiv. Cora has its public split, within the nodes in
    distribution; the others 10/10/80 of them at random. The seed draws both this split and the outliers.

    Args:
        name: a key of `OOD_SETTINGS`.
        seed: of all draws.
        **options: for `dssgnn.data.catalog.load`: ``root``, ``download``, ``edges`` ...

    Raises:
        InputError: for an unknown name, or if a graph is not here.
    """
    recipe = _chosen(OOD_SETTINGS, name, "OOD")
    check_count(seed, "seed")
    setting = recipe.make(_loader(options), seed)
    graph = setting.in_distribution
    if "train_mask" not in graph:
        graph = random_split(int(graph.num_nodes), seed, nodes=graph.node_mask).apply(graph)
    return replace(setting, name=name, in_distribution=graph)


def shift_setting(name: str, shift: Shift, seed: int, **options: Any) -> ShiftSetting:
    """Make a shift setting of `SHIFT_SETTINGS`, ``"covariate"`` or ``"concept"``, with raw features.

    Args:
        name: a key of `SHIFT_SETTINGS`.
        shift: which of the two.
        seed: of all draws.
        **options: for `dssgnn.data.catalog.load`.

    Raises:
        InputError: for an unknown name, or if a graph is not here.

    >>> shift_setting("cbas-color", "covariate", seed=0).split.sizes()
    (420, 70, 70, 70, 70)
    """
    setting = _chosen(SHIFT_SETTINGS, name, "shift").make(_loader(options), shift, seed)
    return replace(setting, name=name)


def setting_rows(root: str | None = None) -> list[dict[str, Any]]:
    """List every setting: ``benchmark``, ``name``, ``graphs``, whether they are ``present``, and why not."""
    recipes = [("ood", name, recipe.graphs) for name, recipe in OOD_SETTINGS.items()]
    recipes += [("shift", name, recipe.graphs) for name, recipe in SHIFT_SETTINGS.items()]
    states = {graph: _absence(graph, root) for _, _, graphs in recipes for graph in graphs}
    rows = []
    for benchmark, name, graphs in recipes:
        reasons = [states[graph] for graph in graphs if states[graph]]
        rows.append(
            {
                "benchmark": benchmark,
                "name": name,
                "graphs": list(graphs),
                "present": not reasons,
                "reason": "; ".join(reasons),
            }
        )
    return rows


def _absence(graph: str, root: str | None) -> str:
    row = status(graph, root, verify=False)
    regions = row.get("regions", {graph: row})
    return next((str(state["reason"]) for state in regions.values() if not state["present"]), "")


def _loader(options: Mapping[str, Any]) -> Load:
    def read(name: str, **defaults: Any) -> Data:
        return load(name, **(defaults | dict(options)))

    return read


def _chosen(recipes: Mapping[str, Recipe[Make]], name: str, kind: str) -> Recipe[Make]:
    if name not in recipes:
        raise InputError(f"no {kind} setting {name!r}, expected one of {', '.join(recipes)}")
    return recipes[name]


# The class that is left out for training outliers (GNNSafe); lower ones are left out for test.
LEAVE_OUT = {"cora": 3, "amazon-photo": 4, "coauthor-cs": 4}


def _perturbed(graph: str, kind: str) -> Recipe[MakeOOD]:
    def make(read: Load, seed: int) -> OODSetting:
        data = read(graph, features="row")
        if graph == "cora":
            data = public_split(data).apply(data)
        if kind == "label":
            return label_leave_out(data, LEAVE_OUT[graph])
        return structure_shift(data, seed) if kind == "structure" else feature_shift(data, seed)

    return Recipe((graph,), make)


def _twitch(graph: str) -> Recipe[MakeOOD]:
    def make(read: Load, seed: int) -> OODSetting:
        regions = ("DE", "EN", "ES", "FR", "RU")
        return twitch_regions({region: read(graph, region=region, features="row") for region in regions})

    return Recipe((graph,), make)


def _arxiv(read: Load, seed: int) -> OODSetting:
    data = read("ogbn-arxiv", features="raw", edges="directed")
    return arxiv_years(data, data.year)


OOD_SETTINGS: dict[str, Recipe[MakeOOD]] = {
    f"{graph}-{kind}": _perturbed(graph, kind)
    for graph in LEAVE_OUT
    for kind in ("structure", "feature", "label")
}
OOD_SETTINGS |= {
    "twitch": _twitch("twitch"),
    "twitch-pyg": _twitch("twitch-pyg"),
    "arxiv": Recipe(("ogbn-arxiv",), _arxiv),
}


def _by_degree(graph: str) -> Recipe[MakeShift]:
    return Recipe(
        (graph,), lambda read, shift, seed: good.by_degree(graph, read(graph, features="raw"), shift, seed)
    )


def _by_word(graph: str) -> Recipe[MakeShift]:
    def make(read: Load, shift: Shift, seed: int) -> ShiftSetting:
        return good.by_feature_mass(graph, read(graph, features="raw"), shift, seed)

    return Recipe((graph,), make)


def _webkb(read: Load, shift: Shift, seed: int) -> ShiftSetting:
    graphs = {name: read(name, features="raw", edges="directed") for name in good.UNIVERSITIES}
    return good.webkb(graphs, shift, seed)


def _languages(graph: str) -> Recipe[MakeShift]:
    def make(read: Load, shift: Shift, seed: int) -> ShiftSetting:
        regions = {region: read(graph, region=region, features="raw") for region in good.LANGUAGES}
        return good.twitch(regions, shift, seed)

    return Recipe((graph,), make)


def _arxiv_time(read: Load, shift: Shift, seed: int) -> ShiftSetting:
    data = read("ogbn-arxiv", features="raw")
    return good.arxiv(data, data.year, shift, seed)


# GOOD's "Cora" is CoraFull; the settings called cora here are of the small Cora, and are ours.
SHIFT_SETTINGS: dict[str, Recipe[MakeShift]] = {
    "cbas-color": Recipe((), lambda read, shift, seed: good.cbas(shift, seed)),
    "webkb-university": Recipe(good.UNIVERSITIES, _webkb),
    "twitch-language": _languages("twitch"),
    "twitch-pyg-language": _languages("twitch-pyg"),
    "corafull-word": _by_word("corafull"),
    "corafull-degree": _by_degree("corafull"),
    "arxiv-time": Recipe(("ogbn-arxiv",), _arxiv_time),
    "arxiv-degree": _by_degree("ogbn-arxiv"),
}
SHIFT_SETTINGS |= {
    f"{graph}-{domain}": recipe(graph)
    for graph in ("cora", "coauthor-cs", "amazon-photo")
    for domain, recipe in (("degree", _by_degree), ("word", _by_word))
}
