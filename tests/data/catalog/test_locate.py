"""Where files are looked for, and what counts as the published file."""

import hashlib
import sys
from pathlib import Path

import pytest

from dssgnn.data.catalog.locate import (
    Source,
    cache_folder,
    check_content,
    file_sha256,
    find_file,
    locate,
    missing_reason,
    read_file,
    search_roots,
)
from dssgnn.data.catalog.readers import RawFile
from dssgnn.errors import InputError
from raw_files import gz, write

ONE = Source("a", {"x": "Set/raw/x.txt", "y": "Set/raw/y.txt"})
OTHER = Source("b", {"graph": "other/graph.npz"})


def test_cache_folder_is_the_platforms_or_the_one_chosen(monkeypatch):
    monkeypatch.setenv("DSSGNN_CACHE", "/somewhere/else")
    assert cache_folder() == Path("/somewhere/else")
    monkeypatch.delenv("DSSGNN_CACHE")
    monkeypatch.setenv("HOME", "/home/a")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == Path("/home/a/.cache/dssgnn")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/dssgnn")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == Path("/home/a/Library/Caches/dssgnn")
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert cache_folder() == Path("/local/dssgnn/Cache")


def test_roots_in_order(monkeypatch):
    monkeypatch.setenv("DSSGNN_CACHE", "/cache")
    monkeypatch.setenv("DSSGNN_DATA", "/data")
    assert search_roots() == (Path("/data"), Path("/cache/raw"))
    assert search_roots("/mine") == (Path("/mine"), Path("/cache/raw"))
    monkeypatch.delenv("DSSGNN_DATA")
    assert search_roots() == (Path("/cache/raw"),)


def test_the_first_complete_source_of_the_first_root_wins(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    write(first, {"Set/raw/x.txt": b"1"})
    assert locate([ONE, OTHER], [first, second]) is None
    write(second, {"Set/raw/x.txt": b"1", "Set/raw/y.txt.gz": gz(b"2")})
    found = locate([ONE, OTHER], [first, second])
    assert (found.source, found.root) == (ONE, second)
    assert found.paths["y"].name == "y.txt.gz"
    write(first, {"other/graph.npz": b"3"})
    assert locate([ONE, OTHER], [first, second]).source is OTHER


def test_a_folder_of_the_files_name_is_not_the_file(tmp_path):
    (tmp_path / "x").mkdir()
    assert find_file(tmp_path, "x") is None


def test_the_reason_names_files_and_folders(tmp_path):
    write(tmp_path, {"Set/raw/x.txt": b"1"})
    roots = [tmp_path, tmp_path / "cache"]
    expected = f"missing y.txt (or .gz) in {tmp_path}/Set/raw or {tmp_path}/cache/Set/raw"
    assert missing_reason([ONE, OTHER], roots) == expected


def test_contents_are_compared_unpacked(tmp_path):
    write(tmp_path, {"x.txt.gz": gz(b"hello")})
    file = read_file(tmp_path / "x.txt.gz")
    assert file.content == b"hello"
    # sha256 and git blob id of "hello", from sha256sum and git hash-object
    check_content(file, ["sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"])
    check_content(file, ["sha256:00", "git:b6fc4c620b67d95f953a5c1c1230aaab5db5a1b0"])
    check_content(file, [])
    with pytest.raises(InputError, match=r"x\.txt\.gz: its sha256 is 2cf24dba.*, expected sha256:00"):
        check_content(file, ["sha256:00"])


def test_damaged_gzip(tmp_path):
    write(tmp_path, {"a.gz": b"no gzip", "b.gz": gz(b"hello" * 100)[:-12]})
    for name in ("a.gz", "b.gz"):
        with pytest.raises(InputError, match=f"{name}: not a readable gzip file"):
            read_file(tmp_path / name)


def test_file_sha256_is_of_the_bytes_on_disk(tmp_path):
    content = bytes(range(256)) * 9000  # more than one block
    (tmp_path / "x").write_bytes(content)
    assert file_sha256(tmp_path / "x") == hashlib.sha256(content).hexdigest()
    assert read_file(tmp_path / "x") == RawFile(tmp_path / "x", content)
