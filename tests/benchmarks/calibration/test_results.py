"""The committed records agree with each other."""

from pathlib import Path

import pytest
import torch

import dssgnn.benchmarks.calibration.search.choosing as search_module
from dssgnn.benchmarks.calibration.search.choosing import chosen
from dssgnn.benchmarks.calibration.search.space import ARMS, TWINS
from dssgnn.benchmarks.frame import config_of
from dssgnn.benchmarks.records import read_records

RESULTS = Path(__file__).parents[3] / "results"


@pytest.mark.skipif(not (RESULTS / "calibration.json").exists(), reason="needs the repository's results/")
def test_rows_that_were_searched_for_are_what_the_search_chose(data_root, monkeypatch):
    """A row of another configuration than the recorded trials choose would be one of a search that was given up."""
    monkeypatch.setattr(search_module, "train_together", None)  # everything is on record
    made = {}
    for record in read_records(RESULTS / "calibration.json"):
        row = record.method, record.variant
        if record.benchmark in ("calibration", "calibration-repeated") and (row in ARMS or row in TWINS):
            key = record.setting, row
            if key not in made:
                made[key] = chosen(*key, RESULTS / "calibration_search.json", torch.device("cpu"))
            expected = config_of(made[key], record.split)
            found = dict(record.config)
            for config in (expected, found):
                del config["seeds"]  # repetitions have others
            assert found == expected, f"{key}, split {record.split}, seed {record.seed}, {record.device}"
    assert len(made) > 40
