"""Files that are whole or absent."""

import ctypes
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["atomic_folder", "atomic_path", "locked", "remove_leftovers"]


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Give a temporary name beside ``path`` to write to; it takes ``path``'s place when the block ends well."""
    path = Path(path)
    temporary = _beside(path)
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        yield temporary
        temporary.chmod(mode)  # some writers make files that only their owner may read
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def locked(folder: Path | str) -> Iterator[None]:
    """Wait until no other process is here with the same folder; a killed one keeps nobody out. (Not on Windows.)"""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def atomic_folder(path: Path | str) -> Iterator[Path]:
    """Give a temporary folder beside ``path`` to fill; it takes ``path``'s place when the block ends well.

    On Linux the old and the new folder change places in one step, so that a kill at any moment leaves one of
    them whole. Elsewhere there is a moment between two renames in which the old one has another name.
    """
    path = Path(os.path.realpath(path))  # through a link, as writing to a file does
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path)
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.iterdir():
            with open(file, "rb") as stream:
                os.fsync(stream.fileno())
        if not path.exists():
            os.rename(temporary, path)
        elif not _exchange(temporary, path):
            old = Path(f"{temporary}.old")
            os.rename(path, old)
            try:
                os.rename(temporary, path)
            except BaseException:
                os.rename(old, path)
                raise
            shutil.rmtree(old)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(path: Path | str) -> None:
    """Remove the temporary files and folders that killed writers of ``path`` left beside it."""
    path = Path(path)
    pattern = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{12}(\.old)?")
    for leftover in list(path.parent.iterdir()):
        if pattern.fullmatch(leftover.name):
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    # Not made by `tempfile`, whose files only their owner may read.
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}")


def _exchange(first: Path, second: Path) -> bool:
    """Let two paths change names in one step (Linux's ``renameat2``); say whether that could be done."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(rename(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0)
