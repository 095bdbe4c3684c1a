"""How feature columns become the matrix ``x``, remembered so that the next graph is encoded alike."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dssgnn.data.own.columns import ColumnEncoding, Missing, check_text
from dssgnn.data.own.sheets import TEXT, Sheet, one_line
from dssgnn.errors import InputError

__all__ = ["Encoded", "FeatureEncoding"]


@dataclass(frozen=True)
class Encoded:
    """Features ``x [N, F]`` and what was met on the way: counts a column, and columns not used."""

    x: NDArray[np.float32]
    unseen: tuple[tuple[str, int], ...]
    filled: tuple[tuple[str, int], ...]
    ignored: tuple[str, ...]


@dataclass(frozen=True)
class FeatureEncoding:
    """Feature columns in order, and the names of the classes.

    Attributes:
        columns: the encoded columns; empty for a matrix without column names.
        class_names: class ``k`` of ``y`` is ``class_names[k]``; all integers or all text.
        missing: ``"error"`` refuses a missing number, ``"mean"`` takes the mean of the fitted column.
        unnamed: the number of features of a matrix without column names, else None.

    >>> from dssgnn.data.own.sheets import sheet_from_columns
    >>> people = sheet_from_columns({"age": [3.0, 5.0], "hair": ["red", "black"]})
    >>> encoding = FeatureEncoding.fit(people)
    >>> encoding.feature_names
    ('age', 'hair=black', 'hair=red')
    >>> encoding.transform(sheet_from_columns({"hair": ["red", "blue"], "age": [4, 7]})).x.tolist()
    [[4.0, 0.0, 1.0], [7.0, 0.0, 0.0]]
    """

    columns: tuple[ColumnEncoding, ...] = ()
    class_names: tuple[str, ...] | tuple[int, ...] = ()
    missing: Missing = "error"
    unnamed: int | None = None

    def __post_init__(self) -> None:
        if self.missing not in ("error", "mean"):
            raise InputError(f"missing is {self.missing!r:.40}, expected 'error' or 'mean'")
        if (self.unnamed is None) == (not self.columns):
            raise InputError("an encoding has either named columns or the number of features of a matrix")
        if self.unnamed is not None and not _is_integer(self.unnamed, minimum=1):
            raise InputError(f"unnamed is {self.unnamed!r:.40}, expected a number of features >= 1")
        check_text([column.name for column in self.columns], "the columns' names")
        if self.class_names and not all(_is_integer(name) for name in self.class_names):
            check_text(self.class_names, "class_names")
        if len(set(self.class_names)) < len(self.class_names):
            raise InputError("class_names holds a class twice, expected distinct ones")
        unfilled = [c.name for c in self.columns if c.categories is None and c.fill is None]
        if self.missing == "mean" and unfilled:
            raise InputError(
                f"column {one_line(unfilled[0])!r} has no fill, expected one with missing='mean'"
            )

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name a feature: the column's, or ``column=category``."""
        if self.unnamed is not None:
            return tuple(f"x[{i}]" for i in range(self.unnamed))
        return tuple(
            column.name if category is None else f"{column.name}={category}"
            for column in self.columns
            for category in column.categories or (None,)
        )

    @property
    def num_features(self) -> int:
        """The width F of ``x``."""
        return sum(column.width for column in self.columns) if self.unnamed is None else self.unnamed

    @classmethod
    def fit(
        cls,
        sheet: Sheet,
        names: Sequence[str] | None = None,
        *,
        class_names: tuple[str, ...] | tuple[int, ...] = (),
        missing: Missing = "error",
        categorical: Iterable[str] = (),
    ) -> "FeatureEncoding":
        """Learn the encoding of the columns ``names`` (all by default) from a sheet.

        Booleans and words are categories, numbers are numbers; ``categorical`` names columns of numbers
        that are categories too. In a CSV file a column is words only if no cell of it is a number.

        Raises:
            InputError: no columns, an empty column, numbers mixed with words, more than
                `dssgnn.data.own.columns.MAX_CATEGORIES` categories, a missing number under ``missing="error"``.
        """
        names, forced = sheet.names if names is None else names, set(categorical)
        if not names:
            raise InputError(
                f"{sheet.name} has no feature columns, expected at least one (a column of ones will do)"
            )
        if forced - set(names):
            unknown = ", ".join(sorted(one_line(name) for name in forced - set(names)))
            raise InputError(f"{sheet.name} has no feature column {unknown}, expected every categorical one")
        columns = tuple(
            ColumnEncoding.fit(sheet, name, missing=missing, categorical=name in forced) for name in names
        )
        return cls(columns, class_names, missing)

    def transform(self, sheet: Sheet, ignore: Iterable[str] = ()) -> Encoded:
        """Encode a sheet; ``ignore`` names columns that are no features and need no report.

        Raises:
            InputError: a fitted column is absent, a number is missing (``missing="error"``) or is none.
        """
        if self.unnamed is not None:
            raise InputError(
                f"{sheet.name} has named columns, but the encoding was fitted on a matrix of {self.unnamed} features"
            )
        known = {column.name for column in self.columns}
        absent = [column.name for column in self.columns if column.name not in sheet.names]
        if absent:
            raise InputError(
                f"{sheet.name} has no column {one_line(absent[0])!r}, expected every feature column of the fit"
            )
        x = np.zeros((len(sheet), self.num_features), dtype=np.float32)
        unseen, filled, start = [], [], 0
        for column in self.columns:
            unknown, missing = column.encode_into(x[:, start : start + column.width], sheet)
            unseen += [(column.name, unknown)] * (unknown > 0)
            filled += [(column.name, missing)] * (missing > 0)
            start += column.width
        extra = tuple(name for name in sheet.names if name not in known and name not in set(ignore))
        return Encoded(x, tuple(unseen), tuple(filled), extra)

    def encode_labels(self, labels: Any) -> tuple[NDArray[np.int64], int]:
        """Class numbers ``y [N]`` of an Arrow column of labels (-1: missing or unknown), and how many are unknown."""
        as_text = not self.class_names or isinstance(self.class_names[0], str)
        classes = pa.array(self.class_names, TEXT if as_text else pa.int64())
        if as_text:
            labels = labels.cast(TEXT)
        elif not pa.types.is_integer(labels.type):
            return np.full(len(labels), -1, dtype=np.int64), len(labels) - labels.null_count
        found = pc.index_in(labels, value_set=classes)
        y = pc.fill_null(found.cast(pa.int64()), -1).to_numpy()
        return y, found.null_count - labels.null_count

    def to_json(self) -> str:
        """The encoding as JSON text, for the model's folder."""
        return json.dumps({"schema": 1, **asdict(self)}, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "FeatureEncoding":
        """Read what `to_json` wrote; anything else is an `InputError`."""
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the feature encoding is not JSON: {one_line(error)}") from None
        fields = {"schema", "columns", "class_names", "missing", "unnamed"}
        if not isinstance(content, dict) or set(content) != fields or content.pop("schema") != 1:
            raise InputError(f"the feature encoding must be an object of schema 1 with {sorted(fields)}")
        columns, class_names = content["columns"], content["class_names"]
        if not isinstance(columns, list) or not isinstance(class_names, list):
            raise InputError("columns and class_names of the feature encoding must be lists")
        return cls(tuple(map(_column, columns)), tuple(class_names), content["missing"], content["unnamed"])


def _column(content: object) -> ColumnEncoding:
    if not isinstance(content, dict) or set(content) != {"name", "categories", "fill"}:
        raise InputError("each column of the feature encoding must have name, categories and fill")
    categories = content["categories"]
    if not isinstance(categories, list) and categories is not None:
        raise InputError(f"categories of column {one_line(content['name'])!r} must be a list or null")
    return ColumnEncoding(content["name"], None if categories is None else tuple(categories), content["fill"])


def _is_integer(value: object, minimum: int = -(2**63)) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value < 2**63
