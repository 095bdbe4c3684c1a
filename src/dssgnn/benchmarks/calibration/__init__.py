"""`dssgnn bench calibration`: every system of the paper's first table on the published splits."""

from dssgnn.benchmarks.calibration.defaults import DATASETS, run
from dssgnn.benchmarks.calibration.measuring import ABLATION, ALONE, CALIBRATION, measure

__all__ = ["ABLATION", "ALONE", "CALIBRATION", "DATASETS", "measure", "run"]
