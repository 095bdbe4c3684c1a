"""The systems that DSS-GNN is compared with, one a file.

Classifiers are modules ``encoder(x, edge_index) -> logits [N, C]``; `dssgnn.nn.Deterministic` gives them the interface
of every system. Those that sample are systems themselves, ``system(x, graph) -> LogitDistribution``.
"""

from dssgnn.baselines.bernnet import BernNet
from dssgnn.baselines.chebnet import ChebNet
from dssgnn.baselines.deep_ensemble import DeepEnsemble, ensemble_seeds, fit_ensemble
from dssgnn.baselines.g_delta_uq import GDeltaUQ
from dssgnn.baselines.gat import GAT
from dssgnn.baselines.gcn import GCN
from dssgnn.baselines.gcn_res import ResidualGCN
from dssgnn.baselines.gpr_gnn import GPRGNN
from dssgnn.baselines.mc_dropout import MCDropout
from dssgnn.baselines.published_dss import PublishedDSS
from dssgnn.baselines.temperature import TemperatureScaled, fit_temperature
from dssgnn.baselines.tfe_gnn import TFE_PRESETS, TFEGNN

__all__ = [
    "GAT",
    "GCN",
    "GPRGNN",
    "TFEGNN",
    "TFE_PRESETS",
    "BernNet",
    "ChebNet",
    "DeepEnsemble",
    "GDeltaUQ",
    "MCDropout",
    "PublishedDSS",
    "ResidualGCN",
    "TemperatureScaled",
    "ensemble_seeds",
    "fit_ensemble",
    "fit_temperature",
]
