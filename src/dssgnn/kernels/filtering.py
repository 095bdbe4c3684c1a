r"""The recurrence :math:`T_{k+1} = 2 \tilde L T_k - T_{k-1}` fused with what is done to its terms.

One launch a step: the sparse product, the recurrence, the accumulation :math:`\sum_k \theta_k T_k` and, in the
backward pass, the products :math:`\langle T_k, H \rangle`. A term is added to the sums when it passes through
registers anyway, two at a time (`_schedule`), so that every second step moves nothing but the recurrence.

Long rows are cut into segments (`dssgnn.kernels.plan`), which are summed first, and their sums added up in their place.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import torch
import triton
import triton.language as tl
from torch import Tensor

from dssgnn.kernels.plan import Plan, plan_of

__all__ = ["filter_adjoint", "filter_forward", "product"]

NEIGHBOURS = 8  # that a program reads at once
INT32_NUMBERS = 2**31  # a state of fewer is addressed with 32 bits
TERM_BYTES = 2**25  # of a term in the backward pass, about; smaller ones only make more launches


# Compiled once for all sizes: what alignment is worth is said by UNIT, and every other variant costs its compilation.
_SIZES = (
    "num_rows", "num_segments", "limit", "term", "first_program", "num_programs", "width", "source_stride",
    "before_stride", "first_stride", "state_stride", "following_stride", "total_stride", "branch_stride",
)  # fmt: skip


@triton.jit(do_not_specialize=_SIZES)
def _sweep(
    start,  # first entry of each row; the segments of long rows stand before the rows
    end,  # one past its last
    rows,  # where a row lies in the states, if LONG
    col,
    val,
    source,  # T_{k-1}, gathered
    before,  # T_{k-LAG}
    first,  # T_0
    state,  # H, for the products
    theta,  # [K+1, R, W] coefficients by column
    following,  # T_k
    segments,  # [segments, W] their sums
    total,  # [N, R, W] sums of the terms
    dots,  # [3, programs, W] products of a term with H, summed over a program's rows: T_k, T_{k-LAG}, T_0
    num_rows,  # segments included
    num_segments,
    limit,  # entries of the longest row that is not left to its segments
    term,  # k
    first_program,
    num_programs,
    width,  # this and all strides in units
    source_stride,
    before_stride,
    first_stride,
    state_stride,
    following_stride,
    total_stride,
    branch_stride,
    ALPHA: tl.constexpr,  # T_k = ALPHA L~ T_{k-1} + BETA before
    BETA: tl.constexpr,
    LONG: tl.constexpr,  # the rows are long ones: their entries are their segments, and the source those' sums
    HAS_BEFORE: tl.constexpr,
    STORE: tl.constexpr,
    ADD: tl.constexpr,  # this step adds terms to the sums
    FRESH: tl.constexpr,  # and is the first to do so
    ADD_BEFORE: tl.constexpr,
    ADD_FIRST: tl.constexpr,
    DOTS: tl.constexpr,
    BRANCHES: tl.constexpr,
    LAG: tl.constexpr,
    ACC: tl.constexpr,
    OFFSET: tl.constexpr,  # type of an offset into a state
    UNIT: tl.constexpr,  # says what the compiler cannot know: that rows are aligned, so that loads are wide
    BLOCK_E: tl.constexpr,
    BLOCK_W: tl.constexpr,
):
    block = tl.program_id(0)
    programs = tl.num_programs(0)
    columns = tl.program_id(1) * BLOCK_W + tl.arange(0, BLOCK_W)
    inside = columns < width * UNIT
    lanes = tl.arange(0, BLOCK_E)
    dot_now = tl.zeros([BLOCK_W], ACC)
    dot_before = tl.zeros([BLOCK_W], ACC)
    dot_first = tl.zeros([BLOCK_W], ACC)
    # While a row is gathered, the entries of the next and the bounds of the one after it are on their way.
    low = tl.load(start + block)
    high = tl.load(end + block)
    neighbour = tl.load(col + low + lanes, mask=low + lanes < high, other=0)
    weight = tl.load(val + low + lanes, mask=low + lanes < high, other=0.0)
    ahead = tl.minimum(block + programs, num_rows - 1)
    next_low = tl.load(start + ahead)
    next_high = tl.load(end + ahead)
    for i in range((num_rows - block + programs - 1) // programs):
        index = block + i * programs
        next_entries = next_low + lanes
        next_neighbour = tl.load(col + next_entries, mask=next_entries < next_high, other=0)
        next_weight = tl.load(val + next_entries, mask=next_entries < next_high, other=0.0)
        ahead = tl.minimum(index + 2 * programs, num_rows - 1)
        ahead_low = tl.load(start + ahead)
        ahead_high = tl.load(end + ahead)
        if high - low <= limit:
            valid = low + lanes < high
            place = source + (neighbour.to(OFFSET) * (source_stride * UNIT))[:, None] + columns[None, :]
            tile = tl.load(place, mask=valid[:, None] & inside[None, :], other=0.0).to(ACC)
            now = tl.sum(weight.to(ACC)[:, None] * tile, axis=0)
            for entry in range(low + BLOCK_E, high, BLOCK_E):
                more = entry + lanes
                valid = more < high
                others = tl.load(col + more, mask=valid, other=0).to(OFFSET)
                weights = tl.load(val + more, mask=valid, other=0.0).to(ACC)
                place = source + (others * (source_stride * UNIT))[:, None] + columns[None, :]
                tile = tl.load(place, mask=valid[:, None] & inside[None, :], other=0.0).to(ACC)
                now += tl.sum(weights[:, None] * tile, axis=0)
            if index < num_segments:
                tl.store(segments + index.to(OFFSET) * (width * UNIT) + columns, now, mask=inside)
            else:
                row = tl.load(rows + index).to(OFFSET) if LONG else (index - num_segments).to(OFFSET)
                now *= ALPHA
                if HAS_BEFORE:
                    spot = before + row * (before_stride * UNIT) + columns
                    previous = tl.load(spot, mask=inside, other=0.0).to(ACC)
                    now += BETA * previous
                if STORE:
                    tl.store(following + row * (following_stride * UNIT) + columns, now, mask=inside)
                if ADD:
                    if ADD_FIRST:
                        spot = first + row * (first_stride * UNIT) + columns
                        origin = tl.load(spot, mask=inside, other=0.0).to(ACC)
                    for r in tl.static_range(BRANCHES):
                        coefficient = theta + (term * BRANCHES + r) * (width * UNIT) + columns
                        sums = now * tl.load(coefficient, mask=inside, other=0.0)
                        if ADD_BEFORE:
                            coefficient = theta + ((term - LAG) * BRANCHES + r) * (width * UNIT) + columns
                            sums += previous * tl.load(coefficient, mask=inside, other=0.0)
                        if ADD_FIRST:
                            coefficient = theta + r * (width * UNIT) + columns
                            sums += origin * tl.load(coefficient, mask=inside, other=0.0)
                        spot = total + row * (total_stride * UNIT) + r * (branch_stride * UNIT) + columns
                        if not FRESH:
                            sums += tl.load(spot, mask=inside, other=0.0).to(ACC)
                        tl.store(spot, sums, mask=inside)
                    if DOTS:
                        spot = state + row * (state_stride * UNIT) + columns
                        h = tl.load(spot, mask=inside, other=0.0).to(ACC)
                        dot_now += now * h
                        if ADD_BEFORE:
                            dot_before += previous * h
                        if ADD_FIRST:
                            dot_first += origin * h
        low, high, next_low, next_high = next_low, next_high, ahead_low, ahead_high
        neighbour, weight = next_neighbour, next_weight
    if DOTS and ADD:
        spot = dots + (first_program + block) * (width * UNIT) + columns
        tl.store(spot, dot_now, mask=inside)
        if ADD_BEFORE:
            tl.store(spot + num_programs * (width * UNIT), dot_before, mask=inside)
        if ADD_FIRST:
            tl.store(spot + 2 * num_programs * (width * UNIT), dot_first, mask=inside)


@dataclass(frozen=True)
class _Step:
    """What the step that makes ``T_k`` adds to the sums: itself, ``T_{k-lag}``, ``T_0``, or nothing."""

    add: bool
    add_before: bool
    add_first: bool


@lru_cache
def _schedule(degree: int, lag: int) -> tuple[_Step, ...]:
    """The steps ``k = 1 .. degree``: counted from the end, ``lag`` steps add two terms each, the next ``lag`` none."""
    adds = [(degree - k) // lag % 2 == 0 for k in range(degree + 1)]
    first_due = adds[0]  # T_0 is then nobody's T_{k-lag}
    steps = []
    for k in range(1, degree + 1):
        steps.append(_Step(adds[k], adds[k] and k >= lag, adds[k] and first_due))
        first_due = first_due and not adds[k]
    return tuple(steps)


def _block(width: int, itemsize: int) -> int:
    """Columns of a program, measured on an H200."""
    return 256 // itemsize if 128 < width < 512 else 128


_NOTHING = _Step(False, False, False)


def _launch(
    plan: Plan,
    values: Tensor,
    source: Tensor,
    *,
    following: Tensor | None = None,
    before: Tensor | None = None,
    alpha: float = 1.0,
    beta: float = -1.0,
    term: int = 1,
    lag: int = 2,
    step: _Step = _NOTHING,
    first: Tensor | None = None,
    theta: Tensor | None = None,
    total: Tensor | None = None,
    fresh: bool = False,
    state: Tensor | None = None,
    dots: Tensor | None = None,
) -> None:
    """Make one term from the last; what is not given is neither read nor written."""
    width, wide = source.size(1), source.dtype == torch.float64
    accumulate = torch.float64 if wide else torch.float32
    segments = torch.empty(plan.num_segments, width, dtype=accumulate, device=source.device)
    branches = 1 if total is None else total.size(1)
    rows = [source if t is None else t for t in (source, before, first, state, following, total)]
    strides = [t.stride(0) for t in rows] + [width if total is None else total.stride(1)]
    unit = math.gcd(16, width, *strides)
    furthest = max(t.size(0) * t.stride(0) for t in (*rows, segments))
    tile = {
        "BLOCK_E": NEIGHBOURS,
        "BLOCK_W": min(_block(width, source.element_size()), triton.next_power_of_2(width)),
        "num_warps": 1,
        "num_stages": 1,
    }
    options = tile | {
        "ALPHA": alpha,
        "BETA": beta,
        "HAS_BEFORE": before is not None,
        "STORE": following is not None,
        "ADD": step.add,
        "FRESH": fresh,
        "ADD_BEFORE": step.add_before,
        "ADD_FIRST": step.add_first,
        "DOTS": state is not None,
        "BRANCHES": branches,
        "LAG": lag,
        "ACC": tl.float64 if wide else tl.float32,
        "OFFSET": tl.int64 if furthest >= INT32_NUMBERS else tl.int32,
        "UNIT": unit,
    }
    columns = triton.cdiv(width, tile["BLOCK_W"])
    light, long = plan.light, plan.long_rows.numel()
    _, *states, following_, total_ = rows
    others = (
        *states,
        source if theta is None else theta,
        following_,
        segments,
        total_,
        source if dots is None else dots,
    )
    sizes = [n // unit for n in (width, *strides)]
    _sweep[light, columns](
        plan.start, plan.end, plan.long_rows, plan.col, values, source, *others,
        plan.start.numel(), plan.num_segments, plan.segment, term, 0, light + long, *sizes, LONG=False, **options,
    )  # fmt: skip
    if long:
        sizes[1] = width // unit  # the source is now the segments' sums
        _sweep[long, columns](
            plan.first_segment, plan.last_segment, plan.long_rows, plan.segment_col, plan.segment_val, segments,
            *others, long, 0, 2**31 - 1, term, light, light + long, *sizes, LONG=True, **options,
        )  # fmt: skip


def _recur(
    matrix: Tensor,
    first: Tensor,
    theta: Tensor,
    total: Tensor,
    state: Tensor | None,
    basis: str,
    bound: float,
    fresh: bool = True,
) -> Tensor | None:
    """Add ``sum_k theta[k, r] T_k first`` to ``total [N, R, w]`` (or, where fresh, write it there).

    ``first`` and ``state`` are ``[N, w]``, ``theta [K+1, R, w]``. With a state, ``<T_k first, state>`` of every
    column is returned, ``[K+1, w]``.
    """
    plan, values, degree = plan_of(matrix), matrix.values(), theta.size(0) - 1
    lag = 2 if basis == "chebyshev" else 1
    dots = None
    if state is not None:
        dots = theta.new_empty(3, plan.light + plan.long_rows.numel(), first.size(1))
    products: dict[int, Tensor] = {}
    # T_k takes the place of T_{k-2}, which only its own row still reads.
    buffers = [first.new_empty(first.shape) for _ in range(min(2, degree - 1))]
    terms = [first]
    for k, step in enumerate(_schedule(degree, lag), start=1):
        before: Tensor | None = terms[max(k - lag, 0)]
        if basis == "monomial":  # Ahat = I - (bound / 2)(L~ + I)
            alpha, beta = -bound / 2, 1 - bound / 2
        elif k == 1:
            before, alpha, beta = None, 1.0, 0.0
        else:
            alpha, beta = 2.0, -1.0
        following = buffers[k % 2 - 1] if k < degree else None
        _launch(
            plan, values, terms[-1], following=following, before=before, alpha=alpha, beta=beta, term=k, lag=lag,
            step=step, first=first, theta=theta, total=total, fresh=fresh, state=state, dots=dots,
        )  # fmt: skip
        fresh = fresh and not step.add
        if dots is not None and step.add:
            added = [k, *([k - lag] if step.add_before else [-1]), *([0] if step.add_first else [])]
            products |= zip(added, dots.sum(dim=1), strict=False)
        if following is not None:
            terms.append(following)
    return torch.stack([products[k] for k in range(degree + 1)]) if products else None


def product(plan: Plan, values: Tensor, dense: Tensor) -> Tensor:
    """The product of a CSR matrix, given as its plan and its entries, with ``dense [M, W]``."""
    out = dense.new_empty(plan.start.numel() - plan.num_segments, dense.size(1))
    _launch(plan, values, dense, following=out)
    return out


def filter_forward(matrix: Tensor, h: Tensor, theta: Tensor, basis: str, bound: float) -> Tensor:
    """``h [N, W]`` and ``theta [K+1, R, W]`` (a coefficient for every column) to ``[N, R, W]``."""
    if theta.size(0) == 1:
        return (h[:, None] * theta[0]).to(h.dtype)
    out = h.new_empty(h.size(0), *theta.shape[1:])
    _recur(matrix, h, theta.contiguous(), out, None, basis, bound)
    return out


def filter_adjoint(
    transposed: Tensor, h: Tensor, grad: Tensor, theta: Tensor, basis: str, bound: float
) -> tuple[Tensor, Tensor]:
    """The gradients of `filter_forward` for ``grad [N, R, W]``: of ``h``, and by column of ``theta``."""
    if theta.size(0) == 1:
        return (grad * theta[0]).sum(dim=1).to(h.dtype), (grad.to(theta.dtype) * h[:, None]).sum(dim=0)[None]
    grad_h, products = h.new_empty(h.shape), torch.empty_like(theta)
    for c in _chunks(h):
        for r in range(theta.size(1)):
            one, into = theta[:, r : r + 1, c].contiguous(), grad_h[:, None, c]
            made = _recur(transposed, grad[:, r, c], one, into, h[:, c], basis, bound, fresh=r == 0)
            products[:, r, c] = cast(Tensor, made)
    return grad_h, products


def _chunks(h: Tensor) -> list[slice]:
    """Columns to run the recurrence on together: not all, where its two terms would set the peak of a step."""
    nodes, width = h.shape
    size = 64 * max(1, TERM_BYTES // (64 * nodes * h.element_size()))
    return [slice(start, min(start + size, width)) for start in range(0, width, size)]
