"""How one feature column becomes features: a number as it is, or a 0/1 feature for each category."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dssgnn.data.own.sheets import TEXT, Sheet, castable, is_number, one_line
from dssgnn.errors import InputError

__all__ = ["MAX_CATEGORIES", "ColumnEncoding", "Missing", "check_text", "class_names_of"]

Missing = Literal["error", "mean"]
MAX_CATEGORIES = 1000
_BOOLEANS = ("false", "true")
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class ColumnEncoding:
    """One column: a number as it is (``categories`` None), or one 0/1 feature for each category.

    ``fill`` stands for missing numbers under ``missing="mean"``; a missing category is all zeros.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | None = None

    def __post_init__(self) -> None:
        check_text([self.name], "a column's name")
        if self.categories is not None:
            check_text(self.categories, f"the categories of {one_line(self.name)!r}")
            if not 1 <= len(self.categories) <= MAX_CATEGORIES:
                raise InputError(
                    f"column {one_line(self.name)!r} has {len(self.categories)} categories, "
                    f"expected 1 to {MAX_CATEGORIES}"
                )
        number = isinstance(self.fill, int | float) and not isinstance(self.fill, bool)
        if self.fill is not None and not (number and abs(self.fill) <= _LARGEST):
            raise InputError(
                f"fill of column {one_line(self.name)!r} is {self.fill!r:.40}, expected a finite number"
            )

    @property
    def width(self) -> int:
        """The number of features this column becomes."""
        return 1 if self.categories is None else len(self.categories)

    @classmethod
    def fit(cls, sheet: Sheet, name: str, *, missing: Missing, categorical: bool) -> "ColumnEncoding":
        """Learn one column of ``sheet``; ``categorical`` makes categories even of numbers."""
        if categorical or _holds_categories(sheet, name):
            return cls(name, _categories(sheet, name))
        values = _numbers(sheet, name)
        gaps = np.isnan(values)
        if missing == "error":
            _refuse_missing(sheet, name, gaps)
            return cls(name)
        if gaps.all():
            raise InputError(
                f"{sheet.name}: column {one_line(name)!r} is empty, expected at least one number"
            )
        return cls(name, fill=float(values[~gaps].mean()))

    def encode_into(self, features: NDArray[np.float32], sheet: Sheet) -> tuple[int, int]:
        """Write the column's features into zeros ``[N, width]``; return the unseen and the missing cells."""
        if self.categories is None:
            values = _numbers(sheet, self.name)
            gaps = np.isnan(values)
            if self.fill is None:
                _refuse_missing(sheet, self.name, gaps)
            else:
                values = np.where(gaps, self.fill, values)
            features[:, 0] = values
            return 0, int(gaps.sum())
        words = sheet.words(self.name)
        if set(self.categories) <= set(_BOOLEANS):
            words = pc.utf8_lower(words)
        found = pc.index_in(words, value_set=pa.array(self.categories, TEXT))
        features[found.is_valid().to_numpy(zero_copy_only=False), found.drop_null().to_numpy()] = 1
        return found.null_count - words.null_count, words.null_count


def class_names_of(labels: Any) -> tuple[str, ...] | tuple[int, ...]:
    """The different values of an Arrow column, sorted (integers by value), missing ones aside."""
    return tuple(sorted(pc.unique(labels.drop_null()).to_pylist()))


def check_text(values: Sequence[object], name: str) -> None:
    """Check that ``values`` are distinct, non-empty strings that a file can hold."""
    for value in values:
        # A lone surrogate is a legal str and JSON escape, but no text that a file could hold.
        if not isinstance(value, str) or not value or value.encode(errors="replace").decode() != value:
            raise InputError(f"{name} must be non-empty text, got {value!r:.40}")
    if len(set(values)) < len(values):
        raise InputError(f"{name} must be distinct")


def _holds_categories(sheet: Sheet, name: str) -> bool:
    if is_number(sheet.column(name).type):
        return False
    words = sheet.words(name)
    if words.null_count == len(words):
        raise InputError(f"{sheet.name}: column {one_line(name)!r} is empty, expected numbers or words")
    if not sheet.typed and castable(words):
        return False
    if not sheet.typed:
        _refuse_mixture(sheet, name, words)
    return True


def _refuse_mixture(sheet: Sheet, name: str, words: Any) -> None:
    distinct = pc.unique(words.drop_null()).to_pylist()
    number = next((word for word in distinct if castable(pa.array([word], TEXT))), None)
    if number is not None:
        wordy = next(word for word in distinct if not castable(pa.array([word], TEXT)))
        place = sheet.locate(pc.index(words, pa.scalar(number, TEXT)).as_py())
        raise sheet.error(
            pc.index(words, pa.scalar(wordy, TEXT)).as_py(),
            f"column {name!r} is {wordy!r:.60}, but {number!r:.60} in {place}; "
            "expected numbers or words, not both",
        )


def _categories(sheet: Sheet, name: str) -> tuple[str, ...]:
    words = sheet.words(name)
    lower = pc.utf8_lower(words)
    if pc.all(pc.is_in(lower.drop_null(), value_set=pa.array(_BOOLEANS, TEXT))).as_py():
        words = lower  # Python writes True, Parquet's booleans read as true: one category for both
    categories = tuple(str(word) for word in class_names_of(words))
    if not 1 <= len(categories) <= MAX_CATEGORIES:
        raise InputError(
            f"{sheet.name}: column {one_line(name)!r} has {len(categories)} different words, "
            f"expected 1 to {MAX_CATEGORIES} categories"
        )
    return categories


def _numbers(sheet: Sheet, name: str) -> NDArray[np.float64]:
    values = sheet.numbers(name)
    too_large = np.abs(values) > _LARGEST
    if too_large.any():
        row = int(too_large.argmax())
        raise sheet.error(row, f"column {name!r} is {values[row]:g}, expected a number within float32")
    return values


def _refuse_missing(sheet: Sheet, name: str, gaps: NDArray[np.bool_]) -> None:
    if gaps.any():
        raise sheet.error(
            int(gaps.argmax()),
            f"column {name!r} is missing, expected a number (missing='mean' would fill the gaps)",
        )
