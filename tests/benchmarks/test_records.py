"""Records survive their file."""

import json

import pytest

from dssgnn.benchmarks.records import Record, check_results_file, merge_records, read_records
from dssgnn.errors import InputError


def record(value, variant="ours"):
    return Record("speed", "s", "dss-gnn", variant, {"step_ms": value}, {}, "cpu", seed=0)


def test_records_replace_their_own_kind(tmp_path):
    path = tmp_path / "deep" / "speed.json"
    merge_records(path, [record(1.0), record(5.0, "published")])
    merge_records(path, [record(2.0)])
    assert {r.variant: r.metrics["step_ms"] for r in read_records(path)} == {"ours": 2.0, "published": 5.0}
    assert json.loads(path.read_text())["schema"] == 1
    assert [p.name for p in path.parent.iterdir()] == ["speed.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": 9, "records": []}', '{"schema": 1, "records": [{}]}']
)
def test_bad_results_file(tmp_path, text):
    path = tmp_path / "speed.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"speed\.json"):
        read_records(path)


def test_a_results_file_is_checked_before_time_is_spent(tmp_path):
    path = tmp_path / "new" / "x.json"
    check_results_file(path)
    assert not path.exists()
    (tmp_path / "file").write_text("no results")
    for path, message in (
        (tmp_path / "file" / "x.json", "results cannot be written there"),
        (tmp_path / "file", "not a results file"),
    ):
        with pytest.raises(InputError, match=f"{path}: {message}"):
            check_results_file(path)
