"""How the rows of a sparse matrix are dealt out to programs.

A row with many neighbours would hold its program long after the others are done: it is cut into segments, summed
first, and their sums are added up in its place.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

__all__ = ["Plan", "make_plan", "plan_of"]

MOST_PROGRAMS = 132 * 64  # of one launch; more rows than that are dealt out in turn
SEGMENT = 128  # neighbours of a row that one program sums; beyond it the row is cut


@dataclass(frozen=True)
class Plan:
    """The rows of a CSR matrix, its long ones cut into segments."""

    segment: int  # neighbours that one program sums
    start: Tensor  # [M + N] entries of the segments, then of the rows
    end: Tensor
    col: Tensor
    num_segments: int
    long_rows: Tensor  # [L] their numbers
    first_segment: Tensor  # [L] a long row's first segment
    last_segment: Tensor  # [L] one past its last
    segment_col: Tensor  # [M] the segments as entries of the long rows,
    segment_val: Tensor  # [M] of weight 1

    @property
    def light(self) -> int:
        """Programs of a launch over segments and rows; one over the long rows has one each."""
        return min(self.start.numel(), MOST_PROGRAMS)


def make_plan(crow: Tensor, col: Tensor) -> Plan:
    """Look for long rows; this waits for the device, and is done once a matrix."""
    start, end = crow[:-1], crow[1:]
    long = (end - start > SEGMENT).nonzero()[:, 0]
    counts = (end[long] - start[long] + SEGMENT - 1) // SEGMENT
    last = counts.cumsum(0)
    within = torch.arange(int(counts.sum()), device=crow.device) - (last - counts).repeat_interleave(counts)
    cut = start[long].repeat_interleave(counts) + SEGMENT * within
    cut_end = torch.minimum(cut + SEGMENT, end[long].repeat_interleave(counts))
    start, end, long, first, last = (
        t.to(torch.int32)
        for t in (torch.cat([cut, start]), torch.cat([cut_end, end]), long, last - counts, last)
    )
    own = torch.arange(cut.numel(), dtype=torch.int32, device=crow.device)
    ones = torch.ones_like(own, dtype=torch.float32)
    return Plan(SEGMENT, start, end, col, cut.numel(), long, first, last, own, ones)


_plans: Any = WeakTensorKeyDictionary()


def plan_of(matrix: Tensor) -> Plan:
    """The plan of a CSR tensor, made once."""
    if matrix not in _plans:
        _plans[matrix] = make_plan(matrix.crow_indices(), matrix.col_indices())
    plan: Plan = _plans[matrix]
    return plan
