"""The command line as a user meets it."""

import json
import subprocess
import sys
import time

import pytest

import dssgnn
from dssgnn import demo


def call(*words, cwd=None):
    return subprocess.run([sys.executable, "-m", "dssgnn", *words], capture_output=True, text=True, cwd=cwd)


def test_version_and_help_do_not_import_torch():
    code = "import sys, dssgnn.cli; sys.argv = ['dssgnn', '--version']\n"
    code += "try: dssgnn.cli.main()\nexcept SystemExit: pass\nprint('torch' in sys.modules)"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert out == [dssgnn.__version__, "False"]
    start = time.perf_counter()
    assert "demo" in call("--help").stdout
    assert time.perf_counter() - start < 5  # 0.1 s on a quiet machine


def test_bad_input_is_one_line():
    result = call("bench", "speed", "--shapes", "atlantis")
    assert result.returncode == 2
    assert result.stderr.strip() == "error: --shapes knows cora, amazon-ratings, ogbn-arxiv, got 'atlantis'"


def test_bench_speed_writes_records(tmp_path):
    out = tmp_path / "speed.json"
    words = ["bench", "speed", "--shapes", "cora", "--orders", "1", "--repeats", "1", "--out", str(out)]
    result = call(*words)
    assert result.returncode == 0, result.stderr
    records = json.loads(out.read_text())["records"]
    assert {r["variant"] for r in records} == {"ours", "published"}
    assert "cora, P=1" in result.stdout


def test_datasets_lists_the_papers_graphs():
    rows = json.loads(call("datasets", "--json").stdout)
    assert sum(row["in_paper"] for row in rows) == 18
    for row in rows:
        assert isinstance(row["present"], bool)
        assert row["reason"]
        assert row["licence"]
    assert "minesweeper-demo" in call("datasets").stdout


def test_public_names():
    assert set(dir(dssgnn)) >= {"GraphOperator", "DSSConv", "DSSGNN", "DSSHybrid", "ChaosExpansion"}
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        dssgnn.Nothing


def test_demo_writes_a_model_and_a_page(tmp_path, capsys):
    results = demo.run(tmp_path / "out", epochs=2, quiet=True)
    assert set(results) == {"DSS-GNN", "GCN"}
    for metrics in results.values():
        assert 0 <= metrics["accuracy"] <= 1
        assert 0 <= metrics["brier"] <= 2
    assert (tmp_path / "out" / "model" / "weights.safetensors").is_file()
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")
    assert str(tmp_path / "out" / "report.html") in capsys.readouterr().out
