"""What the tests of the calibration benchmark share."""

import pytest
import torch

from dssgnn.benchmarks.frame import tasks as tasks_module
from dssgnn.data import Split
from dssgnn.data.synthetic import minesweeper


@pytest.fixture
def boards(monkeypatch):
    """Every catalog name is a small Minesweeper board with splits drawn by number."""

    def load(name, **preparation):
        data = minesweeper(10, 10)
        data.x = data.x.double()
        return data

    def make_split(name, data, split):
        order = torch.randperm(100, generator=torch.Generator().manual_seed(split))
        masks = torch.zeros(3, 100, dtype=torch.bool)
        for mask, part in zip(masks, (order[:50], order[50:75], order[75:]), strict=True):
            mask[part] = True
        return Split(*masks)

    monkeypatch.setattr(tasks_module, "make_split", make_split)
    monkeypatch.setattr(tasks_module, "load", load)
