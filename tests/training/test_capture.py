"""What leads up to a CUDA graph, without a GPU: its streams only write down who waits for whom."""

import sys
from contextlib import nullcontext

import pytest
import torch

from dssgnn.training.capture import Captured


class Stream:
    def __init__(self, name, log):
        self.name, self.log = name, log

    def wait_stream(self, other):
        self.log.append(f"{self.name} waits for {other.name}")


@pytest.mark.parametrize("warmup", [1, 3])
def test_a_run_that_fails_is_waited_for(warmup, monkeypatch):
    """What it had launched by then may still write to memory that the current stream is given next."""
    log, modes = [], []
    current, aside = Stream("current", log), Stream("aside", log)
    monkeypatch.setattr(sys.modules[Captured.__module__], "_aside", lambda device: aside)
    for name, stand_in in {
        "device": lambda device: nullcontext(),
        "stream": lambda stream: nullcontext(),
        "current_stream": lambda: current,
        "current_device": lambda: 0,
        "get_sync_debug_mode": lambda: 0,
        "set_sync_debug_mode": modes.append,
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)

    def fail():
        raise ValueError("at work")

    with pytest.raises(ValueError, match="at work"):
        Captured(fail, warmup)()
    assert log == ["aside waits for current", "current waits for aside"]
    assert modes == (["warn", 0] if warmup == 1 else [])
