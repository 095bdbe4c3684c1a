"""One file a raw format: bytes as published become a `RawGraph`, nothing is normalised or symmetrised."""

from collections.abc import Callable, Mapping

from dssgnn.data.catalog.readers.base import RawFile, RawGraph
from dssgnn.data.catalog.readers.geom_gcn import read_geom_gcn
from dssgnn.data.catalog.readers.gnn_benchmark import read_gnn_benchmark
from dssgnn.data.catalog.readers.heterophilous import read_heterophilous
from dssgnn.data.catalog.readers.ogb import read_ogb_arxiv
from dssgnn.data.catalog.readers.planetoid import read_planetoid
from dssgnn.data.catalog.readers.twitch import read_musae, read_pyg_twitch

__all__ = ["READERS", "READER_VERSION", "RawFile", "RawGraph"]

# Part of every cache key: raise it when a reader's result changes.
READER_VERSION = 1

READERS: dict[str, Callable[[Mapping[str, RawFile]], RawGraph]] = {
    "planetoid": read_planetoid,
    "geom-gcn": read_geom_gcn,
    "gnn-benchmark": read_gnn_benchmark,
    "heterophilous": read_heterophilous,
    "musae": read_musae,
    "pyg-twitch": read_pyg_twitch,
    "ogb-arxiv": read_ogb_arxiv,
}
