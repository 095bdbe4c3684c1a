"""Results files: one record for each setting, method, variant, split and seed."""

import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from dssgnn._version import versions
from dssgnn.errors import InputError
from dssgnn.files import atomic_path, locked

__all__ = ["Record", "check_results_file", "device_name", "merge_records", "read_records"]

_SCHEMA = 1


@cache
def commit() -> str:
    """The commit this code is at, with ``+`` where the tree differs from it; empty outside a checkout."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=here, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # else the checkout is somebody else's
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


@dataclass(frozen=True)
class Record:
    """One row of a results file; ``metrics`` are numbers, ``config`` is what repeats them."""

    benchmark: str
    setting: str
    method: str
    variant: str
    metrics: dict[str, float]
    config: dict[str, Any]
    device: str
    split: int | None = None
    seed: int | None = None
    selected_on: str | None = None
    versions: dict[str, str] = field(default_factory=versions)
    commit: str = field(default_factory=commit)

    @property
    def key(self) -> tuple[Any, ...]:
        """What two records must not share in one file."""
        return (self.benchmark, self.setting, self.method, self.variant, self.split, self.seed, self.device)


def merge_records(path: Path | str, records: Iterable[Record]) -> None:
    """Write records into a results file, in the place of older ones with the same key; atomically.

    Several processes may add to one file.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):
        kept = {record.key: record for record in (read_records(path) if path.exists() else [])}
        kept |= {record.key: record for record in records}
        try:
            lines = [json.dumps(asdict(record), allow_nan=False) for record in kept.values()]
        except ValueError as error:
            raise InputError(f"{path}: a record holds a number that is not finite") from error
        # One record a line, so that a difference between two files can be read.
        text = ",\n".join(lines)
        with atomic_path(path) as temporary:
            temporary.write_text(f'{{"schema": {_SCHEMA}, "records": [\n{text}\n]}}\n', encoding="utf-8")


def check_results_file(path: Path | str) -> None:
    """Check, before any time is spent, that records can be added to ``path``."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: results cannot be written there ({error.strerror})") from error
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: results cannot be written there, expected a folder that can be written to")
    if path.exists():
        read_records(path)


def read_records(path: Path | str) -> list[Record]:
    """Read a results file.

    Raises:
        InputError: if it is not one.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        if content["schema"] != _SCHEMA:
            raise InputError(f"{path}: results schema {content['schema']!r}, expected {_SCHEMA}")
        return [Record(**record) for record in content["records"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a results file ({error})") from error


def device_name(device: torch.device) -> str:
    """A device in words, for a record."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type}, {torch.get_num_threads()} threads"
