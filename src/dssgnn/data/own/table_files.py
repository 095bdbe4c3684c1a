"""Reading one table file, CSV or Parquet, into a sheet; whatever is unreadable is an `InputError`."""

import csv
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from dssgnn.data.own.sheets import TEXT, Sheet, one_line, shown, typed_sheet
from dssgnn.errors import InputError

__all__ = ["check_memory", "read_sheet"]

_HEADER_LIMIT = 1 << 24
_BLOCK = 1 << 24
# What pandas calls an index it was not asked to store; no column of the user's.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


def check_memory(name: str, needed: int) -> None:
    """Refuse a file that declares more bytes than half of this machine's memory."""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if needed > memory // 2:
            raise InputError(
                f"{name} declares {needed / 1e9:.1f} GB of data, expected at most half of the memory of this "
                f"machine ({memory / 2e9:.1f} GB)"
            )


def read_sheet(path: Path) -> Sheet:
    """Read ``.csv`` (comma, UTF-8, a header) or ``.parquet``; anything unreadable is an `InputError`."""
    name = shown(path)
    if not os.path.isfile(path):
        raise InputError(f"{name} is not a file, expected a table")
    try:
        return _read_parquet(path, name) if path.suffix == ".parquet" else _read_csv(path, name)
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        raise InputError(f"{name} cannot be read as {path.suffix[1:]}: {one_line(error)}") from error


def _check_names(name: str, names: Sequence[str]) -> None:
    if "" in names:
        raise InputError(
            f"{name}: column {names.index('') + 1} of the header has no name, expected names only"
        )
    repeated = [n for n, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(
            f"{name}: column {one_line(repeated[0])!r} occurs twice in the header, expected distinct names"
        )


def _read_parquet(path: Path, name: str) -> Sheet:
    # Not `read_table`: it would add columns for folders called `key=value`.
    with pq.ParquetFile(path) as file:
        check_memory(name, 8 * file.metadata.num_rows * max(1, file.metadata.num_columns))
        _check_names(name, [n.strip() for n in file.schema_arrow.names])
        table = file.read()
    table.validate(full=True)
    table = table.rename_columns([n.strip() for n in table.column_names])
    return typed_sheet(
        name, table.drop_columns([n for n in table.column_names if _PANDAS_INDEX.fullmatch(n)])
    )


def _read_csv(path: Path, name: str) -> Sheet:
    header = _read_header(path, name)
    if not header.rest:
        table = pa.table({n: pa.array([], TEXT) for n in header.names})
    else:
        try:
            table = pa_csv.read_csv(
                path,
                read_options=pa_csv.ReadOptions(column_names=header.names, skip_rows=1, block_size=_BLOCK),
                parse_options=pa_csv.ParseOptions(newlines_in_values=True),
                convert_options=pa_csv.ConvertOptions(column_types=dict.fromkeys(header.names, TEXT)),
            )
        except pa.ArrowInvalid:
            _explain(path, name, len(header.names))
            raise
    sheet = Sheet(name, table, typed=False, locate=lambda row: f"line {_line_of(path, row)}")
    for column in sheet.names:
        # One quote too many would otherwise swallow the rows up to the next one in silence.
        broken = pc.match_substring_regex(sheet.column(column), "[\r\n]")
        row = pc.index(broken, True).as_py()
        if row >= 0:
            raise sheet.error(
                row, f"column {column!r} holds a line break, expected none (is a quote left open?)"
            )
    return sheet


@dataclass(frozen=True)
class _Header:
    names: list[str]
    rest: bool  # whether anything follows


def _read_header(path: Path, name: str) -> _Header:
    with path.open("rb") as file:
        start = file.read(_HEADER_LIMIT)
    if not start.strip():
        raise InputError(f"{name} is empty, expected a header line")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{name} is UTF-16 text, expected UTF-8")
    line = re.split(rb"\r\n|\r|\n", start, maxsplit=1)[0]
    if len(line) == _HEADER_LIMIT:
        raise InputError(f"{name}, line 1: is longer than {_HEADER_LIMIT} bytes, expected a header line")
    if b"\0" in line:
        raise InputError(f"{name} is binary or UTF-16, expected comma-separated UTF-8 text")
    try:
        names = [n.strip() for n in next(csv.reader([line.decode("utf-8-sig")], strict=True), [])]
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{name} is not UTF-8 text with a header line of comma-separated names") from None
    if not names:
        raise InputError(f"{name}, line 1: is blank, expected a header line")
    _check_names(name, names)
    return _Header(names, rest=bool(start[len(line) :].strip()))


def _line_of(path: Path, row: int) -> int:
    """The line (from 1) of a data row; only errors ask, so a scan of the file is cheap enough."""
    seen = -2
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            seen += line != "\n"
            if seen == row:
                return number
    return row + 2


def _explain(path: Path, name: str, width: int) -> None:
    """Raise with the line of what Arrow, which names none, refused: bad UTF-8 or a row of another length."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.decode(errors="ignore").encode() != line:
                raise InputError(f"{name}, line {number}: is not UTF-8 text")
    with path.open(encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text)
        try:
            for cells in reader:
                if cells and len(cells) != width:
                    raise InputError(
                        f"{name}, line {reader.line_num}: has {len(cells)} cells, expected {width} as in the header"
                    )
        except csv.Error as error:
            raise InputError(f"{name}, line {reader.line_num}: {one_line(error)}") from error
