"""Tuned rows: a declared space, trials from it, and a choice by validation data alone."""

from dssgnn.benchmarks.calibration.search.choosing import (
    Budget,
    check_alone,
    chosen,
    chosen_alone,
    search,
    searched_row,
)
from dssgnn.benchmarks.calibration.search.space import ARMS, OURS, TWINS

__all__ = [
    "ARMS",
    "OURS",
    "TWINS",
    "Budget",
    "check_alone",
    "chosen",
    "chosen_alone",
    "search",
    "searched_row",
]
