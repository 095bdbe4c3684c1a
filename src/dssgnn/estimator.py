"""`DSSClassifier`: from a graph to a model that can be trusted, in scikit-learn's manners."""

import copy
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Data

from dssgnn.answers import node_frame, node_scores, part_metrics, to_numpy
from dssgnn.data import LoadedGraph, check_graph, read_graph
from dssgnn.data.splits import resolve_split
from dssgnn.devices import resolve_device
from dssgnn.errors import InputError
from dssgnn.expansion import ChaosExpansion
from dssgnn.fitted import FittedState
from dssgnn.graph import GraphOperator, SparseFeatures, sparse_where_faster
from dssgnn.metrics import calibration_metrics
from dssgnn.parameters import Parameters
from dssgnn.scaling import fit_scaling
from dssgnn.scores import propagate, propagation_operator
from dssgnn.search import Search, Trial, halving
from dssgnn.systems import Architecture, make_system
from dssgnn.training import NodeTask, TrainingConfig, fit, seeded
from dssgnn.validation import check_count

__all__ = ["DSSClassifier", "operator_options"]


class DSSClassifier(Parameters):
    """Node classification with uncertainty.

    Args:
        method: ``"dss-gnn"``, ``"dss-hybrid"``, or a comparison system of `dssgnn.systems.METHODS`.
        hidden_channels, num_layers, chaos_order, filter_orders, gate_order, propagation, residual, norm, dropout,
            joint_dropout, input_dropout, filter_init, base, residual_scale, warmup_epochs: see
            `dssgnn.systems.Architecture`; ``input_dropout="auto"`` is 0.5 for 100 features and more, else 0.
        normalization, direction, self_loops: of the graph operator, see `GraphOperator.from_edge_index`.
        scaling: ``"auto"`` standardises columns that are not within 0..1, ``"standard"`` all, ``None`` none.
        objective, chaos_weight, lr, weight_decay, epochs, patience, monitor: see `TrainingConfig`.
        search: ``"quick"`` or ``"thorough"`` chooses a configuration on validation Brier before the fit (`SPACE` in
            `dssgnn.search`); test nodes are hidden from it.
        search_seconds: no trial of the search is begun after this long.
        device: ``"auto"`` takes a GPU where there is one.
        seed: of the weights, the training, and the split where one is made.

    Learned: ``classes_``, ``n_features_in_``, ``model_``, ``state_`` (split, predictions, metrics, history).

    Example:
        >>> from dssgnn.data import minesweeper
        >>> board = minesweeper(8, 8)
        >>> model = DSSClassifier(hidden_channels=8, epochs=3).fit(board)
        >>> model.predict_proba(board).shape
        (64, 2)
    """

    method: str
    scaling: Literal["auto", "standard"] | None
    device: str
    seed: int
    search: Search | None
    search_seconds: float | None
    model_: nn.Module
    state_: FittedState
    trials_: list[Trial]

    def __init__(
        self,
        *,
        method: str = "dss-gnn",
        hidden_channels: int = 64,
        num_layers: int = 2,
        chaos_order: int = 1,
        filter_orders: tuple[int, int] = (4, 4),
        gate_order: int = 0,
        propagation: Literal["every", "first", "last"] = "every",
        residual: bool | Literal["identity", "inner"] = True,
        norm: Literal["batch", "joint"] | None = None,
        dropout: float = 0.5,
        joint_dropout: bool = False,
        input_dropout: float | Literal["auto"] = "auto",
        filter_init: Literal["lowpass", "highpass", "flat", "published"] = "lowpass",
        base: str = "gcn",
        residual_scale: float = 0.1,
        warmup_epochs: int = 50,
        normalization: Literal["sym", "rw", "col"] = "sym",
        direction: Literal["both", "in", "out"] = "both",
        self_loops: bool | Literal["keep"] = False,
        scaling: Literal["auto", "standard"] | None = "auto",
        objective: Literal["mean", "quadrature", "predictive", "brier"] = "predictive",
        chaos_weight: float = 0.0,
        lr: float = 0.01,
        weight_decay: float = 5e-4,
        epochs: int = 500,
        patience: int | None = 60,
        monitor: str = "brier",
        search: Search | None = None,
        search_seconds: float | None = None,
        device: str = "auto",
        seed: int = 0,
    ) -> None:
        for name, value in locals().items():
            if name != "self":
                setattr(self, name, value)

    # Learning

    def fit(
        self,
        data: Data | LoadedGraph,
        *,
        name: str = "data",
        checkpoint: Path | str | None = None,
        resume: bool = False,
        on_epoch: Callable[[dict[str, float]], None] | None = None,
    ) -> "DSSClassifier":
        """Train on a graph with labels.

        Without masks a stratified 60/20/20 split is made, and a warning says so; without validation nodes a
        fifth of the training nodes is kept for it.

        Args:
            data: a PyG ``Data`` with ``x``, ``edge_index``, ``y`` (-1: no label) and optional masks, or what
                `dssgnn.data.read_graph` returned.
            name: what the model's folder calls the graph.
            checkpoint: a file to keep the run in.
            resume: go on from ``checkpoint`` if it exists.
            on_epoch: called with the newest row of the history.

        Raises:
            InputError: for a graph that cannot be learned from, or parameters that cannot be used.
        """
        config = self._training_config()
        device = resolve_device(self.device)
        loaded = data if isinstance(data, LoadedGraph) else read_graph(data)
        graph = loaded.data
        check_graph(graph, source=name, training=True)
        if self.search is not None:
            chosen = type(self)(**self._choose(loaded, name))
            chosen.fit(loaded, name=name, checkpoint=checkpoint, resume=resume, on_epoch=on_epoch)
            for learned in ("model_", "classes_", "n_features_in_", "state_"):
                setattr(self, learned, getattr(chosen, learned))
            return self
        split, origin = resolve_split(graph, self.seed)
        scaling = fit_scaling(graph.x, self.scaling)
        classes = len(loaded.class_names)
        task = NodeTask.from_data(
            Data(
                x=scaling(graph.x),
                edge_index=graph.edge_index,
                y=graph.y,
                edge_weight=graph.get("edge_weight"),
                train_mask=split.train,
                val_mask=split.val,
            ),
            classes,
            **operator_options(self.get_params()),
        ).to(device)
        with seeded(self.seed):
            model = self._make_model(graph.x.size(1), classes)
        model.to(device)
        task = task.suited_to(model)
        if checkpoint is not None:
            Path(checkpoint).parent.mkdir(parents=True, exist_ok=True)
        result = fit(model, task, config, checkpoint=checkpoint, resume=resume, on_epoch=on_epoch)
        self.model_ = model
        self.classes_ = np.array(loaded.class_names)
        self.n_features_in_ = int(graph.x.size(1))
        expansion, ood = self._read(task.x, task.graph)
        metrics = part_metrics(expansion, graph.y, split, model, task.graph.lambda_max)
        metrics["training"] = {
            "best_epoch": result.best_epoch,
            "epochs": len(result.history),
            "seconds": result.seconds,
            "stopped": result.stopped,
            "parameters": sum(p.numel() for p in model.parameters()),
        }
        frame = node_frame(loaded, expansion, ood, loaded.class_names, split)
        weight = graph.get("edge_weight")
        self.state_ = FittedState(
            encoding=loaded.encoding,
            scaling=scaling,
            graph={"name": name, "nodes": int(graph.num_nodes), "edges": int(graph.num_edges)},
            edge_index=graph.edge_index.cpu().numpy(),
            edge_weight=None if weight is None else weight.cpu().numpy(),
            y=graph.y.cpu().numpy(),
            split=split,
            split_origin=origin,
            predictions=frame,
            metrics=metrics,
            history=result.history,
            parameters=self.get_params(),
        )
        return self

    def _choose(self, loaded: LoadedGraph, name: str) -> dict[str, Any]:
        """Search on the training and validation part of a graph; leaves ``trials_``."""
        graph = loaded.data
        split, _ = resolve_split(graph, self.seed)
        shown = copy.copy(graph)
        shown.y = torch.where(split.train | split.val, graph.y, -1)  # no trial can read a test label
        shown.train_mask, shown.val_mask, shown.test_mask = (
            split.train,
            split.val,
            torch.zeros_like(split.test),
        )
        hidden = replace(loaded, data=shown)
        own = self.get_params() | {"search": None, "search_seconds": None}

        def score(parameters: dict[str, Any], epochs: int) -> float:
            trial = type(self)(**(own | parameters | {"epochs": epochs})).fit(hidden, name=name)
            return float(trial.state_.metrics["val"]["brier"])

        kind = cast(Search, self.search)
        self.trials_ = halving(score, kind, seed=self.seed, seconds=self.search_seconds)
        return own | self.trials_[0].parameters

    # Answers

    def expansion(self, data: Data | LoadedGraph) -> ChaosExpansion:
        """The chaos expansion of every node's logits, on the CPU."""
        return self._expand(self._prepare(data))[0]

    def predict_proba(self, data: Data | LoadedGraph) -> NDArray[np.float32]:
        """The quadrature predictive distribution ``[N, C]``, columns in the order of ``classes_``."""
        return to_numpy(self.expansion(data).predictive())

    def predict(self, data: Data | LoadedGraph) -> NDArray[Any]:
        """The most probable class of every node ``[N]``, by name."""
        best = self.predict_proba(data).argmax(axis=1)
        return self.classes_[best]  # type: ignore[no-any-return]

    def uncertainty(self, data: Data | LoadedGraph) -> dict[str, NDArray[np.float32]]:
        """Every uncertainty of every node: ``confidence``, ``entropy``, ``mutual_information``, ..., each ``[N]``."""
        return node_scores(*self._expand(self._prepare(data)))

    def ood_score(self, data: Data | LoadedGraph) -> NDArray[np.float32]:
        """The energy, smoothed along the edges, ``[N]``; higher is further from what was trained on."""
        return to_numpy(self._expand(self._prepare(data))[1])

    def frame(self, data: Data | LoadedGraph) -> pd.DataFrame:
        """One row a node: prediction, probabilities and uncertainties, as ``dssgnn predict`` writes it."""
        loaded = self._prepare(data)
        return node_frame(loaded, *self._expand(loaded), self.state_.encoding.class_names, None)

    def evaluate(self, data: Data | LoadedGraph, mask: Tensor | None = None) -> dict[str, float]:
        """Every calibration metric over the labelled nodes (of ``mask``)."""
        loaded = self._prepare(data)
        chosen = loaded.data.y >= 0
        if mask is not None:
            chosen &= mask
        if not bool(chosen.any()):
            raise InputError("no node has a label that the model knows; there is nothing to evaluate on")
        return calibration_metrics(self._expand(loaded)[0][chosen], loaded.data.y[chosen]) | {
            "nodes": int(chosen.sum())
        }

    # Folders

    def save(self, folder: Path | str, *, graph: bool = True) -> None:
        """Write the model folder, whole or not at all; ``graph=False`` leaves the training edges out."""
        from dssgnn.model_folder import save_folder

        self._check_fitted()
        save_folder(self, folder, graph=graph)

    @classmethod
    def load(cls, folder: Path | str) -> "DSSClassifier":
        """Read a model folder; no pickle is involved, and a damaged file is one clear error."""
        from dssgnn.model_folder import load_folder

        return load_folder(cls, folder)

    # Inside

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise InputError(f"this {type(self).__name__} is not fitted yet; call fit first")

    def _training_config(self) -> TrainingConfig:
        if check_count(self.seed, "seed") >= 2**32:  # what every generator we use takes
            raise InputError(f"seed must be below 2**32, got {self.seed!r}")
        return TrainingConfig(
            **{f.name: getattr(self, f.name) for f in fields(TrainingConfig) if hasattr(self, f.name)}
        )

    def _make_model(self, features: int, classes: int) -> nn.Module:
        values = {f.name: getattr(self, f.name) for f in fields(Architecture)}
        if values["input_dropout"] == "auto":
            values["input_dropout"] = 0.5 if features >= 100 else 0.0
        shape = Architecture(**values)
        return make_system(self.method, features, classes, shape)

    def _prepare(self, data: Data | LoadedGraph) -> LoadedGraph:
        self._check_fitted()
        encoding = self.state_.encoding
        loaded = data if isinstance(data, LoadedGraph) else read_graph(data, encoding=encoding)
        if loaded.encoding != encoding:
            raise InputError(
                "the graph was read with another encoding than the model's; "
                "read it with read_graph(..., encoding=model.state_.encoding)"
            )
        if loaded.data.x.size(1) != self.n_features_in_:
            got = loaded.data.x.size(1)
            raise InputError(
                f"the graph has {got} features, but the model was fitted on {self.n_features_in_}"
            )
        return loaded

    def _expand(self, loaded: LoadedGraph) -> tuple[ChaosExpansion, Tensor]:
        device = next(self.model_.parameters()).device
        graph = loaded.data
        operator = GraphOperator.from_edge_index(
            graph.edge_index,
            graph.x.size(0),
            graph.get("edge_weight"),
            **operator_options(self.state_.parameters),
        )
        x = self.state_.scaling(graph.x).to(device)
        # As in training, so that the answers are the same to the bit.
        suited = sparse_where_faster(x) if getattr(self.model_, "sparse_features", False) else x
        return self._read(suited, operator.to(device))

    @torch.no_grad()
    def _read(self, x: Tensor | SparseFeatures, operator: GraphOperator) -> tuple[ChaosExpansion, Tensor]:
        expansion: ChaosExpansion = self.model_.eval()(x, operator)
        score = propagate(expansion.energy(), propagation_operator(operator))
        return expansion.map(lambda z: z.cpu()), score.cpu()


def operator_options(parameters: dict[str, Any]) -> dict[str, Any]:
    """Those parameters of an estimator that the graph operator takes."""
    return {name: parameters[name] for name in ("normalization", "direction", "self_loops")}
