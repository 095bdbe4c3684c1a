"""Figures of merit of a predictive distribution."""

from dssgnn.metrics.calibration import (
    ReliabilityCurve,
    accuracy,
    brier,
    calibration_metrics,
    expected_calibration_error,
    nll,
    reliability_curve,
)

__all__ = [
    "ReliabilityCurve",
    "accuracy",
    "brier",
    "calibration_metrics",
    "expected_calibration_error",
    "nll",
    "reliability_curve",
]
