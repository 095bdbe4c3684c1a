"""`dssgnn bench calibration`: every system of the paper's first table on the published splits."""

from dssgnn.benchmarks.calibration.defaults import DATASETS, run
from dssgnn.benchmarks.calibration.frame import measure, sweep, train
from dssgnn.benchmarks.calibration.setup import Setup

__all__ = ["DATASETS", "Setup", "measure", "run", "sweep", "train"]
