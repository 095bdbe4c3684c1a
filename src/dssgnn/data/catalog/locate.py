"""Where the files of a dataset are looked for, and whether they are the published ones."""

import gzip
import hashlib
import os
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dssgnn.data.catalog.readers import RawFile
from dssgnn.errors import InputError

__all__ = [
    "Found",
    "Source",
    "cache_folder",
    "check_content",
    "file_sha256",
    "find_file",
    "locate",
    "missing_reason",
    "read_file",
    "search_roots",
]


@dataclass(frozen=True)
class Source:
    """One layout a dataset is published in: its reader, and its files by role, relative to a root."""

    reader: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class Found:
    """A source all of whose files are under one root."""

    source: Source
    root: Path
    paths: Mapping[str, Path]


def cache_folder() -> Path:
    """Return the user's cache: ``$DSSGNN_CACHE``, else ``dssgnn`` in the platform's cache folder."""
    if chosen := os.environ.get("DSSGNN_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "dssgnn" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "dssgnn"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dssgnn"


def search_roots(root: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """Return the folders to look in: ``root``, else ``$DSSGNN_DATA``; then downloads in the user's cache."""
    first = root if root is not None else os.environ.get("DSSGNN_DATA")
    downloads = cache_folder() / "raw"
    return (Path(first).expanduser(), downloads) if first else (downloads,)


def find_file(root: Path, relative: str) -> Path | None:
    """Return the file ``relative`` under ``root``, or its ``.gz``, or nothing."""
    for path in (root / relative, root / f"{relative}.gz"):
        if path.is_file():
            return path
    return None


def locate(sources: Sequence[Source], roots: Sequence[Path]) -> Found | None:
    """Return the first source that is complete, root by root."""
    for root in roots:
        for source in sources:
            paths = {role: find_file(root, relative) for role, relative in source.files.items()}
            complete = {role: path for role, path in paths.items() if path is not None}
            if len(complete) == len(paths):
                return Found(source, root, complete)
    return None


def missing_reason(sources: Sequence[Source], roots: Sequence[Path]) -> str:
    """Say which files of the first source are wanted, and which folders they are wanted in."""
    wanted = list(sources[0].files.values())
    missing = [f for f in wanted if all(find_file(root, f) is None for root in roots)]
    # Complete only when two roots are taken together: then every file is wanted.
    missing = missing or wanted
    folder = os.path.commonpath([os.path.dirname(f) for f in wanted])
    names = ", ".join(os.path.relpath(f, folder) for f in missing)
    return f"missing {names} (or .gz) in {' or '.join(str(root / folder) for root in roots)}"


def file_sha256(path: Path) -> str:
    """Return the sha256 of the bytes on disk."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def read_file(path: Path) -> RawFile:
    """Return a file's bytes, unpacked where its name ends in ``.gz``."""
    content = path.read_bytes()
    if path.suffix != ".gz":
        return RawFile(path, content)
    try:
        return RawFile(path, gzip.decompress(content))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a readable gzip file: {error}") from error


def check_content(file: RawFile, accepted: Sequence[str]) -> None:
    """Check the unpacked bytes against published digests, ``sha256:...`` or ``git:...`` (blob id).

    Raises:
        InputError: if digests are given and none of them fits.
    """
    if not accepted:
        return
    sha256 = hashlib.sha256(file.content).hexdigest()
    # A git blob id is all that is published for some files; it identifies them, it is not a signature.
    blob = hashlib.sha1(b"blob %d\0" % len(file.content), usedforsecurity=False)
    blob.update(file.content)
    if not {f"sha256:{sha256}", f"git:{blob.hexdigest()}"} & set(accepted):
        raise InputError(f"{file.path}: its sha256 is {sha256}, expected {' or '.join(accepted)}")
