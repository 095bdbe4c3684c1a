"""Downloads, through PyG's dataset classes or from a publisher's address, into the user's cache."""

import contextlib
import os
import shutil
import socket
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console
from rich.progress import Progress

from dssgnn.data.catalog.locate import Source, cache_folder, check_content, read_file
from dssgnn.errors import InputError

__all__ = ["ArchiveDownload", "Download", "FileDownload", "PyGDownload", "download"]

_TIMEOUT = 5.0  # seconds to find out that there is no network


@dataclass(frozen=True)
class PyGDownload:
    """Files a PyG dataset class downloads; ``overrides`` replaces class attributes such as its address."""

    dataset: str
    arguments: Mapping[str, Any]
    host: str
    overrides: Mapping[str, str] = field(default_factory=dict)

    def fetch(self, folder: Path, console: Console) -> None:
        """Download into ``folder``; PyG's own processing, which unpickles, is stopped before it starts."""
        import torch_geometric.datasets

        base = getattr(torch_geometric.datasets, self.dataset)
        only_download = type(self.dataset, (base,), {**self.overrides, "process": _stop})
        status = console.status(f"downloading {self.dataset} from {self.host}")
        with status, contextlib.suppress(_DownloadedError):
            only_download(root=str(folder / self.dataset), **self.arguments)


@dataclass(frozen=True)
class FileDownload:
    """Files with an address each, by their path under the root."""

    host: str
    urls: Mapping[str, str]

    def fetch(self, folder: Path, console: Console) -> None:
        """Download into ``folder``."""
        for relative, url in self.urls.items():
            _copy(url, folder / relative, console)


@dataclass(frozen=True)
class ArchiveDownload:
    """Members of one zip archive, by their path under the root."""

    host: str
    url: str
    members: Mapping[str, str]

    def fetch(self, folder: Path, console: Console) -> None:
        """Download the archive and unpack the members wanted, by name, into ``folder``."""
        archive = folder / "archive.zip"
        _copy(self.url, archive, console)
        with zipfile.ZipFile(archive) as stored:
            for relative, member in self.members.items():
                target = folder / relative
                target.parent.mkdir(parents=True, exist_ok=True)
                with stored.open(member) as source, target.open("wb") as out:
                    shutil.copyfileobj(source, out)


Download = PyGDownload | FileDownload | ArchiveDownload


def download(
    how: Download,
    source: Source,
    checksums: Callable[[str], Sequence[str]],
    console: Console | None = None,
) -> Path:
    """Download the files of ``source`` into the user's cache, verified, and return the root they are under.

    Raises:
        InputError: without a network, or where a file is missing or not the published one; nothing is
            left behind then. The message is the reason alone; `dssgnn.data.catalog.load` adds what to do.
    """
    root = cache_folder() / "raw"
    if problem := _unreachable(how.host):
        raise InputError(f"it cannot be downloaded: {problem}")
    root.mkdir(parents=True, exist_ok=True)
    with _staging(root) as staging:
        try:
            how.fetch(staging, console or Console(stderr=True))
        except Exception as error:  # whatever the network library raises, the user needs the same answer
            raise InputError(
                f"its download from {how.host} failed: {type(error).__name__}: {error}"
            ) from error
        arrived = {}
        for relative in source.files.values():
            paths = [p for p in (staging / relative, staging / f"{relative}.gz") if p.is_file()]
            if not paths:
                raise InputError(f"its download from {how.host} brought no {relative}")
            check_content(read_file(paths[0]), checksums(relative))
            arrived[paths[0]] = root / paths[0].relative_to(staging)
        for path, target in arrived.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)
    return root


class _DownloadedError(Exception):
    """Leaves PyG's constructor between downloading and processing."""


def _stop(_: object) -> None:
    raise _DownloadedError


@contextlib.contextmanager
def _staging(root: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=".download-", dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _unreachable(host: str) -> str | None:
    """Say why ``host`` cannot be reached, or nothing; a proxy is taken at its word."""
    if os.environ.get("DSSGNN_OFFLINE"):
        return "DSSGNN_OFFLINE is set"
    if urllib.request.getproxies():
        return None
    try:
        socket.create_connection((host, 443), timeout=_TIMEOUT).close()
    except OSError as error:
        return f"no connection to {host} ({error})"
    return None


def _copy(url: str, target: Path, console: Console) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with urllib.request.urlopen(url, timeout=60) as response, target.open("wb") as out:
        size = int(response.headers.get("Content-Length") or 0) or None
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task(os.path.basename(urlsplit(url).path), total=size)
            while block := response.read(1 << 20):
                out.write(block)
                progress.advance(task, len(block))
