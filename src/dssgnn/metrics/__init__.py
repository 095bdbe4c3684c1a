"""Figures of merit of a predictive distribution, and whether one system's are better than another's."""

from dssgnn.metrics.calibration import (
    ReliabilityCurve,
    accuracy,
    brier,
    calibration_metrics,
    expected_calibration_error,
    nll,
    reliability_curve,
)
from dssgnn.metrics.statistics import PairedComparison, compare_paired, holm

__all__ = [
    "PairedComparison",
    "ReliabilityCurve",
    "accuracy",
    "brier",
    "calibration_metrics",
    "compare_paired",
    "expected_calibration_error",
    "holm",
    "nll",
    "reliability_curve",
]
