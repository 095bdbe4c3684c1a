"""The catalog of known graphs: `load` one by name, or list all with `status_rows`."""

import difflib
import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from dssgnn.data.catalog.cache import cache_key, cached
from dssgnn.data.catalog.download import download as download_files
from dssgnn.data.catalog.entries import ENTRIES
from dssgnn.data.catalog.entry import Entry, Statistics, Variant, checksums
from dssgnn.data.catalog.locate import (
    Found,
    cache_folder,
    check_content,
    file_sha256,
    locate,
    missing_reason,
    read_file,
    search_roots,
)
from dssgnn.data.catalog.readers import READER_VERSION, READERS, RawGraph
from dssgnn.data.prepare import Preparation, prepare
from dssgnn.data.splits import make_split
from dssgnn.errors import InputError

__all__ = ["get_entry", "load", "names", "status", "status_rows"]

_Root = str | os.PathLike[str] | None


def names() -> list[str]:
    """Return the catalog's names, the paper's 18 first.

    >>> names()[:3]
    ['cora', 'citeseer', 'pubmed']
    """
    return list(ENTRIES)


def get_entry(name: str) -> Entry:
    """Return the entry of ``name``.

    Raises:
        InputError: if there is none; the message offers the nearest names.
    """
    entry = ENTRIES.get(name)
    if entry is None:
        near = difflib.get_close_matches(name.lower(), ENTRIES, n=3) or list(ENTRIES)
        raise InputError(f"no dataset {name!r} in the catalog; did you mean {', '.join(near)}?")
    return entry


def load(
    name: str,
    root: _Root = None,
    *,
    region: str | None = None,
    split: int | None = None,
    download: bool = True,
    cache: bool = True,
    verify: bool = True,
    **preparation: str,
) -> Data:
    """Return a graph of the catalog, prepared as the paper's runs had it.

    Args:
        name: a name of `names`.
        root: the folder of raw files; by default ``$DSSGNN_DATA``. The user's cache is looked in after it.
        region: for Twitch, ``DE`` (default), ``ENGB``, ``ES``, ``FR``, ``PTBR`` or ``RU``.
        split: put ``train_mask``, ``val_mask``, ``test_mask`` of this split on it (`make_split` by name).
        download: fetch absent files, if there is a network, into the user's cache.
        cache: keep the read graph in the user's cache, or take it from there.
        verify: refuse files that are not the published ones (by checksum; by size where none is published).
        **preparation: ``features``, ``edges``, ``self_loops`` (`Preparation`) other than the entry's.

    Returns:
        ``x [N, F]`` float32, ``edge_index [2, E]``, ``y [N]``; where S splits are published,
        ``train_masks``, ``val_masks``, ``test_masks`` bool ``[N, S]``; for ogbn-arxiv ``year [N]``.

    Raises:
        InputError: for an unknown name or option, and for absent, damaged or other files.
    """
    entry = get_entry(name)
    options = _preparation(entry, preparation)
    if entry.factory is not None:
        if region is not None:
            raise InputError(f"{name} has no regions, got region={region!r}")
        graph = entry.factory()
    else:
        variant = _variant(entry, region)
        found = _find(entry, variant, root, download)
        graph = _read(entry, variant, found, cache=cache, verify=verify).to_data()
    data = prepare(graph, options)
    return data if split is None else make_split(name, data, split).apply(data)


def status(name: str, root: _Root = None, *, verify: bool = True) -> dict[str, Any]:
    """Return one row of `status_rows`."""
    entry = get_entry(name)
    roots = search_roots(root)
    regions = {region: _state(variant, roots, verify) for region, variant in entry.variants.items()}
    present, reason = next(iter(regions.values()))
    first = _variant(entry, None)
    wanted = [path for source in first.sources[:1] for path in source.files.values()]
    row: dict[str, Any] = {
        "name": name,
        "title": entry.title,
        "in_paper": entry.in_paper,
        "present": present,
        "reason": reason,
        "looked_in": [str(folder) for folder in roots if wanted],
        **first.statistics._asdict(),
        "source": entry.url,
        "licence": entry.licence,
        "citation": entry.citation,
        "note": entry.note,
        "split": entry.split,
        "preparation": {f.name: getattr(entry.preparation, f.name) for f in fields(Preparation)},
        "files": [{"path": path, "checksums": list(checksums(path))} for path in wanted],
    }
    if len(regions) > 1:
        row["regions"] = {region: {"present": here, "reason": why} for region, (here, why) in regions.items()}
    return row


def status_rows(root: _Root = None, *, verify: bool = True) -> list[dict[str, Any]]:
    """Return what ``dssgnn datasets`` lists: one JSON-able row a dataset, present or absent and why.

    ``present`` and ``reason`` are those of the default region where there are several. With ``verify`` a file
    that is not the published one counts as absent.
    """
    return [status(name, root, verify=verify) for name in ENTRIES]


def _preparation(entry: Entry, changes: Mapping[str, str]) -> Preparation:
    known = [f.name for f in fields(Preparation)]
    for option in changes:
        if option not in known:
            raise InputError(f"unknown option {option!r} for {entry.name}, expected {', '.join(known)}")
    return replace(entry.preparation, **changes)


def _variant(entry: Entry, region: str | None) -> Variant:
    if region is None:
        return next(iter(entry.variants.values()))
    wanted = region.upper()
    chosen = entry.variants.get(entry.aliases.get(wanted, wanted)) if wanted else None
    if chosen is None:
        offered = ", ".join(filter(None, entry.variants)) or "none"
        raise InputError(f"{entry.name} has the regions: {offered}; got region={region!r}")
    return chosen


def _find(entry: Entry, variant: Variant, root: _Root, download: bool) -> Found:
    roots = search_roots(root)
    if found := locate(variant.sources, roots):
        return found
    problem = "downloading was not asked for"
    if download and variant.download is not None:
        try:
            place = download_files(variant.download, variant.sources[0], checksums)
            if found := locate(variant.sources, [place]):
                return found
        except InputError as error:
            problem = str(error)
    hint = "" if root is not None or os.environ.get("DSSGNN_DATA") else "; DSSGNN_DATA is not set"
    raise InputError(f"{entry.name} is not here: {missing_reason(variant.sources, roots)}{hint}; {problem}")


def _read(entry: Entry, variant: Variant, found: Found, *, cache: bool, verify: bool) -> RawGraph:
    def build() -> RawGraph:
        raw = {role: read_file(path) for role, path in found.paths.items()}
        published = {role: checksums(found.source.files[role]) if verify else () for role in raw}
        for role, file in raw.items():
            check_content(file, published[role])
        graph = READERS[found.source.reader](raw)
        # Where a file has no published checksum, the published size is all there is to compare.
        if verify and not all(published.values()):
            _check_size(entry, variant.statistics, graph, found)
        return graph

    if not cache:
        return build()
    digests = {role: file_sha256(path) for role, path in found.paths.items()}
    key = cache_key(reader=found.source.reader, version=READER_VERSION, verified=verify, files=digests)
    return cached(cache_folder() / "processed" / f"{entry.name}-{key[:16]}.safetensors", key, build)


def _check_size(entry: Entry, published: Statistics, graph: RawGraph, found: Found) -> None:
    loops = entry.preparation.self_loops
    data = prepare(graph.to_data(), Preparation(edges="undirected", self_loops=loops))
    size = Statistics(data.num_nodes, data.num_edges, int(data.y.max()) + 1, data.num_features)
    if size != published:
        folder = next(iter(found.paths.values())).parent
        raise InputError(f"{folder}: {entry.name} has {size}, expected the published {published}")


def _state(variant: Variant, roots: tuple[Path, ...], verify: bool) -> tuple[bool, str]:
    if not variant.sources:
        return True, "made on the fly"
    found = locate(variant.sources, roots)
    if found is None:
        return False, missing_reason(variant.sources, roots)
    unchecked = 0
    for role, path in found.paths.items():
        published = checksums(found.source.files[role])
        unchecked += not published
        if verify:
            try:
                check_content(read_file(path), published)
            except (InputError, OSError) as error:
                return False, str(error)
    state = f"in {found.root}"
    return True, state if not unchecked else f"{state}; no checksum is published for {unchecked} of its files"
