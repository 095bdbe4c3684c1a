"""The cache returns what was stored, or nothing; damage is never believed."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import raw_files
from dssgnn.data.catalog.cache import cache_key, cached, read_cache, write_cache
from dssgnn.data.catalog.readers import READERS
from dssgnn.data.catalog.readers.base import CSR

CASES = {
    "planetoid": raw_files.planetoid(),  # sparse features, masks
    "heterophilous": {"graph": raw_files.heterophilous()},  # dense features, masks
    "ogb-arxiv": raw_files.arxiv(),  # further arrays
    "gnn-benchmark": {"graph": raw_files.gnn_benchmark()},  # no masks
}
KEY = cache_key(files={"a": "1"})


def graph_of(reader):
    return READERS[reader](raw_files.raw(CASES[reader]))


def assert_equal(a, b):
    assert isinstance(a.features, CSR) == isinstance(b.features, CSR)
    one, two = a.to_data(), b.to_data()
    assert sorted(one.keys()) == sorted(two.keys())
    for name in one.keys():  # noqa: SIM118
        assert one[name].dtype == two[name].dtype
        np.testing.assert_array_equal(one[name], two[name])


@pytest.mark.parametrize("reader", CASES)
def test_round_trip(tmp_path, reader):
    graph = graph_of(reader)
    path = tmp_path / "deep" / "g.safetensors"
    write_cache(path, KEY, graph)
    assert_equal(read_cache(path, KEY), graph)
    assert os.listdir(path.parent) == [path.name]  # no temporary file is left


def test_the_key_depends_on_every_part():
    keys = {cache_key(files={"a": "1"}, version=v, reader=r) for v in (1, 2) for r in ("x", "y")}
    assert len(keys | {KEY, cache_key(files={"a": "2"})}) == 6
    assert cache_key(a=1, b=2) == cache_key(b=2, a=1)


def test_built_once(tmp_path):
    calls = []

    def build():
        calls.append(1)
        return graph_of("planetoid")

    path = tmp_path / "g.safetensors"
    first, second = cached(path, KEY, build), cached(path, KEY, build)
    assert calls == [1]
    assert_equal(first, second)
    assert read_cache(path, "another key") is None
    cached(path, "another key", build)
    assert calls == [1, 1]


def test_a_damaged_cache_is_rebuilt(tmp_path):
    path = tmp_path / "g.safetensors"
    graph = graph_of("planetoid")
    write_cache(path, KEY, graph)
    whole = path.read_bytes()
    for damaged in (
        b"",
        b"garbage",
        whole[:-1],
        whole[: len(whole) // 2],
        whole[:-1] + bytes([whole[-1] ^ 1]),
    ):
        path.write_bytes(damaged)
        assert read_cache(path, KEY) is None
        assert_equal(cached(path, KEY, lambda: graph), graph)
        assert_equal(read_cache(path, KEY), graph)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.floats(0, 1, exclude_max=True), value=st.integers(0, 255))
def test_any_changed_byte_is_noticed(tmp_path, position, value):
    path = tmp_path / "g.safetensors"
    graph = graph_of("gnn-benchmark")
    write_cache(path, KEY, graph)
    content = bytearray(path.read_bytes())
    content[int(position * len(content))] = value
    path.write_bytes(bytes(content))
    stored = read_cache(path, KEY)
    if stored is not None:  # the byte was already so, or is a blank of the header
        assert_equal(stored, graph)


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("dssgnn.files.os.replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write_cache(tmp_path / "g.safetensors", KEY, graph_of("planetoid"))
    assert os.listdir(tmp_path) == []


def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="read but not cached"):
        graph = cached(tmp_path / "file" / "g.safetensors", KEY, lambda: graph_of("planetoid"))
    assert graph.labels.shape == (10,)
