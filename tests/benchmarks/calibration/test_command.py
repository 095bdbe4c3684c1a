"""`dssgnn bench calibration`: what it refuses, runs and lists; its ablations."""

from dataclasses import asdict, replace

import pytest
from typer.testing import CliRunner

from dssgnn.benchmarks.calibration import measuring as measure_module
from dssgnn.benchmarks.calibration import plan as plan_module
from dssgnn.benchmarks.calibration.ablations import ABLATIONS, ablation
from dssgnn.benchmarks.calibration.plan import ablation_rows, asked_graphs, asked_systems, known_systems
from dssgnn.benchmarks.calibration.presets import preset
from dssgnn.benchmarks.calibration.search import choosing as search_module
from dssgnn.benchmarks.calibration.systems import SYSTEMS
from dssgnn.benchmarks.commands import bench
from dssgnn.benchmarks.frame import split_tasks
from dssgnn.benchmarks.records import read_records
from dssgnn.errors import InputError
from dssgnn.training import fit, seeded
from small_rows import CONFIG, CPU, setup

pytestmark = pytest.mark.usefixtures("boards")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--methods", "magic"], "--methods knows bernnet, .* got 'magic'"),
        (
            ["--methods", "gcn", "--variants", "best"],
            "--variants knows batch-norm, default, paper of these",
        ),
        (["--datasets", "atlantis"], "--datasets knows .* got 'atlantis'"),
        (["--splits", "many"], "--splits takes a number"),
        (["--splits", "9-5"], "--splits takes a number"),
        (["--datasets", "cora", "--ablations", "all,"], "--ablations knows order, .* got 'all'"),
        (
            ["--datasets", "cora", "--ablations", "order", "--base", "best"],
            "--base must be published or paper, got 'best'",
        ),
        (
            ["--datasets", "minesweeper-demo", "--ablations", "order"],
            "the paper has no such ablation of mine",
        ),
        (["--datasets", "cora", "--curves", "lines"], "--curves knows reliability and curvature"),
        (
            ["--datasets", "cora", "--curves", "reliability"],
            "--curves does not go with the variant 'default'; name others with --variants",
        ),
        (
            ["--datasets", "cora", "--seeds", "2"],
            "--seeds does not go with the variant 'default'; name others",
        ),
        (
            ["--datasets", "cora", "--methods", "gcn", "--variants", "paper", "--splits", "0"],
            "--splits 0 is for systems that are searched for",
        ),
        (
            ["--datasets", "cora", "--out", "/proc/none/x.json"],
            "/proc/none/x.json: results cannot be written there",
        ),
        (
            ["--datasets", "cora", "--methods", "dss-gnn", "--variants", "published-other"],
            "there is no such row of these graphs",
        ),
        (["--datasets", "cora", "--curves", "reliability", "--workers", "2"], "--curves does not go with"),
        (["--datasets", "cora", "--timed"], "--timed is of one system with a variant"),
        (
            ["--datasets", "cora", "--ablations", "order", "--timed"],
            "--timed, --ablations, --curves and --alone do not go together",
        ),
        (
            ["--datasets", "cora", "--alone", "--methods", "gcn", "--variants", "paper"],
            "--alone is for dss-gnn best and dss-gnn best-p0, whose trials are declared, got gcn paper",
        ),
        (
            ["--alone", "--timed", "--datasets", "cora"],
            "--timed, --ablations, --curves and --alone do not go together",
        ),
        (
            ["--datasets", "cora", "--alone", "--variants", "best", "--splits", "0", "--methods", "dss-gnn"],
            "--alone tests what every split chose, got --splits 0",
        ),
        (
            ["--datasets", "cora", "--ablations", "order", "--splits", "0"],
            "--splits 0 is for systems that are searched for",
        ),
        (["--datasets", "cora", "--splits", "0", "--timed"], "--timed is of one run of each split"),
    ],
)
def test_command_refuses(words, message):
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(bench, ["calibration", *words], catch_exceptions=False)


def test_what_is_refused_leaves_no_folder(tmp_path):
    words = ["--datasets", "cora", "--methods", "dss-gnn", "--variants", "published-other"]
    with pytest.raises(InputError, match="there is no such row"):
        CliRunner().invoke(
            bench, ["calibration", *words, "--out", str(tmp_path / "new" / "x.json")], catch_exceptions=False
        )
    assert not list(tmp_path.iterdir())


def test_command_runs_a_row(tmp_path, monkeypatch):
    whole = SYSTEMS["gpr-gnn", "paper"]("texas")
    short = replace(whole, training=CONFIG, make=lambda f, c: whole.make(f, c).double())
    monkeypatch.setitem(SYSTEMS, ("gpr-gnn", "paper"), lambda dataset: short)
    out = tmp_path / "calibration.json"
    words = ["--methods", "gpr-gnn", "--variants", "paper", "--datasets", "texas", "--splits", "0-1"]
    result = CliRunner().invoke(
        bench, ["calibration", *words, "--device", "cpu", "--out", str(out)], catch_exceptions=False
    )
    assert "texas gpr-gnn paper: brier" in result.output
    assert {(r.method, r.variant, r.split) for r in read_records(out)} == {
        ("gpr-gnn", "paper", s) for s in (0, 1)
    }
    timed = ["calibration", *words, "--device", "cpu", "--out", str(out), "--timed"]
    result = CliRunner().invoke(bench, timed, catch_exceptions=False)
    assert "gpr-gnn paper on 1 graphs: " in result.output
    kinds = [r.benchmark for r in read_records(out)]
    assert sorted(kinds) == ["calibration"] * 2 + ["calibration-repeated"] * 2 + ["calibration-time"]
    (record,) = (r for r in read_records(out) if r.benchmark == "calibration-time")
    assert (record.config["datasets"], record.config["splits"]) == (["texas"], [0, 1])
    assert 0 < record.metrics["seconds"] < 100
    with pytest.raises(InputError, match="has a timed run of gpr-gnn paper"):
        CliRunner().invoke(bench, timed, catch_exceptions=False)


def test_no_splits_are_a_choice_without_a_test(tmp_path, monkeypatch):
    asked = []

    def choose(graph, system, *others, **options):
        asked.append((graph, *system))
        return setup()

    monkeypatch.setattr(plan_module, "chosen", choose)
    monkeypatch.setattr(measure_module, "evaluate", None)  # nobody may look at a test part
    out = tmp_path / "calibration.json"
    words = ["--methods", "gcn-res", "--variants", "tuned", "--datasets", "texas", "--splits", "0"]
    CliRunner().invoke(
        bench, ["calibration", *words, "--device", "cpu", "--out", str(out)], catch_exceptions=False
    )
    assert asked == [("texas", "gcn-res", "tuned")]
    assert not out.exists()


def test_splits_that_choose_alone(tmp_path, monkeypatch):
    asked = []

    def choose(graph, system, split, search, *others, **options):
        asked.append((graph, *system, split, search))
        return setup()

    monkeypatch.setattr(plan_module, "chosen_alone", choose)
    monkeypatch.setattr(plan_module, "check_alone", lambda *given: None)
    out = tmp_path / "calibration.json"
    words = [
        "--alone",
        "--methods",
        "dss-gnn",
        "--variants",
        "best",
        "--datasets",
        "texas",
        "--splits",
        "1-2",
    ]
    words += ["--device", "cpu", "--out", str(out), "--search", str(tmp_path / "s.json")]
    CliRunner().invoke(bench, ["calibration", *words], catch_exceptions=False)
    assert asked == [("texas", "dss-gnn", "best", s, tmp_path / "s.json") for s in (1, 2)]
    assert {(r.benchmark, r.variant, r.split) for r in read_records(out)} == {
        ("calibration-alone", f"best, chosen on split {s}", s) for s in (1, 2)
    }


def test_who_can_choose_alone_is_known_before_anything_is_run(tmp_path, monkeypatch):
    """Small graphs, splits that judged, and trials that no mean over the splits has bred."""
    sizes = {"texas": (100, False), "big": (5000, False)}
    monkeypatch.setattr(search_module, "nodes_and_direction", sizes.__getitem__)
    ours = [("dss-gnn", "best"), ("dss-gnn", "best-p0")]
    rows = plan_module.alone_rows(["texas"], ours, range(10), tmp_path, CPU, print)
    assert len(rows) == 20
    assert len({row.group for row in rows}) == 2  # a search runs in one process, once
    for graph, system, splits, message in (
        ("texas", ("gcn-res", "tuned"), [0], "--alone is for .* got gcn-res tuned"),
        ("texas", ("dss-gnn", "twin-p0"), [0], "--alone is for .* got dss-gnn twin-p0"),
        ("texas", ours[0], range(11), "texas: its trials were judged on splits 0 to 9, got split 10"),
        ("big", ours[0], [0], "--alone is for small graphs, whose trials are judged on every split, got big"),
    ):
        with pytest.raises(InputError, match=message):
            plan_module.alone_rows([graph], [ours[0], system], splits, tmp_path, CPU, print)


def test_command_says_that_there_are_no_graphs(tmp_path, monkeypatch):
    monkeypatch.setenv("DSSGNN_DATA", str(tmp_path))
    with pytest.raises(InputError, match="none of the paper's graphs is here"):
        CliRunner().invoke(bench, ["calibration", "--methods", "gcn"], catch_exceptions=False)


def test_all_systems_are_all_but_the_defaults():
    systems = asked_systems("all", "all")
    assert set(systems) == {row for row in known_systems() if row[1] != "default"}
    assert ("gcn", "default") in asked_systems("gcn,gat", "default")


def test_what_is_named_twice_is_run_once():
    assert asked_graphs("texas,cora,texas") == ["texas", "cora"]
    assert asked_systems("gcn,gcn", "paper,paper") == [("gcn", "paper")]
    once = ablation_rows("penalty", "published", ["cora"])
    assert [row[:3] for row in ablation_rows("penalty,penalty", "published", ["cora"])] == [
        row[:3] for row in once
    ]


def test_command_lists_its_rows():
    lines = CliRunner().invoke(bench, ["calibration", "--rows"], catch_exceptions=False).output.splitlines()
    assert {"dss-gnn twin-p0-penalty", "gcn default", "deep-ensemble paper"} <= set(lines)
    assert len(lines) == len(set(lines))


def test_norms_are_compared_on_every_graph():
    rows = ablation_rows("start-norms", "published", ["cora", "texas"])
    assert len(rows) == 22
    assert len(ablation_rows("start-joint", "published", ["cora"])) == 4
    (task,) = split_tasks("board", [0], CPU)
    for row in rows[:9]:
        made = row.make()
        with seeded(0):
            fit(made.make(7, 2).double(), task, replace(made.training, epochs=1))
    assert {row[2] for row in ablation_rows("all", "published", ["cora"])} >= {row[2] for row in rows}


@pytest.mark.parametrize("name", list(ABLATIONS))
@pytest.mark.parametrize("base", ["published", "paper"])
def test_an_ablation_changes_one_thing(name, base):
    for variant, make in ablation(name, base).items():
        made, given = make("cora"), preset("cora", base)
        model, training = ABLATIONS[name][variant.removeprefix(f"{base}, ")]
        assert made.config["architecture"] == {**given.architecture, **model}
        same = set(asdict(given.training)) - set(training) - {"chaos_weight"}
        assert all(
            getattr(made.training, key) == getattr(given.training, key) for key in same - {"logit_weight"}
        )
        made.make(7, 2)
    if name == "penalty":
        assert (made.training.logit_weight, made.training.chaos_weight) == (given.training.chaos_weight, 0)
        assert given.training.chaos_weight > 0
