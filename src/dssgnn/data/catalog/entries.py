"""The 18 graphs of the paper (appendix "Dataset Statistics and Licenses") and a few besides, as plain data.

Published statistics are nodes, edges, classes and features; edges count both directions, and self-loops
where the entry's preparation keeps them. Preparations are those of the paper's calibration runs, or of
its out-of-distribution and shift runs for graphs that only these use. The identity that those runs add
to the adjacency is left to the operator (`GraphOperator(self_loops=True)`) or to ``self_loops="add"``.
"""

from dssgnn.data.catalog.download import ArchiveDownload, Download, FileDownload, PyGDownload
from dssgnn.data.catalog.entry import Entry, Statistics, Variant
from dssgnn.data.catalog.locate import Source
from dssgnn.data.catalog.readers.planetoid import PLANETOID_PARTS
from dssgnn.data.prepare import Preparation
from dssgnn.data.synthetic import minesweeper

__all__ = ["ENTRIES"]

_GITHUB = "github.com"
_RAW_GITHUB = "raw.githubusercontent.com"
# PyG's own address for WebKB serves the release in which Cornell repeats Texas; this one is corrected.
_GEOM_GCN = f"https://{_RAW_GITHUB}/bingzhewei/geom-gcn/1124af17444d7fd09686504ec46caa3f39f4f632"
_MUSAE = f"https://{_RAW_GITHUB}/benedekrozemberczki/MUSAE/5f901232957b6c9985d750aac48cda39a4b24285/input"

_YANG = "Yang, Cohen and Salakhutdinov: Revisiting semi-supervised learning with graph embeddings. ICML 2016"
_PEI = "Pei, Wei, Chang, Lei and Yang: Geom-GCN: geometric graph convolutional networks. ICLR 2020"
_ROZEMBERCZKI = (
    "Rozemberczki, Allen and Sarkar: Multi-scale attributed node embedding. J. Complex Networks 9(2), 2021"
)
_SHCHUR = "Shchur, Mumme, Bojchevski and Günnemann: Pitfalls of graph neural network evaluation. arXiv 1811.05868, 2018"
_PLATONOV = (
    "Platonov, Kuznedelev, Diskin, Babenko and Prokhorenkova: A critical look at the evaluation of GNNs under "
    "heterophily. ICLR 2023"
)
_BOJCHEVSKI = (
    "Bojchevski and Günnemann: Deep Gaussian embedding of graphs: unsupervised inductive learning via ranking. "
    "ICLR 2018"
)
_HU = (
    "Hu, Fey, Zitnik, Dong, Ren, Liu, Catasta and Leskovec: Open graph benchmark: datasets for machine learning on "
    "graphs. NeurIPS 2020"
)


def _planetoid(name: str, title: str, folder: str, *size: int) -> Entry:
    paths = {part: f"Planetoid/{folder}/raw/ind.{name}.{part}" for part in PLANETOID_PARTS}
    fetch = PyGDownload("Planetoid", {"name": folder}, _GITHUB)
    return Entry(
        name,
        title,
        {"": Variant(Statistics(*size), (Source("planetoid", paths),), fetch)},
        "https://github.com/kimiyoung/planetoid",
        "MIT",
        _YANG,
        Preparation(features="row"),
        "class-balanced",
    )


def _geom_gcn(
    name: str, title: str, fetch: Download, folder: str, *size: int, also: str | None = None
) -> Entry:
    paths = {"nodes": f"{folder}/out1_node_feature_label.txt", "edges": f"{folder}/out1_graph_edges.txt"}
    paths |= {f"split_{i}": f"{folder}/{name}_split_0.6_0.2_{i}.npz" for i in range(10)}
    sources = [Source("geom-gcn", paths)]
    if also is not None:
        sources.append(Source("heterophilous", {"graph": also}))
    return Entry(
        name,
        title,
        {"": Variant(Statistics(*size), tuple(sources), fetch)},
        "https://github.com/bingzhewei/geom-gcn",
        "not stated",
        _PEI if also is None else f"{_ROZEMBERCZKI}; {_PEI}",
        Preparation(features="row", edges="directed"),
        "class-balanced",
        note={"cornell": "the corrected release; the first one repeated Texas"}.get(
            name, "the original graph, with the duplicate nodes Platonov et al. criticise" if also else ""
        ),
    )


def _webkb(name: str, title: str, *size: int) -> Entry:
    fetch = PyGDownload("WebKB", {"name": title}, _RAW_GITHUB, {"url": _GEOM_GCN})
    return _geom_gcn(name, title, fetch, f"WebKB/{name}/raw", *size)


def _wikipedia(name: str, title: str, *size: int) -> Entry:
    fetch = PyGDownload("WikipediaNetwork", {"name": name, "geom_gcn_preprocess": True}, _RAW_GITHUB)
    folder = f"WikipediaNetwork/{name}/geom_gcn/raw"
    return _geom_gcn(name, title, fetch, folder, *size, also=f"wikipedia_npz/{name}_directed.npz")


def _benchmark(
    name: str, title: str, dataset: str, paths: tuple[str, ...], citation: str, url: str, features: str, split: str,
    *size: int,
) -> Entry:  # fmt: skip
    key = {"coauthor-cs": "CS", "amazon-photo": "Photo", "corafull": "Cora"}[name]
    sources = tuple(Source("gnn-benchmark", {"graph": f"{dataset}/{path}"}) for path in paths)
    return Entry(
        name,
        title,
        {"": Variant(Statistics(*size), sources, PyGDownload(dataset, {"name": key}, _GITHUB))},
        url,
        "MIT",
        citation,
        Preparation(features=features, self_loops="drop"),
        split,
        note="features are the 0/1 indicator, as PyG reads them",
    )


def _heterophilous(name: str, title: str, *size: int) -> Entry:
    stem = name.replace("-", "_")
    path = f"HeterophilousGraphDataset/{stem}/raw/{stem}.npz"
    fetch = PyGDownload("HeterophilousGraphDataset", {"name": title}, _GITHUB)
    return Entry(
        name,
        title,
        {"": Variant(Statistics(*size), (Source("heterophilous", {"graph": path}),), fetch)},
        "https://github.com/yandex-research/heterophilous-graphs",
        "MIT",
        _PLATONOV,
        Preparation(),
        "public",
    )


def _twitch() -> Entry:
    sizes = {
        "DE": (9498, 306276), "ENGB": (7126, 70648), "ES": (4648, 118764),
        "FR": (6549, 225332), "PTBR": (1912, 62598), "RU": (4385, 74608),
    }  # fmt: skip
    variants = {}
    for region, (nodes, edges) in sizes.items():
        names = {
            "edges": f"edges/{region}_edges.csv",
            "features": f"features/{region}.json",
            "target": f"target/{region}_target.csv",
        }
        paths = {role: f"twitch_musae/{name}" for role, name in names.items()}
        fetch = FileDownload(_RAW_GITHUB, {paths[role]: f"{_MUSAE}/{name}" for role, name in names.items()})
        variants[region] = Variant(Statistics(nodes, edges, 2, 3170), (Source("musae", paths),), fetch)
    return Entry(
        "twitch",
        "Twitch",
        variants,
        "https://github.com/benedekrozemberczki/MUSAE",
        "GPL-3.0",
        _ROZEMBERCZKI,
        Preparation(features="row"),
        "random",
        note="the MUSAE files, 3170 columns; never mix its numbers with those of twitch-pyg",
        aliases={"EN": "ENGB", "PT": "PTBR"},
    )


def _twitch_pyg() -> Entry:
    sizes = {
        "DE": (9498, 315774), "EN": (7126, 77774), "ES": (4648, 123412),
        "FR": (6551, 231883), "PT": (1912, 64510), "RU": (4385, 78993),
    }  # fmt: skip
    return Entry(
        "twitch-pyg",
        "Twitch (PyG)",
        {
            region: Variant(
                Statistics(nodes, edges, 2, 128),
                (Source("pyg-twitch", {"graph": f"Twitch/{region}/raw/{region}.npz"}),),
                PyGDownload("Twitch", {"name": region}, "graphmining.ai"),
            )
            for region, (nodes, edges) in sizes.items()
        },
        "https://graphmining.ai/datasets/ptg/twitch",
        "GPL-3.0",
        _ROZEMBERCZKI,
        Preparation(features="pyg"),
        "random",
        in_paper=False,
        note="128 columns, self-loops listed; never mix its numbers with those of twitch",
        aliases={"ENGB": "EN", "PTBR": "PT"},
    )


def _arxiv() -> Entry:
    raw = ("edge", "node-feat", "node-label", "node_year", "num-node-list")
    names = {role: f"raw/{role}.csv" for role in raw}
    names |= {role: f"split/time/{role}.csv" for role in ("train", "valid", "test")}
    paths = {role: f"ogbn_arxiv/{name}" for role, name in names.items()}
    fetch = ArchiveDownload(
        "snap.stanford.edu",
        "https://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip",
        {f"{paths[role]}.gz": f"arxiv/{name}.gz" for role, name in names.items()},
    )
    return Entry(
        "ogbn-arxiv",
        "ogbn-arxiv",
        {"": Variant(Statistics(169343, 2315598, 40, 128), (Source("ogb-arxiv", paths),), fetch)},
        "https://github.com/snap-stanford/ogb",
        "MIT",
        _HU,
        Preparation(),
        "public",
        note="year holds the publication year of every node",
    )


def _demo() -> Entry:
    return Entry(
        "minesweeper-demo",
        "Minesweeper (demo)",
        {"": Variant(Statistics(4096, 32004, 2, 7))},
        "embedded",
        "MIT",
        f"after {_PLATONOV}",
        Preparation(),
        "public",
        in_paper=False,
        note="synthetic, made on the fly",
        factory=lambda: minesweeper(64, 64),
    )


_SHCHUR_URL = "https://github.com/shchur/gnn-benchmark"
_ALL = (
    _planetoid("cora", "Cora", "Cora", 2708, 10556, 7, 1433),
    _planetoid("citeseer", "Citeseer", "CiteSeer", 3327, 9228, 6, 3703),
    _planetoid("pubmed", "PubMed", "PubMed", 19717, 88651, 3, 500),
    _webkb("texas", "Texas", 183, 574, 5, 1703),
    _webkb("cornell", "Cornell", 183, 557, 5, 1703),
    _webkb("wisconsin", "Wisconsin", 251, 916, 5, 1703),
    _wikipedia("chameleon", "Chameleon", 2277, 62792, 5, 2325),
    _wikipedia("squirrel", "Squirrel", 5201, 396846, 5, 2089),
    _benchmark(
        "coauthor-cs", "Coauthor-CS", "Coauthor", ("CS/raw/ms_academic_cs.npz",), _SHCHUR, _SHCHUR_URL,
        "raw", "class-balanced", 18333, 163788, 15, 6805,
    ),
    _heterophilous("roman-empire", "Roman-Empire", 22662, 65854, 18, 300),
    _heterophilous("amazon-ratings", "Amazon-Ratings", 24492, 186100, 5, 300),
    _heterophilous("minesweeper", "Minesweeper", 10000, 78804, 2, 7),
    _heterophilous("tolokers", "Tolokers", 11758, 1038000, 2, 10),
    _heterophilous("questions", "Questions", 48921, 307080, 2, 301),
    _benchmark(
        "amazon-photo", "Amazon-Photo", "Amazon", ("Photo/raw/amazon_electronics_photo.npz",), _SHCHUR, _SHCHUR_URL,
        "row", "random", 7650, 238162, 8, 745,
    ),
    _twitch(),
    _benchmark(
        "corafull", "CoraFull", "CitationFull", ("cora/raw/cora.npz", "cora/raw/cora_full.npz"), _BOJCHEVSKI,
        "https://github.com/abojchevski/graph2gauss", "raw", "stratified", 19793, 126842, 70, 8710,
    ),
    _arxiv(),
    _twitch_pyg(),
    _demo(),
)  # fmt: skip

ENTRIES: dict[str, Entry] = {entry.name: entry for entry in _ALL}
