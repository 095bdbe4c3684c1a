"""One way to train every system: objectives, a loop, checkpoints."""

from dssgnn.training.capture import capture
from dssgnn.training.config import MONITORS, MarginTerm, ParameterGroup, TrainingConfig
from dssgnn.training.loop import TrainingResult, fit
from dssgnn.training.objectives import OBJECTIVES, energy_margin, training_loss
from dssgnn.training.part import Part
from dssgnn.training.population import fit_population
from dssgnn.training.seeding import seeded
from dssgnn.training.task import NodeTask, Outliers

__all__ = [
    "MONITORS",
    "OBJECTIVES",
    "MarginTerm",
    "NodeTask",
    "Outliers",
    "ParameterGroup",
    "Part",
    "TrainingConfig",
    "TrainingResult",
    "capture",
    "energy_margin",
    "fit",
    "fit_population",
    "seeded",
    "training_loss",
]
