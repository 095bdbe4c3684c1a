"""The file itself: self-contained, safe against what names may hold, bounded."""

import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dssgnn.report import report_content, write_report
from report.folders import HOSTILE, write_folder

NASTY = (HOSTILE, "<!--<script>", 'a & b\'s "c" \u2028 \\u003c ${1}')


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


def page_of(folder: Path) -> str:
    write_report(folder, folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


def data_of(page: str) -> object:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert match
    return json.loads(match[1])


def test_the_page_holds_exactly_its_content(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, nodes=80)
    assert data_of(page_of(folder)) == report_content(folder)


def test_nothing_is_loaded_and_nothing_is_inline(tmp_path: Path) -> None:
    page = page_of(write_folder(tmp_path, nodes=80))
    tags = Tags()
    tags.feed(page)
    for tag, attributes in tags.seen:
        assert "src" not in attributes, tag
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        assert (attributes.get("href") or "#").startswith(("#", "data:,")), tag
    assert not re.findall(r"@import|url\((?!#)|\bfetch\(|XMLHttpRequest|innerHTML|\beval\(", page)
    assert set(re.findall(r"https?://[^\s\"']+", page)) == {
        "http://www.w3.org/2000/svg"
    }  # a name, not loaded


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    ids = [f"{NASTY[k % 3]}{k}" for k in range(120)]
    page = page_of(write_folder(tmp_path, nodes=120, classes=NASTY, graph_name=HOSTILE, ids=ids))
    tags = Tags()
    tags.feed(page)
    assert [tag for tag, _ in tags.seen].count("script") == 3
    assert "img" not in [tag for tag, _ in tags.seen]
    content = data_of(page)
    assert isinstance(content, dict)
    assert tuple(content["about"]["classes"]) == NASTY
    assert set(content["table"]["nodes"]["id"]) <= set(ids)


def test_a_large_graph_gives_a_small_page_soon(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, nodes=100_000, classes=tuple("abcdefgh"), degree=20)
    start = time.perf_counter()
    page = page_of(folder)
    assert time.perf_counter() - start < 20
    assert len(page) < 5e6


def test_the_file_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_folder(tmp_path / "model", nodes=80)
    out = tmp_path / "report.html"
    out.write_text("old")
    monkeypatch.setattr(Path, "chmod", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_report(folder, out)
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "report.html"]
