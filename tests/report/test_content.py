"""What the page will say, from folders whose answer is known."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dssgnn.errors import InputError
from dssgnn.report import report_content, write_report
from report.folders import change_json, write_bare_folder, write_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("model"))


def test_counts_and_values_follow_the_table_of_predictions(folder: Path) -> None:
    content = report_content(folder)
    frame = pd.read_parquet(folder / "predictions.parquet")
    test = frame[(frame["split"] == "test") & frame["label"].notna()]
    right = test["label"] == test["prediction"]
    n = len(test)
    assert content["metrics"]["n"] == n
    assert content["metrics"]["accuracy"]["value"] == pytest.approx(right.mean(), abs=1e-4)
    assert sum(b["n"] for b in content["reliability"]["bins"]) == n
    assert sum(content["confidence"]["right"]) == sum(content["energy"]["right"]) == right.sum()
    assert sum(content["confidence"]["wrong"]) == sum(content["energy"]["wrong"]) == n - right.sum()
    for rows in content["strata"].values():
        assert sum(row["n"] for row in rows["rows"]) == n
        weighted = sum(row["n"] * row["accuracy"] for row in rows["rows"]) / n
        assert weighted == pytest.approx(right.mean(), abs=1e-4)
    for curve in content["risk"]["curves"]:
        assert curve["risk"][-1] == pytest.approx(1 - right.mean(), abs=1e-4)
    shares = test["label"].value_counts(normalize=True)
    guess = content["metrics"]["guess"]
    assert guess["class"] == shares.index[0]
    assert guess["accuracy"] == pytest.approx(shares.iloc[0], abs=1e-4)
    assert guess["brier"] == pytest.approx(1 - (shares**2).sum(), abs=1e-4)
    assert guess["nll"] == pytest.approx(-(shares * np.log(shares)).sum(), abs=1e-4)


def test_responses_shares_and_history(folder: Path) -> None:
    content = report_content(folder)
    layer = content["filters"]["layers"][0]  # low 0.5 - 0.4 x + 0.1 (2 x^2 - 1) at x = -1, 0, 1
    assert [layer["low"][k] for k in (0, 40, 80)] == pytest.approx([1.0, 0.4, 0.2])
    assert [layer["high"][k] for k in (0, 40, 80)] == pytest.approx([-0.2, 0.3, 0.8])
    assert layer["together"][0] == pytest.approx(0.7 * 1.0 - 0.3 * 0.2)
    assert content["orders"]["share"] == pytest.approx([6 / 7, 1 / 7], abs=1e-4)
    assert list(content["history"]["series"]) == ["loss", "val_accuracy", "val_brier", "val_nll", "val_ece"]
    assert content["history"]["best_epoch"] == 60


def test_the_table_holds_the_worst_of_the_nodes_not_trained_on(folder: Path) -> None:
    table = report_content(folder)["table"]
    frame = pd.read_parquet(folder / "predictions.parquet")
    test = frame[frame["split"] == "test"]
    ids = np.array(table["nodes"]["id"])[table["row"]]
    worst = set(test.nlargest(table["counts"]["ood"], "ood_score")["node"].astype(str))
    assert {name for name, kinds in zip(ids, table["kinds"], strict=True) if "ood" in kinds} == worst
    assert set(ids) <= set(test["node"].astype(str))
    assert len(ids) == len(set(ids)) == len(table["near"]) == len(table["top"])
    known = [loss for loss, kinds in zip(table["loss"], table["kinds"], strict=True) if "hard" in kinds]
    assert min(known) >= max(
        [loss for loss, k in zip(table["loss"], table["kinds"], strict=True) if loss and "hard" not in k],
        default=0,
    )
    for row, near in zip(table["row"], table["near"], strict=True):
        assert near["nodes"][0] == row
        assert near["nodes"] == [n for n in near["nodes"] if 0 <= n < len(table["nodes"]["id"])]


def test_the_same_folder_gives_the_same_page(folder: Path) -> None:
    assert report_content(folder) == report_content(folder)
    assert report_content(folder) != report_content(folder, seed=1)


def test_outliers_are_compared(folder: Path) -> None:
    far = report_content(folder, {"far": np.full(30, 50.0), "near": np.array([-1.0, -2.0])})["outliers"]
    assert [series["name"] for series in far["series"]] == ["test nodes", "far", "near"]
    assert far["series"][1]["auroc"] == 1
    assert far["series"][1]["missed"] == 0
    assert report_content(folder)["outliers"] is None


@pytest.mark.parametrize("energies", [[], [[1.0]], [np.nan], ["x"]])
def test_outliers_that_are_no_energies(folder: Path, energies: list[object]) -> None:
    with pytest.raises(InputError, match="'strange' must be finite energies"):
        report_content(folder, {"strange": np.array(energies)})


def test_a_bare_folder_says_what_is_absent_and_why(tmp_path: Path) -> None:
    content = report_content(write_bare_folder(tmp_path))
    assert "3 test nodes have no finite probabilities" in content["findings"][0]
    for name in ("metrics", "reliability", "confidence", "risk", "filters", "orders", "history", "energy"):
        assert content[name]["absent"].endswith(".")
    json.dumps(content, allow_nan=False)


def test_without_edges_only_the_parts_that_need_them_are_absent(tmp_path: Path) -> None:
    content = report_content(write_folder(tmp_path, nodes=200, graph=False))
    assert [name for name, part in content["strata"].items() if "absent" in part] == [
        "degree",
        "homophily",
        "distance",
    ]
    assert "--no-graph" in content["strata"]["degree"]["absent"]
    assert content["table"]["near"] == []


def test_findings_do_not_claim_more_than_the_sample(tmp_path: Path) -> None:
    few = report_content(write_folder(tmp_path / "few", nodes=60))["findings"]
    assert any("Only" in text for text in few)
    many = report_content(write_folder(tmp_path / "many", nodes=5000))["findings"]
    assert "the model beats it" in many[0]
    assert not any("Only" in text for text in many)


def test_a_class_without_test_nodes_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path)
    frame = pd.read_parquet(tmp_path / "predictions.parquet")
    frame.loc[(frame["label"] == "safe") & (frame["split"] == "test"), "label"] = None
    frame.to_parquet(tmp_path / "predictions.parquet")
    assert any(
        "No labelled test node is of class “\u2068safe" in t for t in report_content(tmp_path)["findings"]
    )


def test_metrics_of_another_run_are_noticed(tmp_path: Path) -> None:
    write_folder(tmp_path)
    change_json(tmp_path / "metrics.json", test={"accuracy": 0.5})
    assert any("disagree on accuracy" in text for text in report_content(tmp_path)["findings"])


def test_numbers_that_are_none_are_left_out(tmp_path: Path) -> None:
    write_folder(tmp_path)
    layer = {"low": [1.0, float("nan")], "high": [1.0]}
    change_json(
        tmp_path / "metrics.json",
        test={"accuracy": "high"},
        val={"accuracy": None, "brier": [1]},
        training={"seconds": "long", "best_epoch": float("nan")},
        model={"filters": [layer], "chaos_energy_by_order": 3, "lambda_max": "two"},
    )
    content = report_content(tmp_path)
    assert content["metrics"]["other"]["val"] == dict.fromkeys(("accuracy", "brier", "nll", "ece"))
    assert content["about"]["training"]["seconds"] is None
    assert content["history"]["best_epoch"] is None
    assert "not finite" in content["filters"]["absent"]
    assert "order 0" in content["orders"]["absent"]


def _drop_column(path: Path) -> None:
    frame = pd.read_parquet(path / "predictions.parquet")
    frame.drop(columns="p_safe").to_parquet(path / "predictions.parquet")


def _text_energy(path: Path) -> None:
    frame = pd.read_parquet(path / "predictions.parquet")
    frame.assign(energy="high").to_parquet(path / "predictions.parquet")


def _strange_label(path: Path) -> None:
    frame = pd.read_parquet(path / "predictions.parquet")
    frame.loc[4, "label"] = "cat"
    frame.to_parquet(path / "predictions.parquet")


def _no_distribution(path: Path) -> None:
    frame = pd.read_parquet(path / "predictions.parquet")
    frame.loc[2, "p_safe"] += 0.5
    frame.to_parquet(path / "predictions.parquet")


def _truncate(name: str) -> Callable[[Path], None]:
    return lambda path: (path / name).write_bytes((path / name).read_bytes()[:100]) and None


def _remove(name: str) -> Callable[[Path], None]:
    return lambda path: (path / name).unlink()


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (_remove("config.json"), r"config\.json is missing"),
    "no metrics": (_remove("metrics.json"), r"metrics\.json is missing"),
    "no split": (_remove("split.npz"), r"split\.npz is missing"),
    "no predictions": (_remove("predictions.parquet"), r"predictions\.parquet is missing"),
    "no history": (_remove("history.csv"), r"history\.csv is missing"),
    "cut config": (_truncate("config.json"), r"config\.json must be JSON"),
    "cut predictions": (_truncate("predictions.parquet"), r"predictions\.parquet must be a parquet table"),
    "cut split": (_truncate("split.npz"), r"split\.npz cannot be read as \.npz"),
    "cut graph": (_truncate("graph.npz"), r"graph\.npz cannot be read as \.npz"),
    "config is a list": (
        lambda p: (p / "config.json").write_text("[]"),
        r"config\.json must hold a JSON object",
    ),
    "schema 2": (
        lambda p: change_json(p / "config.json", schema=2),
        r"config\.json must have schema 1, got 2",
    ),
    "no classes": (lambda p: change_json(p / "config.json", classes=[]), r"config\.json must list the names"),
    "a class twice": (lambda p: change_json(p / "config.json", classes=["1", 1]), "each class once"),
    "no column": (_drop_column, r"predictions\.parquet must have a column `p_safe`"),
    "text for numbers": (_text_energy, r"predictions\.parquet must hold numbers in column `energy`"),
    "no distribution": (
        _no_distribution,
        r"predictions\.parquet row 2: probabilities must sum to 1, got 1\.5",
    ),
    "unknown label": (_strange_label, r"predictions\.parquet row 4: label 'cat' is not one of the classes"),
    "no masks": (
        lambda p: np.savez(p / "split.npz", train=[True]),
        r"split\.npz has no array 'val', expected train, val and test",
    ),
    "short masks": (
        lambda p: np.savez(p / "split.npz", train=[True], val=[True], test=[True]),
        r"split\.npz: `train` must be boolean of shape \[60\]",
    ),
    "edges out of range": (
        lambda p: np.savez(p / "graph.npz", edge_index=[[0], [60]]),
        r"graph\.npz: `edge_index` must name nodes 0\.\.59",
    ),
    "edges of text": (
        lambda p: np.savez(p / "graph.npz", edge_index=[["a"], ["b"]]),
        r"graph\.npz: `edge_index` must be integer",
    ),
    "pickled edges": (
        lambda p: np.savez(p / "graph.npz", edge_index=np.array([{}])),
        r"graph\.npz: array 'edge_index' holds pickled objects, expected numbers",
    ),
    "history without epochs": (lambda p: (p / "history.csv").write_text("a,b\n1,2\n"), "column `epoch`"),
    "filters of text": (
        lambda p: change_json(p / "metrics.json", model={"filters": [{"low": ["a"], "high": [1]}]}),
        r"metrics\.json must list the coefficients",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_malformed_folder_is_one_sentence_and_writes_nothing(tmp_path: Path, name: str) -> None:
    spoil, message = SPOILED[name]
    spoil(write_folder(tmp_path / "model", nodes=60))
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match=message) as caught:
        write_report(tmp_path / "model", tmp_path / "out" / "report.html")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "out").iterdir()) == []


def test_no_folder_and_no_place_to_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a model folder"):
        write_report(tmp_path / "absent", tmp_path / "report.html")
    with pytest.raises(InputError, match="must be a file that can be written"):
        write_report(write_folder(tmp_path / "model", nodes=60), tmp_path / "absent" / "report.html")
