"""The documentation is true: its code runs, its tables are those of the results files."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from dssgnn.benchmarks.render import render, rendered
from dssgnn.errors import InputError

ROOT = Path(__file__).parent.parent


def code_blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_readmes_example_runs():
    (block,) = code_blocks("README.md")
    names = {}
    exec(block.replace("epochs=100", "epochs=2"), names)
    assert names["z"].predictive().shape == (1600, 2)


def test_the_tutorial_runs_word_for_word(tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    (commands,) = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    for command in commands.strip().splitlines():
        words = [sys.executable, "-m", *command.split()]
        result = subprocess.run(words, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
    table = pd.read_csv("newcomers.csv")
    assert len(table) == 80
    assert "<!doctype html>" in Path("town.html").read_text(encoding="utf-8")
    (block,) = code_blocks("docs/tutorial.md")
    names = {}
    with pytest.warns(UserWarning, match="no masks"):
        exec(block.replace("epochs=100", "epochs=5"), names)
    assert len(names["z"]) == 80


def test_the_example_of_the_speed_page_runs():
    (block,) = code_blocks("docs/speed.md")
    names = {}
    exec(block.replace("tasks[0].reordered())", "tasks[0].reordered(), configs[0])"), names)
    assert [result.stopped for result in names["results"]] == ["epochs"] * 3


def test_the_examples_are_what_their_script_writes(tmp_path):
    shutil.copy(ROOT / "examples" / "make_town.py", tmp_path)
    subprocess.run([sys.executable, str(tmp_path / "make_town.py")], check=True)
    for name in ("town/nodes.csv", "town/edges.csv", "newcomers/nodes.csv", "newcomers/edges.csv"):
        assert (tmp_path / name).read_bytes() == (ROOT / "examples" / name).read_bytes()


def test_the_catalogs_examples_run(data_root, monkeypatch):
    names = {}
    exec(code_blocks("docs/data.md")[0], names)
    assert names["shift"].split.sizes() == (244, 61, 61, 125, 126)


def test_the_tables_example_runs(tmp_path, monkeypatch, capsys):
    for folder in ("my_graph", "next_month"):
        place = tmp_path / folder
        place.mkdir()
        nodes = {"id": ["a", "b", "c"], "label": ["x", "y", None], "age": [1, 2, 3], "kind": ["p", "q", "p"]}
        pd.DataFrame(nodes).to_csv(place / "nodes.csv", index=False)
        pd.DataFrame({"source": ["a"], "target": ["b"]}).to_csv(place / "edges.csv", index=False)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code_blocks("docs/data.md")[1], names)
    assert names["graph"].class_names == ("x", "y")
    assert names["new"].data.x.shape == (3, 3)
    assert "isolated" in capsys.readouterr().out


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_tables_are_rendered_from_results(path):
    text = path.read_text(encoding="utf-8")
    assert rendered(text, ROOT / "results") == text, "run `make docs`"


def test_render_writes_only_what_changed(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "plain.md").write_text("nothing to render\n")
    (docs / "speed.md").write_text("before\n<!-- table: speed -->\nold\n<!-- end table -->\nafter\n")
    assert render(docs, ROOT / "results") == [docs / "speed.md"]
    text = (docs / "speed.md").read_text()
    assert text.startswith("before\n<!-- table: speed -->\n| device |")
    assert "old" not in text
    assert render(docs, ROOT / "results") == []
    with pytest.raises(InputError, match="no table is called 'nonsense'"):
        rendered("<!-- table: nonsense -->\n<!-- end table -->", ROOT / "results")
