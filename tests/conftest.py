"""Fixtures every test may use."""

import os
from pathlib import Path

import pytest

# Triton decides when it is first imported whether kernels are interpreted; without a GPU that is how to test them.
if not Path("/dev/nvidiactl").exists():
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder of real graphs, or a skip that says why."""
    folder = os.environ.get("DSSGNN_DATA")
    if not folder:
        pytest.skip("needs real graphs: DSSGNN_DATA is not set")
    return Path(folder)
