"""A graph that came in, with everything needed to speak of it in its owner's words."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from dssgnn.data.checks import GraphReport, check_graph
from dssgnn.data.own.encoding import Encoded, FeatureEncoding

__all__ = ["LoadedGraph", "finish"]


@dataclass(frozen=True)
class LoadedGraph:
    """A checked graph and its names.

    Attributes:
        data: ``x`` float32 ``[N, F]``, ``edge_index`` int64 ``[2, E]``, ``y`` int64 ``[N]`` (-1: no label or one the
            encoding does not know); ``edge_weight`` and the three masks where the source has them.
        encoding: how columns became ``x``; give it to the next `dssgnn.data.own.exchange.read_graph`.
        node_ids: the nodes' own ids ``[N]``, int64 or text.
        report: what the check counted.
    """

    data: Data
    encoding: FeatureEncoding
    node_ids: NDArray[Any]
    report: GraphReport

    @property
    def class_names(self) -> tuple[str, ...] | tuple[int, ...]:
        """Class ``k`` of ``data.y`` is ``class_names[k]``."""
        return self.encoding.class_names


def finish(
    data: Data,
    encoding: FeatureEncoding,
    node_ids: NDArray[Any],
    source: str,
    *,
    encoded: Encoded | None = None,
    unseen_labels: int = 0,
    ignored: tuple[str, ...] = (),
) -> LoadedGraph:
    """Check ``data`` and join what the reader counted to the check's report."""
    report = replace(
        check_graph(data, source=source),
        unseen_labels=unseen_labels,
        unseen_categories=encoded.unseen if encoded else (),
        filled=encoded.filled if encoded else (),
        ignored=(encoded.ignored if encoded else ()) + ignored,
    )
    return LoadedGraph(data, encoding, np.asarray(node_ids), report)
