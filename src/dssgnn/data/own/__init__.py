"""People's own graphs: tables, arrays, GraphML, NetworkX and PyG objects, with the encoding of their features."""

from dssgnn.data.own.encoding import FeatureEncoding
from dssgnn.data.own.exchange import read_graph
from dssgnn.data.own.loaded import LoadedGraph

__all__ = ["FeatureEncoding", "LoadedGraph", "read_graph"]
