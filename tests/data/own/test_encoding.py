"""Encodings: known matrices, the memory of categories, and the JSON round trip."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dssgnn.data.own.columns import ColumnEncoding, class_names_of
from dssgnn.data.own.encoding import FeatureEncoding
from dssgnn.data.own.sheets import Sheet, sheet_from_columns
from dssgnn.errors import InputError

PEOPLE = sheet_from_columns(
    {"age": [3, 5, None, 4], "hair": ["red", "black", "red", None], "tall": [True, False, True, None]},
    "people",
)


def text_sheet(**columns: list[str]) -> Sheet:
    """A sheet as a CSV file gives it: every cell text."""
    table = pa.table({name: pa.array(cells, pa.large_string()) for name, cells in columns.items()})
    return Sheet("t.csv", table, typed=False, locate=lambda row: f"line {row + 2}")


def test_known_matrix_with_the_mean_for_gaps() -> None:
    encoding = FeatureEncoding.fit(PEOPLE, missing="mean")
    encoded = encoding.transform(PEOPLE)
    assert encoding.feature_names == ("age", "hair=black", "hair=red", "tall=false", "tall=true")
    expected = [[3, 0, 1, 0, 1], [5, 1, 0, 1, 0], [4, 0, 1, 0, 1], [4, 0, 0, 0, 0]]
    np.testing.assert_array_equal(encoded.x, np.array(expected, dtype=np.float32))
    assert encoded.x.dtype == np.float32
    assert encoded.filled == (("age", 1), ("hair", 1), ("tall", 1))
    assert encoded.unseen == ()


def test_a_gap_is_an_error_by_default() -> None:
    with pytest.raises(InputError, match="people, row 2: column 'age' is missing"):
        FeatureEncoding.fit(PEOPLE)
    fitted = FeatureEncoding.fit(sheet_from_columns({"age": [1.0]}))
    with pytest.raises(InputError, match="people, row 2: column 'age' is missing"):
        fitted.transform(PEOPLE)


def test_the_mean_is_that_of_the_fit() -> None:
    encoding = FeatureEncoding.fit(sheet_from_columns({"f": [1.0, 2.0, 6.0]}), missing="mean")
    assert encoding.transform(sheet_from_columns({"f": [None, 100.0]})).x.tolist() == [[3.0], [100.0]]


def test_new_graph_in_the_old_encoding() -> None:
    encoding = FeatureEncoding.fit(sheet_from_columns({"age": [1, 2], "hair": ["red", "black"]}))
    new = sheet_from_columns({"shoe": [40, 41, 42], "hair": ["blue", "red", "green"], "age": [7, 8, 9]})
    encoded = encoding.transform(new)
    assert encoded.x.tolist() == [[7, 0, 0], [8, 0, 1], [9, 0, 0]]
    assert encoded.unseen == (("hair", 2),)
    assert encoded.ignored == ("shoe",)
    with pytest.raises(InputError, match="no column 'hair'"):
        encoding.transform(sheet_from_columns({"age": [1]}))


def test_cells_of_csv_are_judged_by_their_look() -> None:
    sheet = text_sheet(
        a=["1", " 2.5 ", "+1e1"], b=["x", "y", "x"], c=["True", "FALSE", "true"], d=["1", "2", "1"]
    )
    encoding = FeatureEncoding.fit(sheet, categorical=["d"])
    assert encoding.feature_names == ("a", "b=x", "b=y", "c=false", "c=true", "d=1", "d=2")
    expected = [[1, 1, 0, 0, 1, 1, 0], [2.5, 0, 1, 1, 0, 0, 1], [10, 1, 0, 0, 1, 1, 0]]
    np.testing.assert_array_equal(encoding.transform(sheet).x, np.array(expected, dtype=np.float32))


def test_csv_and_typed_sheets_share_an_encoding() -> None:
    typed = sheet_from_columns({"n": [1, 2], "b": [True, False], "w": ["u", "v"]})
    text = text_sheet(n=["1", "2"], b=["True", "False"], w=["u", "v"])
    for fitted, other in ((typed, text), (text, typed)):
        encoding = FeatureEncoding.fit(fitted)
        np.testing.assert_array_equal(encoding.transform(other).x, encoding.transform(fitted).x)
        assert encoding.transform(other).unseen == ()


def test_numbers_mixed_with_words_are_refused_unless_named() -> None:
    sheet = text_sheet(a=["x", "7", "y"])
    with pytest.raises(InputError, match=r"line 2: column 'a' is 'x', but '7' in line 3"):
        FeatureEncoding.fit(sheet)
    assert FeatureEncoding.fit(sheet, categorical=["a"]).feature_names == ("a=7", "a=x", "a=y")
    with pytest.raises(InputError, match="no feature column zip"):
        FeatureEncoding.fit(sheet, categorical=["zip"])


def test_a_word_where_the_fit_had_numbers_is_an_error() -> None:
    encoding = FeatureEncoding.fit(text_sheet(a=["1", "2"]))
    with pytest.raises(InputError, match="line 3: column 'a' is 'two', expected a number"):
        encoding.transform(text_sheet(a=["1", "two", "three"]))


@pytest.mark.parametrize(
    ("cells", "classes", "y"),
    [
        (["10", "9", "", "9"], (9, 10), [1, 0, -1, 0]),
        (["b", "a", "NA", "b"], ("a", "b"), [1, 0, -1, 1]),
        (["1.0", "0.0", "", "0.0"], (0, 1), [1, 0, -1, 0]),
        (["01", "1", "", "1"], ("01", "1"), [0, 1, -1, 1]),
        (["", "nan", "", ""], (), [-1, -1, -1, -1]),
        (["-1", "-2", "5", "5"], (-2, -1, 5), [1, 0, 2, 2]),
    ],
)
def test_labels(cells: list[str], classes: tuple[object, ...], y: list[int]) -> None:
    labels = text_sheet(label=cells).labels("label")
    assert class_names_of(labels) == classes
    encoding = FeatureEncoding(unnamed=1, class_names=class_names_of(labels))
    numbers, unseen = encoding.encode_labels(labels)
    assert numbers.tolist() == y
    assert numbers.dtype == np.int64
    assert unseen == 0


def test_unknown_classes_are_counted() -> None:
    words = FeatureEncoding(unnamed=1, class_names=("a", "b"))
    assert words.encode_labels(pa.array(["b", "c", None], pa.large_string()))[0].tolist() == [1, -1, -1]
    assert words.encode_labels(pa.array([1, None]))[1] == 1
    numbers = FeatureEncoding(unnamed=1, class_names=(3, 5))
    y, unseen = numbers.encode_labels(pa.array([5, 4, None]))
    assert (y.tolist(), unseen) == ([1, -1, -1], 1)
    y, unseen = numbers.encode_labels(pa.array(["5", None], pa.large_string()))
    assert (y.tolist(), unseen) == ([-1, -1], 1)


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5)
numeric = st.builds(ColumnEncoding, names, st.none(), st.floats(-1e30, 1e30))
categoric = st.builds(
    ColumnEncoding, names, st.lists(names, min_size=1, max_size=4, unique=True).map(tuple), st.none()
)
encodings = st.builds(
    FeatureEncoding,
    st.lists(numeric | categoric, min_size=1, max_size=4, unique_by=lambda c: c.name).map(tuple),
    st.lists(names, max_size=3, unique=True).map(tuple)
    | st.lists(st.integers(-9, 9), unique=True).map(tuple),
    st.sampled_from(["error", "mean"]),
) | st.builds(FeatureEncoding, unnamed=st.integers(1, 10**6))


@settings(max_examples=80, deadline=None)
@given(encodings)
def test_json_round_trip(encoding: FeatureEncoding) -> None:
    assert FeatureEncoding.from_json(encoding.to_json()) == encoding


VALID = json.loads(FeatureEncoding.fit(PEOPLE, missing="mean", class_names=("a",)).to_json())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        '{"schema": 1}',
        json.dumps({**VALID, "schema": 2}),
        json.dumps({**VALID, "more": 1}),
        json.dumps({**VALID, "columns": {}}),
        json.dumps({**VALID, "columns": []}),
        json.dumps({**VALID, "columns": [1]}),
        json.dumps({**VALID, "columns": [{"name": "f"}]}),
        json.dumps({**VALID, "columns": [{"name": 1, "categories": None, "fill": 0.0}]}),
        json.dumps({**VALID, "columns": [{"name": "f", "categories": "ab", "fill": 0.0}]}),
        json.dumps({**VALID, "columns": [{"name": "f", "categories": [1], "fill": 0.0}]}),
        json.dumps({**VALID, "columns": [{"name": "f", "categories": [["a"]], "fill": 0.0}]}),
        json.dumps({**VALID, "columns": [{"name": "f", "categories": ["a", "a"], "fill": 0.0}]}),
        json.dumps({**VALID, "columns": [{"name": "f", "categories": [], "fill": 0.0}]}),
        json.dumps({**VALID, "columns": [{"name": "f", "categories": ["\ud800"], "fill": None}]}),
        json.dumps({**VALID, "columns": [{"name": "f", "categories": None, "fill": None}]}),
        json.dumps({**VALID, "columns": [{"name": "f", "categories": None, "fill": "0"}]}),
        json.dumps({**VALID, "columns": [{"name": "f", "categories": None, "fill": float("nan")}]}),
        json.dumps({**VALID, "columns": [{"name": "f", "categories": None, "fill": 1e300}]}),
        json.dumps({**VALID, "columns": [VALID["columns"][0]] * 2}),
        json.dumps({**VALID, "class_names": "ab"}),
        json.dumps({**VALID, "class_names": [1, "a"]}),
        json.dumps({**VALID, "class_names": ["a", "a"]}),
        json.dumps({**VALID, "class_names": [[1], [1]]}),
        json.dumps({**VALID, "class_names": [True]}),
        json.dumps({**VALID, "class_names": [2**63]}),
        json.dumps({**VALID, "missing": "median"}),
        json.dumps({**VALID, "missing": ["error"]}),
        json.dumps({**VALID, "unnamed": 3}),
        json.dumps({**VALID, "columns": [], "unnamed": 0}),
        json.dumps({**VALID, "columns": [], "unnamed": True}),
        json.dumps({**VALID, "columns": [], "unnamed": 2.0}),
    ],
)
def test_bad_json(text: str) -> None:
    with pytest.raises(InputError) as caught:
        FeatureEncoding.from_json(text)
    assert "\n" not in str(caught.value)
