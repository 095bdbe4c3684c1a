"""CUDA graphs: a function recorded once and replayed with one launch."""

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Generic, TypeVar

import torch

__all__ = ["Captured", "capture"]

T = TypeVar("T")


def capture(function: Callable[[], T], warmup: int = 3) -> Callable[[], T]:
    """Let ``function`` be replayed as a CUDA graph, from its call number ``warmup`` + 1 on.

    It must read and write the same memory at every call, take what changes from tensors that are written in
    place, and not wait for the device. The tensors it returns are overwritten by the next call. Without a GPU
    it is returned as it is.
    """
    return Captured(function, warmup) if torch.cuda.is_available() else function


class Captured(Generic[T]):
    """See `capture`.

    Args:
        function: what to record.
        warmup: calls that run as they are, on a side stream: they fill caches and make optimiser states.
        generators: other than the default one, which random operations in it draw from.
        device: where it runs; torch's current device where it is not given.
    """

    def __init__(
        self,
        function: Callable[[], T],
        warmup: int = 3,
        generators: Sequence[torch.Generator] = (),
        device: torch.device | None = None,
    ) -> None:
        self._function, self._warmup, self._generators = function, max(1, warmup), generators
        self._device = device
        self.reset()

    def reset(self) -> None:
        """Forget the recording: the function does something else from now on."""
        self._graph: torch.cuda.CUDAGraph | None = None
        self._result: T | None = None
        self._calls, self._refused = 0, False

    def __call__(self) -> T:
        """Run, record or replay."""
        with torch.cuda.device(self._device):
            if self._graph is None and not self._refused and self._calls >= self._warmup:
                self._record()
            if self._graph is not None:
                self._graph.replay()
                return self._result  # type: ignore[return-value]
            if self._refused:
                return self._function()
            self._calls += 1
            return self._run_aside()

    def _run_aside(self) -> T:
        current, aside = torch.cuda.current_stream(), _aside(torch.cuda.current_device())
        aside.wait_stream(current)
        # A recording that fails leaves torch's allocator and generators in disorder, so what would make it
        # fail is looked for in a run before it.
        last = self._calls == self._warmup
        before = torch.cuda.get_sync_debug_mode()
        with warnings.catch_warnings(record=last) as seen:
            if last:
                warnings.simplefilter("always")
                torch.cuda.set_sync_debug_mode("warn")
            try:
                with torch.cuda.stream(aside):
                    result = self._function()
            finally:
                if last:
                    torch.cuda.set_sync_debug_mode(before)
                current.wait_stream(aside)
        waits = False
        for warning in seen or ():
            if "synchronizing CUDA operation" in str(warning.message):
                waits = True
            elif "Synchronization debug mode" not in str(warning.message):  # a prototype, it says
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno, source=warning.source
                )
        if waits:
            self._refuse("it waits for the device")
        return result

    def _record(self) -> None:
        graph = torch.cuda.CUDAGraph()
        current = torch.cuda.current_stream()
        generators = [torch.cuda.default_generators[torch.cuda.current_device()], *self._generators]
        kept = [generator.clone_state() for generator in generators]
        for generator in self._generators:
            graph.register_generator_state(generator)
        try:
            with torch.cuda.graph(graph, stream=_aside(torch.cuda.current_device())):
                result = self._function()
        except RuntimeError as error:
            # Nothing has been executed. What the failure left open: the stream, and generators that believe
            # they are still being recorded.
            torch.cuda.set_stream(current)
            for generator, state in zip(generators, kept, strict=True):
                generator.graphsafe_set_state(state.graphsafe_get_state())
            self._refuse(str(error).partition("\n")[0])
            return
        self._graph, self._result = graph, result

    def _refuse(self, reason: str) -> None:
        self._refused = True
        warnings.warn(f"no CUDA graph could be made, so every step is launched anew: {reason}", stacklevel=2)


@cache
def _aside(device: int) -> torch.cuda.Stream:
    # One for all recordings: cuBLAS keeps a workspace of 32 MiB for every stream it has ever seen.
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
