"""A sheet: named columns read from one file, each row of which can be found again in that file.

Missing cells are empty ones and the words in `MISSING_WORDS`; spaces around a cell do not count.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dssgnn.errors import InputError

__all__ = [
    "MISSING_WORDS",
    "TEXT",
    "Sheet",
    "castable",
    "is_number",
    "one_line",
    "sheet_from_columns",
    "shown",
    "typed_sheet",
]

MISSING_WORDS = ("", "NA", "N/A", "NaN", "nan", "null")
TEXT = pa.large_string()
_INTEGER = r"^-?(0|[1-9][0-9]{0,17})$"
_DECIMAL = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?$"


def one_line(value: object, limit: int = 120) -> str:
    """Return ``value`` as printable text without line breaks, cut at ``limit`` characters.

    >>> one_line("a\\nb")
    'a b'
    """
    text = " ".join(str(value).split())
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[:limit])
    return text if len(text) < limit else text[:limit] + "..."


def shown(path: object) -> str:
    """Return a path as errors show it: quoted only if it holds characters that do not print.

    >>> shown("my graph/nodes.csv")
    'my graph/nodes.csv'
    """
    text = str(path)
    return text if text.isprintable() else repr(text)


@dataclass(frozen=True)
class Sheet:
    """Columns of equal length, and where each row came from.

    Attributes:
        name: how errors call the file.
        table: the columns; text is ``large_string``.
        typed: whether the file said which columns are numbers; where it did not (CSV), all cells are text.
        locate: turns a row (from 0) into the words that find it in the file, such as ``line 7``.
    """

    name: str
    table: Any  # pa.Table, which has no type stubs
    typed: bool
    locate: Callable[[int], str]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in the file's order."""
        return tuple(self.table.column_names)

    def error(self, row: int, problem: str) -> InputError:
        """The error that names the file, the row and the ``problem``."""
        return InputError(f"{self.name}, {self.locate(row)}: {one_line(problem, 300)}")

    def column(self, name: str) -> Any:
        """One column as a ``pyarrow.Array``."""
        return self.table.column(name).combine_chunks()

    def words(self, name: str) -> Any:
        """One column as trimmed text, null where a cell is missing."""
        column = self.column(name)
        if not (
            is_number(column.type) or pa.types.is_boolean(column.type) or column.type in (TEXT, pa.null())
        ):
            raise InputError(
                f"{self.name}: column {one_line(name)!r} has type {one_line(column.type)}, "
                "expected numbers, words or booleans"
            )
        text = pc.utf8_trim_whitespace(column.cast(TEXT))
        return pc.if_else(
            pc.is_in(text, value_set=pa.array(MISSING_WORDS, TEXT)), pa.scalar(None, TEXT), text
        )

    def numbers(self, name: str) -> NDArray[np.float64]:
        """One column as float64, NaN where a cell is missing; raises at the first infinite or wordy cell."""
        column = self.column(name)
        if column.type == TEXT:
            column = self.words(name)
        elif not is_number(column.type):
            raise InputError(
                f"{self.name}: column {one_line(name)!r} has type {one_line(column.type)}, expected numbers"
            )
        try:
            floats = column.cast(pa.float64(), safe=False)
        except pa.ArrowInvalid:
            row = _first_uncastable(column)
            raise self.error(
                row, f"column {name!r} is {column[row].as_py()!r:.60}, expected a number"
            ) from None
        values: NDArray[np.float64] = floats.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
        infinite = np.isinf(values)
        if infinite.any():
            row = int(infinite.argmax())
            raise self.error(row, f"column {name!r} is {values[row]}, expected a finite number")
        return values

    def keys(self, name: str) -> Any:
        """Ids as int64 where every one is written as an integer, as text otherwise; none may be missing."""
        column = self.column(name)
        if pa.types.is_integer(column.type):
            column = column.cast(pa.int64()) if column.type != pa.uint64() else column.cast(TEXT)
        elif column.type == TEXT:
            column = pc.utf8_trim_whitespace(column)
            column = pc.if_else(pc.equal(column, ""), pa.scalar(None, TEXT), column)
        elif not pa.types.is_null(column.type):
            raise InputError(
                f"{self.name}: column {one_line(name)!r} has type {one_line(column.type)}, expected integers or text"
            )
        if column.null_count:
            row = int(pc.index(column.is_null(), True).as_py())
            raise self.error(row, f"column {name!r} is empty, expected an id")
        return integers_or_text(column)

    def labels(self, name: str) -> Any:
        """Classes as int64 where every one is an integer, as text otherwise; null where missing."""
        column = self.column(name)
        if not is_number(column.type):
            words = integers_or_text(self.words(name))
            if is_number(words.type) or not _all_match(words, _DECIMAL):
                return words
            column = words.cast(pa.float64())  # "0.0", "1.0", "": integers as pandas writes them beside gaps
        floats = Sheet(self.name, pa.table({name: column}), True, self.locate).numbers(name)
        missing = np.isnan(floats)
        odd = ~missing & ((floats != np.floor(floats)) | (np.abs(floats) >= 2.0**53))
        if odd.any():
            row = int(odd.argmax())
            raise self.error(
                row, f"column {name!r} is {floats[row]:g}, expected a class: an integer or a word"
            )
        return pa.array(np.where(missing, 0, floats).astype(np.int64), mask=missing)


def is_number(kind: Any) -> bool:
    """Whether an Arrow type holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def integers_or_text(text: Any) -> Any:
    """Text as int64 if every value that is not missing is a plain integer; ``007`` is text."""
    return text.cast(pa.int64()) if text.type == TEXT and _all_match(text, _INTEGER) else text


def _all_match(text: Any, pattern: str) -> bool:
    return text.null_count < len(text) and bool(pc.all(pc.match_substring_regex(text, pattern)).as_py())


def castable(text: Any) -> bool:
    """Whether every value of a text column is a number."""
    try:
        text.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _first_uncastable(column: Any) -> int:
    low, high = 0, len(column)  # the prefix of length `low` is castable, that of length `high` is not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if castable(column.slice(low, middle - low)) else (low, middle)
    return low


def sheet_from_columns(columns: Mapping[str, Sequence[Any]], name: str = "columns") -> Sheet:
    """Build a sheet from Python values; rows are counted from 0.

    >>> sheet_from_columns({"age": [3, None, 4]}).numbers("age")
    array([ 3., nan,  4.])
    """
    arrays = {}
    for key, values in columns.items():
        try:
            str(key).encode()  # a name may be a str that is no text, too
            arrays[str(key)] = pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise InputError(
                f"{name}: column {one_line(key)!r} mixes kinds of values, expected numbers, words or booleans only"
            ) from None
    return typed_sheet(name, pa.table(arrays))


def typed_sheet(name: str, table: Any) -> Sheet:
    """A sheet of typed columns: dictionaries are decoded, every text becomes ``large_string``."""
    for i, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if pa.types.is_string(kind) or pa.types.is_string_view(kind):
            kind = TEXT
        if kind != field.type:
            table = table.set_column(i, field.name, table.column(i).cast(kind))
    return Sheet(name, table, typed=True, locate=lambda row: f"row {row}")
