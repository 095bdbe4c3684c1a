"""One way to train every system: objectives, a loop, checkpoints."""

from dssgnn.training.config import MONITORS, MarginTerm, ParameterGroup, TrainingConfig
from dssgnn.training.loop import TrainingResult, fit
from dssgnn.training.objectives import OBJECTIVES, energy_margin, training_loss
from dssgnn.training.seeding import seeded
from dssgnn.training.task import NodeTask, Outliers

__all__ = [
    "MONITORS",
    "OBJECTIVES",
    "MarginTerm",
    "NodeTask",
    "Outliers",
    "ParameterGroup",
    "TrainingConfig",
    "TrainingResult",
    "energy_margin",
    "fit",
    "seeded",
    "training_loss",
]
