"""The contenders compute what they claim, and the benchmark measures all that it promises."""

import json

import pytest
import torch
from typer.testing import CliRunner

from dssgnn import DSSGNN, GraphOperator
from dssgnn.benchmarks.commands import bench
from dssgnn.benchmarks.frame import tasks
from dssgnn.benchmarks.speed import growth, population, shapes, steps
from dssgnn.benchmarks.speed.contenders import CONTENDERS, make_step, paper_loss
from dssgnn.benchmarks.speed.measure import alternate, attempt, copy_bandwidth, saved_bytes
from dssgnn.benchmarks.speed.published import published_forward
from dssgnn.benchmarks.speed.run import Plan, run
from dssgnn.errors import InputError
from dssgnn.training import seeded

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setitem(shapes.SHAPES, "tiny", shapes.Shape(40, 90, 6, 3, 20))


def quiet(text):
    pass


@pytest.mark.parametrize("order", [0, 2, 3])
@pytest.mark.parametrize("readout", ["filtered", "linear"])
@pytest.mark.parametrize("product", ["csr", "coo"])
def test_published_order_equals_ours(order, readout, product):
    x, edges, y = shapes.SHAPES["tiny"].draw()
    operator = GraphOperator.from_edge_index(edges, 40, dtype=torch.float64)
    theirs = operator if product == "csr" else operator.matrix.to_sparse_coo()
    with seeded(0):
        model = DSSGNN(
            6, 8, 3, chaos_order=order, filter_orders=(3, 2), readout=readout, dropout=0.0
        ).double()
    gradients = []
    for forward, graph in ((lambda m, a, b: m(a, b), operator), (published_forward, theirs)):
        model.zero_grad()
        expansion = forward(model, x.double(), graph)
        torch.nn.functional.cross_entropy(expansion.mean, y).backward()
        gradients.append([expansion.coefficients, *(p.grad for p in model.parameters())])
    for mine, other in zip(*gradients, strict=True):
        assert torch.allclose(mine, other, atol=1e-12, rtol=0)


def test_contenders_start_equal_and_train_alike():
    """After three steps the exact contenders still have the same loss, and every contender has learned."""
    problem = steps.problem_of("tiny", "power", CPU)
    first, last = {}, {}
    for name, contender in CONTENDERS.items():
        network = contender.make(problem)
        step = make_step(network, problem)
        first[name] = paper_loss(network.forward(), problem).item()
        for _ in range(3):
            step()
        last[name] = paper_loss(network.forward(), problem).item()
        assert last[name] < first[name]
    for name in ("published", "published-csr"):
        assert first[name] == pytest.approx(first["ours"], rel=1e-5)
        assert last[name] == pytest.approx(last["ours"], rel=1e-4)
    assert first["ours-bf16"] == pytest.approx(first["ours"], rel=0.05)


def test_loss_is_the_papers():
    problem = steps.problem_of("tiny", "power", CPU)
    expansion = CONTENDERS["ours"].make(problem).forward()
    train, _ = problem.train
    assert train.numel() == train.unique().numel() == 21  # 54 % of 40
    nll = torch.nn.functional.cross_entropy(expansion.mean[train], problem.y[train])
    expected = nll + 0.01 * expansion.chaos_energy[train].mean()
    assert torch.allclose(paper_loss(expansion, problem), expected)


def kept_bytes(nodes, degree, name):
    x, edges, _ = shapes.Shape(nodes, 2 * nodes, 6, 3, 20).draw()
    operator = GraphOperator.from_edge_index(edges, nodes)
    with seeded(0):
        model = DSSGNN(6, 8, 3, filter_orders=(degree, degree), readout="filtered", dropout=0.0)
    forward = published_forward if name == "published" else (lambda m, a, b: m(a, b))
    return saved_bytes(lambda: forward(model, x, operator))


def test_memory_kept_does_not_grow_with_the_degree():
    """Only the coefficients grow, and they do not know the number of nodes; the published order's tape does."""
    increase = [kept_bytes(n, 16, "ours") - kept_bytes(n, 2, "ours") for n in (60, 600)]
    assert increase[0] == increase[1] < 1000
    assert kept_bytes(600, 16, "published") > 3 * kept_bytes(600, 2, "published")


def test_steps_are_recorded_for_every_contender(monkeypatch):
    names = tuple(CONTENDERS)
    (first, second) = run(Plan(CPU, shapes=("tiny",), orders=(0, 1), contenders=names, repeats=2))
    # The GPU's contender is left out on a CPU, and PyG's networks have no chaos order.
    assert [r.variant for r in first] == ["published", "published-csr", "chebconv", "gcn", "ours"]
    assert [r.variant for r in second] == ["published", "published-csr", "ours"]
    assert {r.method for r in first} == {"dss-gnn", "chebnet", "gcn"}
    for r in first + second:
        assert set(r.metrics) == {"step_ms", "step_ms_best", "saved_mib"}
        assert 0 < r.metrics["step_ms_best"] <= r.metrics["step_ms"]
        assert r.config["entries"] == 180
        assert (r.config["part"], r.config["degrees"], r.config["shape"]) == ("steps", "power", "tiny")
    assert {r.setting for r in second} == {"tiny, P=1, power"}
    assert len({r.key for r in first + second}) == 8


def test_a_contender_that_fails_or_differs_is_left_out_and_said(monkeypatch):
    def broken(problem):
        raise torch.OutOfMemoryError("no\nmemory")

    def wrong(problem):
        network = CONTENDERS["ours"].make(problem)
        with torch.no_grad():
            network.module.layers[0].weight.add_(0.1)
        return network

    monkeypatch.setitem(CONTENDERS, "published", CONTENDERS["published"].__class__("dss-gnn", broken))
    monkeypatch.setitem(CONTENDERS, "published-csr", CONTENDERS["published"].__class__("dss-gnn", wrong))
    said = []
    metrics = steps.compare(
        steps.problem_of("tiny", "power", CPU), ("published", "published-csr", "ours"), 1, said.append
    )
    assert set(metrics) == {"ours"}
    assert said[0] == "published: absent (OutOfMemoryError: no memory)"
    assert said[1].startswith("published-csr: absent (RuntimeError: differs from ours by ")


def test_alternate_takes_turns_and_drops_what_fails():
    calls = []

    def late_failure():
        calls.append("b")
        if calls.count("b") == 2:
            raise RuntimeError("late")

    said = []
    times = alternate({"a": lambda: calls.append("a"), "b": late_failure}, CPU, 3, said.append)
    assert "".join(calls) == "ababaa"
    assert list(times) == ["a"]
    assert len(times["a"]) == 3
    assert said == ["b: absent (RuntimeError: late)"]
    assert attempt("c", lambda: 5, said.append) == 5


def test_filter_records():
    ((full, half),) = run(Plan(CPU, parts=("filter",), shapes=("tiny",), repeats=1))
    assert (full.variant, half.variant) == ("filter-fp32", "filter-bf16")
    assert full.metrics["gathered_gb"] == 180 * 192 * 4 * 4 / 1e9
    assert half.metrics["bound_ms"] == full.metrics["bound_ms"] / 2
    for r in (full, half):
        m = r.metrics
        assert m["bound_ms"] == pytest.approx(1e3 * m["gathered_gb"] / m["copy_gbs"])
        assert m["share_of_bound"] == m["bound_ms"] / m["forward_ms"]
        assert m["forward_ms"] > 0
        assert m["both_ms"] > 0


def test_copy_bandwidth_is_of_this_world():
    assert 0.1 < copy_bandwidth(CPU, mib=8) < 1e4


def test_growth_records(monkeypatch):
    monkeypatch.setattr(growth, "_NODES", (50, 100, 10**9))
    groups = list(run(Plan(CPU, parts=("growth",), shapes=("tiny",), repeats=1, largest=100)))
    axes = [(g[0].config["axis"], g[0].config["value"]) for g in groups]
    assert axes == [
        *(("nodes", n) for n in (50, 100)),
        *(("P", p) for p in range(9)),
        *(("K", k) for k in (1, 2, 4, 8, 16)),
    ]
    assert all([r.variant for r in g] == ["published", "ours"] for g in groups)
    assert groups[0][0].config["entries"] == 500
    assert (groups[0][0].config["hidden"], groups[0][0].config["chaos_order"]) == (32, 1)
    assert groups[5][0].config["chaos_order"] == 3
    assert groups[-1][0].config["degree"] == 16
    assert len({r.key for g in groups for r in g}) == 2 * len(groups)


def test_population_records(data_root):
    ((made,),) = population.population_records(["cora"], CPU, 2, quiet, splits=3)
    assert made.setting == "population, cora, 3 splits, 2 epochs"
    m = made.metrics
    assert m["ratio"] == m["sequential_s"] / m["population_s"]
    assert m["brier_difference"] < 1e-4


def test_population_tasks_share_what_they_can(data_root):
    first, second = population.population_tasks("cora", 2, CPU)
    assert first.x is second.x
    assert first.graph is second.graph
    assert not torch.equal(first.train_mask, second.train_mask)


def test_absent_graphs_are_said(tmp_path, monkeypatch):
    monkeypatch.setenv("DSSGNN_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tasks, "load", lambda *a, **k: (_ for _ in ()).throw(InputError("not here")))
    said = []
    assert list(run(Plan(CPU, parts=("population",)), said.append)) == []
    assert said[1:] == ["cora: absent (InputError: not here)", "chameleon: absent (InputError: not here)"]


def test_command_writes_as_it_goes(tmp_path, monkeypatch):
    monkeypatch.setattr(growth, "_NODES", (50,))
    out = tmp_path / "speed.json"
    words = ["speed", "--parts", "steps,filter,growth", "--shapes", "tiny", "--orders", "1", "--repeats", "1"]
    result = CliRunner().invoke(bench, [*words, "--degrees", "uniform", "--device", "cpu", "--out", str(out)])
    assert result.exit_code == 0, result.output
    records = json.loads(out.read_text())["records"]
    assert {r["config"]["part"] for r in records} == {"steps", "filter", "growth"}
    assert {r["config"]["degrees"] for r in records} == {"uniform"}
    assert "tiny, P=1, uniform, ours: " in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--parts", "steps,sleep"], "--parts knows steps, filter, growth, population, got 'sleep'"),
        (["--shapes", "atlantis"], "got 'atlantis'"),
        (["--contenders", "gat"], "--contenders knows published, published-csr, .*, got 'gat'"),
        (["--orders", "1,two"], "--orders takes numbers separated by commas, got '1,two'"),
        (["--degrees", "zipf"], "--degrees must be one of 'power', 'uniform', got 'zipf'"),
        (["--repeats", "0"], "--repeats must be an integer >= 1, got 0"),
        (["--largest", "-5"], "--largest must be an integer >= 1, got -5"),
        (["--epochs", "0"], "--epochs must be an integer >= 1, got 0"),
        (["--device", "abacus"], "device must be"),
    ],
)
def test_bad_arguments(words, message, tmp_path):
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(
            bench, ["speed", "--out", str(tmp_path / "s.json"), *words], catch_exceptions=False
        )
