"""A small system with a training of a few epochs, for tests of the benchmarks."""

import torch

from dssgnn import DSSGNN
from dssgnn.benchmarks.frame import Setup
from dssgnn.training import TrainingConfig

CPU = torch.device("cpu")
CONFIG = TrainingConfig(epochs=8, patience=None, monitor="brier")


def setup(**options):
    def make(features, classes):
        return DSSGNN(features, 8, classes, chaos_order=1, dropout=0.3).double()

    return Setup(make, CONFIG, **options)
