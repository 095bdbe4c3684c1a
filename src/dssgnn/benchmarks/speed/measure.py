"""Time, memory and bandwidth of a function on a device."""

import gc
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from dssgnn.training import capture

__all__ = ["Say", "alternate", "attempt", "captured", "copy_bandwidth", "peak_memory", "saved_bytes", "timed"]

T = TypeVar("T")
Say = Callable[[str], None]


def timed(function: Callable[[], object], device: torch.device, calls: int = 1) -> float:
    """Milliseconds a call of ``calls`` calls in a row, by the device's own clock where it has one."""
    if device.type != "cuda":
        start = time.perf_counter()
        for _ in range(calls):
            function()
        return 1e3 * (time.perf_counter() - start) / calls
    torch.cuda.synchronize(device)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    first.record()
    for _ in range(calls):
        function()
    last.record()
    torch.cuda.synchronize(device)
    return float(first.elapsed_time(last)) / calls


def alternate(
    functions: Mapping[str, Callable[[], object]],
    device: torch.device,
    repeats: int,
    say: Say,
    calls: int = 1,
) -> dict[str, list[float]]:
    """Time functions in turns, so that they share clocks and noise; the first turn is a warm-up.

    One that fails is said and left out.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(repeats + 1):
        for name in list(times):
            taken = attempt(name, partial(timed, functions[name], device, calls), say)
            if taken is None:
                del times[name]
            elif turn:
                times[name].append(taken)
    return times


def peak_memory(function: Callable[[], object], device: torch.device) -> dict[str, float]:
    """``base_mib`` allocated before a call, and ``peak_mib`` during it, everything counted; CUDA only."""
    if device.type != "cuda":
        return {}
    torch.cuda.synchronize(device)
    gc.collect()
    base = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    function()
    torch.cuda.synchronize(device)
    return {"base_mib": base / 2**20, "peak_mib": torch.cuda.max_memory_allocated(device) / 2**20}


def saved_bytes(forward: Callable[[], object]) -> int:
    """The bytes that autograd keeps for the backward pass of ``forward``, each tensor counted once."""
    seen: dict[tuple[int, int], int] = {}

    def pack(tensor: Tensor) -> Tensor:
        if not isinstance(tensor, nn.Parameter) and tensor.layout == torch.strided:
            storage = tensor.untyped_storage()
            seen[(storage.data_ptr(), storage.nbytes())] = storage.nbytes()
        return tensor.detach()  # itself would hold the node that holds it, and neither would ever be freed

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()
    del result
    return sum(seen.values())


def copy_bandwidth(device: torch.device, mib: int | None = None) -> float:
    """GB/s of a large copy on the device, bytes read and written."""
    mib = mib or (2048 if device.type == "cuda" else 128)
    source = torch.ones(mib * 2**18, device=device)
    target = torch.empty_like(source)
    times = [timed(lambda: target.copy_(source), device, 3) for _ in range(6)]
    return 2 * mib * 2**20 / (statistics.median(times[1:]) * 1e6)


def attempt(label: str, function: Callable[[], T], say: Say) -> T | None:
    """The result of ``function``; where it fails, ``None``, and the reason is said.

    A contender that runs out of memory must not cost the others their figures.
    """
    try:
        return function()
    except Exception as error:
        text = " ".join(str(error).split())
        reason = f"{type(error).__name__}: {text[:200]}"
    gc.collect()  # the failed call's frames, and the tensors in them, are gone only now
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    say(f"{label}: absent ({reason})")
    return None


def captured(function: Callable[[], T], warmup: int = 3) -> Callable[[], T]:
    """The replay of ``function`` as a CUDA graph; one that cannot be made is an error here, not a slower call."""
    replay = capture(function, warmup)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="no CUDA graph")
        for _ in range(warmup + 2):  # it is recorded after the warm-up
            replay()
    return replay
