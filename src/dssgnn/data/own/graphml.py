"""GraphML files, read by NetworkX after a look of our own for what NetworkX would let pass."""

import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from xml.etree.ElementTree import ParseError
from xml.parsers import expat

from dssgnn.data.own.columns import Missing
from dssgnn.data.own.encoding import FeatureEncoding
from dssgnn.data.own.loaded import LoadedGraph
from dssgnn.data.own.netx import from_networkx
from dssgnn.data.own.sheets import one_line, shown
from dssgnn.errors import InputError

__all__ = ["read_graphml"]

_DEPTH_LIMIT = 100
_CHUNK = 1 << 20


def read_graphml(
    path: str | Path,
    *,
    encoding: FeatureEncoding | None = None,
    missing: Missing = "error",
    categorical: Iterable[str] = (),
) -> LoadedGraph:
    """Read a ``.graphml`` file; attributes mean what they mean in `from_networkx`. Needs networkx.

    A document type declaration is refused: it has no place in GraphML and can expand without bound.
    """
    try:
        import networkx
    except ImportError:
        raise InputError(
            f"{shown(path)} needs networkx to be read, which is not installed (pip install networkx)"
        ) from None
    path = Path(path)
    name = shown(path)
    if not os.path.isfile(path):
        raise InputError(f"{name} is not a file, expected GraphML")
    try:
        _Scan(name).run(path)
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its remarks on keys without a type, which it reads as text
            graph = networkx.read_graphml(file)
    except InputError:
        raise
    except (
        expat.ExpatError,
        ParseError,
        networkx.NetworkXException,
        OSError,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        RecursionError,
        OverflowError,
    ) as error:
        reason = one_line(error) or type(error).__name__
        raise InputError(f"{name} cannot be read as GraphML: {reason}") from error
    return from_networkx(graph, encoding=encoding, missing=missing, categorical=categorical, source=name)


class _Scan:
    """One pass over the XML that refuses declarations, deep nesting, repeated ids and edges into nowhere."""

    def __init__(self, name: str) -> None:
        self.name, self.depth = name, 0
        self.nodes: set[str] = set()
        self.ends: dict[str, int] = {}  # id -> the line of the first edge that names it
        self.parser = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def run(self, path: Path) -> None:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                self.parser.Parse(chunk, False)
            self.parser.Parse(b"", True)
        for node, line in self.ends.items():
            if node not in self.nodes:
                raise InputError(
                    f"{self.name}, line {line}: edge to {one_line(node)!r}, which is not a node of the file"
                )

    def _doctype(self, *_: object) -> None:
        raise InputError(f"{self.name}: has a DOCTYPE, expected plain GraphML without one")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        line = self.parser.CurrentLineNumber
        if self.depth > _DEPTH_LIMIT:
            raise InputError(f"{self.name}, line {line}: is nested deeper than {_DEPTH_LIMIT} elements")
        kind = tag.rpartition(":")[2]
        if kind == "node":
            node = attributes.get("id", "")
            if not node:
                raise InputError(f"{self.name}, line {line}: node has no id, expected one")
            if node in self.nodes:
                raise InputError(f"{self.name}, line {line}: node id {one_line(node)!r} occurs a second time")
            self.nodes.add(node)
        elif kind == "edge":
            for end in ("source", "target"):
                if end not in attributes:
                    raise InputError(f"{self.name}, line {line}: edge has no {end}, expected a node's id")
                self.ends.setdefault(attributes[end], line)

    def _end(self, _: str) -> None:
        self.depth -= 1
