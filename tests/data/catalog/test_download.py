"""Downloads, without a network: a stand-in for PyG's class and ``file:`` addresses."""

import hashlib
import io
import os
import zipfile
from pathlib import Path

import pytest
import torch_geometric.datasets
from rich.console import Console
from torch_geometric.data import InMemoryDataset

import raw_files
from dssgnn.data.catalog import download as module
from dssgnn.data.catalog import load, status
from dssgnn.data.catalog.download import ArchiveDownload, FileDownload, PyGDownload, download
from dssgnn.data.catalog.entries import ENTRIES
from dssgnn.data.catalog.locate import Source
from dssgnn.errors import InputError

SOURCE = Source("x", {"graph": "Fake/a/raw/g.npz"})


class Fake(InMemoryDataset):
    """Downloads its ``address``; its processing must never run, as that of PyG unpickles."""

    address = "theirs"

    def __init__(self, root, name):
        self.name = name
        super().__init__(root)
        raise AssertionError("the constructor went on after downloading")

    @property
    def raw_dir(self):
        return os.path.join(self.root, self.name, "raw")

    @property
    def raw_file_names(self):
        return "g.npz"

    @property
    def processed_file_names(self):
        return "data.pt"

    def download(self):
        Path(self.raw_dir, "g.npz").write_text(self.address)

    def process(self):
        raise AssertionError("PyG's processing ran")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DSSGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DSSGNN_DATA", raising=False)
    monkeypatch.delenv("DSSGNN_OFFLINE", raising=False)
    monkeypatch.setattr(module, "_unreachable", lambda host: None)
    monkeypatch.setattr(torch_geometric.datasets, "Fake", Fake, raising=False)
    return tmp_path / "cache"


def files_under(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def quiet():
    return Console(file=io.StringIO())


def digest(text):
    return [f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"]


def test_pyg_downloads_and_nothing_else(cache):
    how = PyGDownload("Fake", {"name": "a"}, "host")
    assert download(how, SOURCE, lambda _: digest("theirs"), quiet()) == cache / "raw"
    assert files_under(cache) == ["raw/Fake/a/raw/g.npz"]
    assert os.listdir(cache / "raw") == ["Fake"]  # the staging folder and PyG's processed/ are gone


def test_an_address_can_be_replaced(cache):
    how = PyGDownload("Fake", {"name": "a"}, "host", {"address": "corrected"})
    download(how, SOURCE, lambda _: digest("corrected"), quiet())
    assert (cache / "raw/Fake/a/raw/g.npz").read_text() == "corrected"
    assert Fake.address == "theirs"


def test_another_file_than_the_published_one_is_not_kept(cache):
    how = PyGDownload("Fake", {"name": "a"}, "host")
    with pytest.raises(InputError, match=r"g\.npz: its sha256 is .*, expected sha256:"):
        download(how, SOURCE, lambda _: digest("other"), quiet())
    assert os.listdir(cache / "raw") == []


def test_failures_of_any_kind_are_one_error(cache, monkeypatch):
    monkeypatch.setattr(Fake, "download", lambda self: 1 / 0)
    with pytest.raises(InputError, match="its download from host failed: ZeroDivisionError"):
        download(PyGDownload("Fake", {"name": "a"}, "host"), SOURCE, lambda _: (), quiet())
    assert os.listdir(cache / "raw") == []


def test_files_by_address(cache, tmp_path):
    (tmp_path / "served.npz").write_bytes(b"content")
    how = FileDownload("host", {"Fake/a/raw/g.npz": (tmp_path / "served.npz").as_uri()})
    download(how, SOURCE, lambda _: digest("content"), quiet())
    assert (cache / "raw/Fake/a/raw/g.npz").read_bytes() == b"content"
    missing = FileDownload("host", {"Fake/a/raw/other.npz": (tmp_path / "served.npz").as_uri()})
    with pytest.raises(InputError, match=r"brought no Fake/a/raw/g\.npz"):
        download(missing, SOURCE, lambda _: (), quiet())


def test_only_the_wanted_members_of_an_archive_are_unpacked(cache, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("top/raw/edge.csv.gz", raw_files.gz(b"0,1\n"))
        archive.writestr("../../escape", b"no")
        archive.writestr("top/RELEASE.txt", b"no")
    how = ArchiveDownload(
        "host", (tmp_path / "a.zip").as_uri(), {"set/raw/edge.csv.gz": "top/raw/edge.csv.gz"}
    )
    source = Source("x", {"edge": "set/raw/edge.csv"})
    download(how, source, lambda _: digest("0,1\n"), quiet())
    assert files_under(cache) == ["raw/set/raw/edge.csv.gz"]


def test_arxiv_travels_from_archive_to_graph(cache, tmp_path, monkeypatch):
    (variant,) = ENTRIES["ogbn-arxiv"].variants.values()
    contents = raw_files.arxiv()
    with zipfile.ZipFile(tmp_path / "arxiv.zip", "w") as archive:
        for role, path in variant.sources[0].files.items():
            archive.writestr(variant.download.members[f"{path}.gz"], raw_files.gz(contents[role]))
    real = module._copy
    served = (tmp_path / "arxiv.zip").as_uri()
    monkeypatch.setattr(module, "_copy", lambda url, target, console: real(served, target, console))
    data = load("ogbn-arxiv", verify=False)
    assert data.year.tolist() == [2013, 2016, 2018, 2020]
    assert data.edge_index.T.tolist() == [[0, 1], [0, 3], [1, 0], [1, 2], [2, 1], [3, 0]]
    assert status("ogbn-arxiv")["present"]


def test_offline_the_message_names_folders_and_files(tmp_path, monkeypatch):
    monkeypatch.setenv("DSSGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DSSGNN_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("DSSGNN_OFFLINE", raising=False)
    monkeypatch.setattr(module.urllib.request, "getproxies", dict)

    def refuse(*_, **__):
        raise OSError("Name or service not known")

    monkeypatch.setattr(module.socket, "create_connection", refuse)
    with pytest.raises(InputError) as caught:
        load("roman-empire")
    assert str(caught.value) == (
        f"roman-empire is not here: missing roman_empire.npz (or .gz) in "
        f"{tmp_path}/data/HeterophilousGraphDataset/roman_empire/raw or "
        f"{tmp_path}/cache/raw/HeterophilousGraphDataset/roman_empire/raw; "
        "it cannot be downloaded: no connection to github.com (Name or service not known)"
    )
    assert not (tmp_path / "cache").exists()


def test_downloading_can_be_forbidden(tmp_path, monkeypatch):
    monkeypatch.setenv("DSSGNN_CACHE", str(tmp_path))
    monkeypatch.delenv("DSSGNN_DATA", raising=False)
    monkeypatch.setenv("DSSGNN_OFFLINE", "1")
    with pytest.raises(
        InputError, match="DSSGNN_DATA is not set; it cannot be downloaded: DSSGNN_OFFLINE is set"
    ):
        load("pubmed")
    monkeypatch.setattr(module, "_unreachable", lambda host: pytest.fail("tried to download"))
    with pytest.raises(InputError, match="downloading was not asked for"):
        load("pubmed", download=False)


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry.factory is None])
def test_every_download_brings_the_files_the_entry_wants(name):
    """The paths PyG's class writes to, asked of the class itself, are those the catalog looks for."""
    for variant in ENTRIES[name].variants.values():
        wanted = set(variant.sources[0].files.values())
        how = variant.download
        if isinstance(how, FileDownload):
            assert set(how.urls) == wanted
        elif isinstance(how, ArchiveDownload):
            assert {path.removesuffix(".gz") for path in how.members} == wanted
        else:
            seen = []

            def see(self, seen=seen):
                seen.extend(os.path.relpath(path, "root") for path in self.raw_paths)
                raise module._DownloadedError

            base = getattr(torch_geometric.datasets, how.dataset)
            spy = type(how.dataset, (base,), {"_download": see, **how.overrides})
            with pytest.raises(module._DownloadedError):
                spy(root=f"root/{how.dataset}", **how.arguments)
            assert {path.replace(os.sep, "/") for path in seen} == wanted
