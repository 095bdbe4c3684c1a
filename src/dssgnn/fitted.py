"""What a fit leaves behind."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dssgnn.data import FeatureEncoding, Split
from dssgnn.scaling import Scaling

__all__ = ["FittedState"]


@dataclass(frozen=True, eq=False)
class FittedState:
    """What a fit leaves behind, beside the model; it is what a model folder holds.

    Attributes:
        encoding: of features and classes.
        scaling: of the features.
        graph: name, nodes and edges of the training graph.
        edge_index: its edges ``[2, E]``, or ``None`` where they were left out of a folder.
        edge_weight: their weights, or ``None``.
        y: its labels ``[N]``, -1 unknown.
        split: the three parts.
        split_origin: where the parts came from, in words.
        predictions: one row a node of the training graph.
        metrics: by part, of training, and of the model.
        history: one dict an epoch.
        parameters: of the estimator when it was fitted; `DSSClassifier.set_params` does not reach them.
    """

    encoding: FeatureEncoding
    scaling: Scaling
    graph: dict[str, Any]
    edge_index: NDArray[np.int64] | None
    edge_weight: NDArray[np.float32] | None
    y: NDArray[np.int64]
    split: Split
    split_origin: str
    predictions: pd.DataFrame
    metrics: dict[str, Any]
    history: list[dict[str, float]]
    parameters: dict[str, Any]
