"""Fixtures every test may use."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real graphs, or a skip that says why."""
    folder = os.environ.get("DSSGNN_DATA")
    if not folder:
        pytest.skip("needs real graphs: DSSGNN_DATA is not set")
    return Path(folder)
