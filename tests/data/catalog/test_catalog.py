"""The catalog: what it lists, what it loads, and with which counts."""

import json
import re

import pytest
import torch

import raw_files
from dssgnn.data.catalog import get_entry, load, loading, names, status, status_rows
from dssgnn.data.catalog.entries import ENTRIES
from dssgnn.data.catalog.entry import checksums
from dssgnn.data.catalog.locate import locate, read_file
from dssgnn.data.catalog.readers import READERS
from dssgnn.data.splits import SPLIT_RULES
from dssgnn.errors import InputError

PAPER = [
    "cora",
    "citeseer",
    "pubmed",
    "texas",
    "cornell",
    "wisconsin",
    "chameleon",
    "squirrel",
    "coauthor-cs",
    "roman-empire",
    "amazon-ratings",
    "minesweeper",
    "tolokers",
    "questions",
    "amazon-photo",
    "twitch",
    "corafull",
    "ogbn-arxiv",
]
# edge entries: as listed, in both directions, in both directions without self-loops
EDGES = {
    "cora": (10556, 10556, 10556),
    "citeseer": (9228, 9228, 9104),
    "texas": (325, 574, 558),
    "cornell": (298, 557, 554),
    "wisconsin": (515, 916, 900),
    "chameleon": (36101, 62792, 62742),
    "squirrel": (217073, 396846, 396706),
    "coauthor-cs": (163788, 163788, 163788),
    "minesweeper": (39402, 78804, 78804),
    "tolokers": (519000, 1038000, 1038000),
    "amazon-photo": (143662, 238162, 238162),
}
REGIONS = ("DE", "ENGB", "ES", "FR", "PTBR", "RU")
ABSENT = ("pubmed", "roman-empire", "amazon-ratings", "questions", "corafull", "ogbn-arxiv", "twitch-pyg")
# small files in the raw format of graphs that are not at hand: name -> role -> content
SMALL = {
    "pubmed": raw_files.planetoid(),
    "roman-empire": {"graph": raw_files.heterophilous()},
    "amazon-ratings": {"graph": raw_files.heterophilous()},
    "questions": {"graph": raw_files.heterophilous()},
    "corafull": {"graph": raw_files.gnn_benchmark()},
    "ogbn-arxiv": raw_files.arxiv(),
    "twitch-pyg": {"graph": raw_files.pyg_twitch()},
}


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        cache = tmp_path_factory.mktemp("cache")
        patch.setenv("DSSGNN_CACHE", str(cache))
        patch.setenv("DSSGNN_OFFLINE", "1")
        yield cache


def write_small(root, name, *, packed=False):
    """Write the small files of ``name`` in its layout."""
    variant = next(iter(ENTRIES[name].variants.values()))
    contents = {path: SMALL[name][role] for role, path in variant.sources[0].files.items()}
    if packed:
        contents = {f"{path}.gz": raw_files.gz(content) for path, content in contents.items()}
    raw_files.write(root, contents)


def test_the_paper_has_eighteen_graphs():
    assert names()[:18] == PAPER
    assert [name for name, entry in ENTRIES.items() if entry.in_paper] == PAPER
    assert names()[18:] == ["twitch-pyg", "minesweeper-demo"]


def test_entries_are_complete():
    for entry in ENTRIES.values():
        assert entry.split in SPLIT_RULES
        assert entry.licence
        assert entry.citation
        assert entry.url
        for variant in entry.variants.values():
            assert (variant.download is None) == (entry.factory is not None)
            for source in variant.sources:
                assert source.reader in READERS


def test_every_published_digest_belongs_to_a_file_and_is_well_formed():
    from dssgnn.data.catalog.entry import _all_checksums

    files = {
        path
        for e in ENTRIES.values()
        for v in e.variants.values()
        for s in v.sources
        for path in s.files.values()
    }
    assert set(_all_checksums()) <= files
    pattern = re.compile("sha256:[0-9a-f]{64}|git:[0-9a-f]{40}")
    assert all(pattern.fullmatch(digest) for digests in _all_checksums().values() for digest in digests)
    assert checksums("no/such/file") == ()


def test_preparations_are_those_of_the_papers_runs():
    short = {name: (e.preparation.features, e.preparation.edges, e.split) for name, e in ENTRIES.items()}
    for name in ("cora", "citeseer", "pubmed"):
        assert short[name] == ("row", "undirected", "class-balanced")
    for name in ("texas", "cornell", "wisconsin", "chameleon", "squirrel"):
        assert short[name] == ("row", "directed", "class-balanced")
    assert short["coauthor-cs"] == ("raw", "undirected", "class-balanced")
    for name in ("roman-empire", "amazon-ratings", "minesweeper", "tolokers", "questions"):
        assert short[name] == ("raw", "undirected", "public")


def test_status_of_an_empty_folder_lists_all_as_absent(tmp_path):
    rows = status_rows(tmp_path)
    assert json.loads(json.dumps(rows)) == rows
    assert [row["name"] for row in rows] == names()
    for row in rows[:-1]:
        assert not row["present"]
        assert row["reason"].startswith("missing ")
        assert str(tmp_path) in row["reason"]
        assert row["files"]
    assert rows[-1]["present"]
    pubmed = rows[2]
    assert (pubmed["nodes"], pubmed["edges"], pubmed["classes"], pubmed["features"]) == (19717, 88651, 3, 500)
    assert "ind.pubmed.allx" in pubmed["reason"]
    assert f"{tmp_path}/Planetoid/PubMed/raw" in pubmed["reason"]


def test_status_reports_a_file_that_is_not_the_published_one(tmp_path):
    write_small(tmp_path, "roman-empire")
    row = status("roman-empire", tmp_path)
    assert not row["present"]
    assert re.search(r"roman_empire\.npz: its sha256 is \w{64}, expected git:1f9bae5e", row["reason"])
    assert status("roman-empire", tmp_path, verify=False)["present"]


def test_status_says_where_nothing_could_be_verified(tmp_path):
    write_small(tmp_path, "ogbn-arxiv", packed=True)
    row = status("ogbn-arxiv", tmp_path)
    assert row["present"]
    assert row["reason"] == f"in {tmp_path}; no checksum is published for 8 of its files"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ABSENT)
def test_loaders_of_absent_graphs_on_small_files(tmp_path, name, packed):
    write_small(tmp_path, name, packed=packed)
    data = load(name, tmp_path, verify=False, features="raw")
    assert data.x.dtype == torch.float32
    assert data.is_undirected()
    expected = {"pubmed": (10, 7), "corafull": (4, 6), "ogbn-arxiv": (4, 6), "twitch-pyg": (3, 5)}.get(
        name, (5, 6)
    )
    assert (data.num_nodes, data.num_edges) == expected
    again = load(name, tmp_path, verify=False, features="raw", cache=False)
    for key in data.keys():  # noqa: SIM118
        assert torch.equal(data[key], again[key])


@pytest.mark.parametrize("name", ABSENT)
def test_small_files_are_not_taken_for_the_published_ones(tmp_path, name):
    write_small(tmp_path, name)
    with pytest.raises(InputError, match=r"its sha256 is|expected the published"):
        load(name, tmp_path)


def test_an_unverified_graph_never_answers_a_verified_load(tmp_path):
    write_small(tmp_path, "corafull")
    load("corafull", tmp_path, verify=False)
    with pytest.raises(InputError, match="expected the published"):
        load("corafull", tmp_path)


def test_a_changed_file_is_read_anew(tmp_path):
    write_small(tmp_path, "corafull")
    assert load("corafull", tmp_path, verify=False).y.tolist() == [0, 1, 1, 0]
    changed = raw_files.gnn_benchmark(labels=torch.tensor([1, 1, 1, 0]).numpy())
    raw_files.write(tmp_path, {"CitationFull/cora/raw/cora.npz": changed})
    assert load("corafull", tmp_path, verify=False).y.tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: load("coar"), "no dataset 'coar' in the catalog; did you mean cora"),
        (
            lambda: load("cora", normalise="row"),
            "unknown option 'normalise' for cora, expected features, edges",
        ),
        (lambda: load("cora", features="l2"), "features must be one of raw, row, pyg, got 'l2'"),
        (lambda: load("cora", region="DE"), "cora has the regions: none; got region='DE'"),
        (lambda: load("twitch", region="IT"), "twitch has the regions: DE, ENGB, ES, FR, PTBR, RU; got"),
        (lambda: load("minesweeper-demo", region="DE"), "minesweeper-demo has no regions"),
    ],
)
def test_wrong_requests(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_the_demo_graph_needs_no_file():
    data = load("minesweeper-demo", split=0)
    statistics = get_entry("minesweeper-demo").variants[""].statistics
    assert (data.num_nodes, data.num_edges, int(data.y.max()) + 1, data.num_features) == statistics
    assert (int(data.train_mask.sum()), int(data.val_mask.sum()), int(data.test_mask.sum())) == (
        2048,
        1024,
        1024,
    )


# Real graphs


@pytest.fixture(scope="module")
def graph(data_root):
    def get(name, **options):
        return load(name, data_root, **options)

    return get


def count(data):
    return data.num_nodes, data.num_edges, int(data.y.max()) + 1, data.num_features


@pytest.mark.parametrize("name", EDGES)
def test_present_graphs_have_exactly_the_published_counts(graph, name):
    listed, both, without_loops = EDGES[name]
    data = graph(name, edges="undirected")
    assert count(data) == get_entry(name).variants[""].statistics
    assert data.num_edges == both
    del data
    assert graph(name, edges="directed").num_edges == listed
    assert graph(name, edges="undirected", self_loops="drop").num_edges == without_loops


@pytest.mark.parametrize("region", REGIONS)
def test_twitch_has_exactly_the_published_counts(graph, region):
    assert count(graph("twitch", region=region)) == get_entry("twitch").variants[region].statistics


def test_twitch_defaults_and_aliases(graph):
    assert graph("twitch").num_nodes == 9498
    assert graph("twitch", region="pt").num_nodes == graph("twitch", region="PTBR").num_nodes == 1912
    assert graph("twitch", edges="directed").num_edges == 153138


def test_the_default_is_the_papers_preparation(graph):
    cora, texas, tolokers = graph("cora"), graph("texas"), graph("tolokers")
    torch.testing.assert_close(cora.x.sum(dim=1), torch.ones(2708))
    torch.testing.assert_close(texas.x.sum(dim=1), (texas.x.sum(dim=1) > 0).float())
    assert (cora.num_edges, texas.num_edges, tolokers.num_edges) == (10556, 325, 1038000)
    assert graph("cora", self_loops="add").num_edges == 10556 + 2708
    assert graph("texas", features="raw").x.unique().tolist() == [0, 1]


def test_citeseer_keeps_its_isolated_test_nodes(graph):
    data = graph("citeseer")
    tested = data.test_masks[:, 0].nonzero().flatten()
    between = torch.arange(int(tested.min()), int(tested.max()) + 1)
    lost = between[~torch.isin(between, tested)]
    assert len(lost) == 15
    assert data.x[lost].abs().sum() == 0
    assert data.y[lost].tolist() == [0] * 15


def test_cornell_is_not_texas(graph):
    assert not torch.equal(graph("cornell").x, graph("texas").x)
    assert torch.bincount(graph("cornell").y).tolist() == [38, 16, 30, 82, 17]


@pytest.mark.parametrize("name", ["chameleon", "squirrel"])
def test_text_and_npz_releases_agree(data_root, name):
    text, arrays = get_entry(name).variants[""].sources
    read = {}
    for source in (text, arrays):
        found = locate([source], [data_root])
        read[source.reader] = READERS[source.reader](
            {r: read_file(p) for r, p in found.paths.items()}
        ).to_data()
    one, two = read["geom-gcn"], read["heterophilous"]
    for key in one.keys():  # noqa: SIM118
        assert torch.equal(one[key], two[key])


def test_split_puts_masks_on_the_graph(graph):
    data = graph("texas", split=3)
    assert (int(data.train_mask.sum()), int(data.val_mask.sum()), int(data.test_mask.sum())) == (85, 37, 61)


def test_the_second_load_reads_no_raw_format(graph, monkeypatch):
    first = graph("coauthor-cs")
    shape, total = first.x.shape, float(first.x.sum())
    del first
    monkeypatch.setattr(loading, "READERS", {})
    second = graph("coauthor-cs")
    assert (second.x.shape, float(second.x.sum())) == (shape, total)


def test_all_present_files_are_the_published_ones_and_nothing_is_written_beside_them(data_root):
    before = sorted((str(p), p.stat().st_mtime_ns) for p in data_root.rglob("*"))
    rows = {row["name"]: row for row in status_rows(data_root)}
    for name in [*EDGES, "twitch"]:
        assert rows[name]["present"], rows[name]["reason"]
        assert rows[name]["reason"] == f"in {data_root}"
    assert all(state["present"] for state in rows["twitch"]["regions"].values())
    load("texas", data_root, cache=False)
    assert sorted((str(p), p.stat().st_mtime_ns) for p in data_root.rglob("*")) == before
