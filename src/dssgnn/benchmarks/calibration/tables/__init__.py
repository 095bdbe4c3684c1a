"""The tables and figures of ``docs/``, from the records."""

from dssgnn.benchmarks.calibration.tables.systems import TABLES

__all__ = ["TABLES"]
