"""What the catalog knows about a dataset: plain frozen records, and the published checksums."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from torch_geometric.data import Data

from dssgnn.data.catalog.download import Download
from dssgnn.data.catalog.locate import Source
from dssgnn.data.prepare import Preparation

__all__ = ["Entry", "Statistics", "Variant", "checksums"]


class Statistics(NamedTuple):
    """Published size of a graph."""

    nodes: int
    edges: int
    classes: int
    features: int


@dataclass(frozen=True)
class Variant:
    """One graph of an entry: its published size, the layouts its files come in, and its download."""

    statistics: Statistics
    sources: tuple[Source, ...] = ()
    download: Download | None = None


@dataclass(frozen=True)
class Entry:
    """A dataset: what it is, whose it is, and how the paper used it.

    ``variants`` is ``{"": variant}``, or one variant a region, the default first. ``split`` is a rule of
    `dssgnn.data.splits.SPLIT_RULES`. ``factory`` makes a synthetic graph, which has no files.
    """

    name: str
    title: str
    variants: Mapping[str, Variant]
    url: str
    licence: str
    citation: str
    preparation: Preparation
    split: str
    in_paper: bool = True
    note: str = ""
    factory: Callable[[], Data] | None = None
    aliases: Mapping[str, str] = field(default_factory=dict)


@cache
def _all_checksums() -> dict[str, list[str]]:
    text = files("dssgnn.data.catalog").joinpath("checksums.json").read_text(encoding="utf-8")
    published: dict[str, list[str]] = json.loads(text)
    return published


def checksums(path: str) -> tuple[str, ...]:
    """Return the digests published for the file at ``path`` under a data root; none for some files."""
    return tuple(_all_checksums().get(path, ()))
