"""Known answers of every rule of the targets' table, met and missed; tables and figures of partial records."""

import pytest
from typer.testing import CliRunner

from dssgnn.benchmarks.commands import bench
from dssgnn.benchmarks.records import Record, merge_records
from dssgnn.benchmarks.speed.tables import TABLES
from dssgnn.benchmarks.speed.targets import TARGETS

H200, TWO = "NVIDIA H200", "cpu, 2 threads"


def record(variant, metrics, device=H200, **config):
    config = {"degrees": "power"} | config
    setting = ", ".join(f"{key}={value}" for key, value in config.items())
    return Record("speed", setting, "dss-gnn", variant, metrics, config, device, seed=0)


def step(variant, ms, order=2, shape="ogbn-arxiv", device=H200, **metrics):
    return record(variant, {"step_ms": ms, **metrics}, device, part="steps", shape=shape, chaos_order=order)


def filtered(state, ms, bound):
    metrics = {"forward_ms": ms, "both_ms": 2 * ms, "gathered_gb": 7.2, "copy_gbs": 4250.0}
    metrics |= {"bound_ms": bound, "share_of_bound": bound / ms}
    return record(f"filter-{state}", metrics, part="filter", shape="ogbn-arxiv", width=192, degree=4)


def grown(axis, value, ms=1.0, mib=1.0, variant="ours", device=H200):
    metrics = {"step_ms": ms, "peak_mib": mib, "base_mib": 0.0, "saved_mib": mib / 2}
    return record(variant, metrics, device, part="growth", axis=axis, value=value)


def population(name, ratio, device):
    metrics = {"sequential_s": ratio, "population_s": 1.0, "ratio": ratio, "brier_difference": 1e-8}
    return record("population", metrics, device, part="population", dataset=name, splits=10)


# For each target: records that reach it just so, records that just do not, and what the table says of the former.
CASES = [
    (
        [step("published", 80.0), step("published-csr", 40.0), step("ours", 9.0, captured_ms=8.0)],
        [step("published", 80.0), step("ours", 8.1, captured_ms=8.2)],
        "10.0 times (80.00 ms, 8.00 ms); 5.0 times with our sparse product in both",
    ),
    (
        [step("published", 9.0, peak_mib=4000.0), step("ours", 9.0, peak_mib=1000.0)],
        [step("published", 9.0, peak_mib=4000.0), step("ours", 9.0, peak_mib=1001.0)],
        "0.25 (1,000 of 4,000 MiB)",
    ),
    (
        [step("published", 84.0), step("ours-bf16", 6.0)],
        [step("published", 84.0), step("ours-bf16", 6.1)],
        "14.0 times (84.00 ms, 6.00 ms)",
    ),
    ([filtered("fp32", 2.0, 1.8)], [filtered("fp32", 2.0, 1.79)], "2.00 ms, 90 % of the bound (1.80 ms)"),
    ([filtered("bf16", 1.19, 0.9)], [filtered("bf16", 1.2, 1.2)], "1.19 ms, 76 % of the bound (0.90 ms)"),
    (
        [step("ours", 4.0, 0), step("ours", 8.0)],
        [step("ours", 4.0, 0), step("ours", 8.1)],
        "2.00 (8.00 ms, 4.00 ms)",
    ),
    (
        [grown("K", 2, mib=100.0), grown("K", 16, mib=105.0)],
        [grown("K", 2, mib=100.0), grown("K", 16, mib=105.1)],
        "+5.0 % (100 MiB, 105 MiB)",
    ),
    (
        [step("chebconv", 20.0, 0), step("ours", 4.0, 0)],
        [step("chebconv", 20.0, 0), step("ours", 4.1, 0)],
        "5.0 times (20.00 ms, 4.00 ms)",
    ),
    (
        [step("ours", 5.0, shape="cora", captured_ms=0.99)],
        [step("ours", 5.0, shape="cora", captured_ms=1.0)],
        "0.99 ms",
    ),
    ([population("cora", 5.0, H200)], [population("cora", 4.9, H200)], "5.0 times (5.0 s, 1.0 s)"),
    ([population("chameleon", 5.0, H200)], [population("chameleon", 4.9, H200)], "5.0 times (5.0 s, 1.0 s)"),
    ([population("cora", 1.5, TWO)], [population("cora", 1.4, TWO)], "1.5 times (1.5 s, 1.0 s)"),
    ([population("chameleon", 1.5, TWO)], [population("chameleon", 1.4, TWO)], "1.5 times (1.5 s, 1.0 s)"),
    (
        [step("published", 500.0, 2, "amazon-ratings", TWO), step("ours", 100.0, 2, "amazon-ratings", TWO)],
        [step("published", 499.0, 2, "amazon-ratings", TWO), step("ours", 100.0, 2, "amazon-ratings", TWO)],
        "5.0 times (500.00 ms, 100.00 ms)",
    ),
    (
        [grown("nodes", 10**6, 10.0), grown("nodes", 10**7, 150.0, 20480.0)],
        [grown("nodes", 10**6, 10.0), grown("nodes", 10**7, 151.0, 20480.0)],
        "1.50 times linear (150 ms, 20 GiB)",
    ),
]


@pytest.mark.parametrize(
    ("target", "case"), list(zip(TARGETS, CASES, strict=True)), ids=lambda v: getattr(v, "what", "")
)
def test_verdicts(target, case):
    met, missed, text = case
    assert target.judge(met) == (text, True)
    assert target.judge(missed)[1] is False
    for i in range(len(met)):
        if met[i].variant != "published-csr":
            assert target.judge(met[:i] + met[i + 1 :]) is None
    assert target.judge([]) is None


def test_verdicts_are_of_the_right_records():
    """Another device, other degrees, another shape or other threads do not count."""
    target = TARGETS[0]
    pair = [step("published", 80.0), step("ours", 8.0)]
    for spoiled in ({"device": "NVIDIA A100"}, {"shape": "cora"}, {"order": 1}):
        assert target.judge([pair[0], step("ours", **{"ms": 8.0} | spoiled)]) is None
    uniform = Record(**{**vars(pair[1]), "config": pair[1].config | {"degrees": "uniform"}})
    assert target.judge([pair[0], uniform]) is None
    newer = step("ours", 4.0)
    assert target.judge([*pair, newer])[0].startswith("20.0 times")
    slow = [step(name, 1.0, 2, "amazon-ratings", "cpu, 1 threads") for name in ("published", "ours")]
    assert TARGETS[13].judge(slow) is None


def table(name, records):
    return TABLES[name][1](records)


def test_targets_table():
    text = table("speed-targets", CASES[0][0] + CASES[3][1])
    lines = text.splitlines()
    assert len(lines) == 2 + len(TARGETS)
    assert lines[2].endswith("with our sparse product in both | met |")
    assert lines[3].endswith("| not measured |  |")  # these have no peak
    assert lines[5].endswith("| missed |")
    assert lines[-1].endswith("| not measured |  |")


def test_steps_table():
    rows = [
        step("ours", 4.0, saved_mib=10.0),
        step("published", 40.0, peak_mib=2500.0, base_mib=500.0),
        step("gcn", 2.0),
    ]
    lines = table("speed", rows).splitlines()
    assert lines[0].startswith("| device | setting | contender |")
    setting = rows[0].setting
    assert lines[2] == f"| {H200} | {setting} | published | 40.00 | – | 10.00 | 2,000 | – |"
    assert lines[3] == f"| {H200} | {setting} | gcn | 2.00 | – | 0.50 | – | – |"
    assert lines[4] == f"| {H200} | {setting} | ours | 4.00 | – | 1.00 | – | 10 |"
    assert " | – | – | – | – |" in table("speed", [step("published", 40.0)])


def test_growth_table_and_figures(tmp_path):
    rows = [grown("P", p, 1.0 + p, 100.0 * p) for p in range(3)]
    rows += [grown("P", 0, 9.0, 90.0, "published"), grown("nodes", 10**6), grown("nodes", 10**4)]
    lines = table("speed-growth", rows).splitlines()
    assert lines[0] == "![Time and memory of a step against nodes](figures/speed_nodes.svg)"
    assert lines[4] == f"| {H200} | 10,000 | 1.00 | – | 1 |"
    assert f"| {H200} | 0 | 9.00 | 1.00 | – | – | 90 | 0 |" in lines
    assert f"| {H200} | 1 | – | 2.00 | – | – | – | 100 |" in lines
    assert not any("speed_K" in line for line in lines)
    pytest.importorskip("matplotlib")
    merge_records(tmp_path / "results" / "speed.json", rows)
    docs = tmp_path / "docs"
    docs.mkdir()
    words = ["render", "--docs", str(docs), "--results", str(tmp_path / "results")]
    result = CliRunner().invoke(bench, words, catch_exceptions=False)
    assert result.output.count("drawn: ") == 2
    drawn = {path.name: path.read_bytes() for path in (docs / "figures").iterdir()}
    assert set(drawn) == {"speed_nodes.svg", "speed_P.svg"}
    assert b"NVIDIA H200" in drawn["speed_P.svg"]
    assert b">published<" in drawn["speed_P.svg"]
    assert b">linear<" in drawn["speed_nodes.svg"]
    assert b"20" + b"26-" not in drawn["speed_P.svg"]  # no date
    assert "drawn: " not in CliRunner().invoke(bench, words, catch_exceptions=False).output


def test_other_tables():
    assert "| fp32 | 2.00 | 4.00 | 7.20 | 4,250 | 1.80 | 90 % |" in table("speed-filter", CASES[3][0])
    assert "| 5.00 | 1.00 | 5.00 | 1.0e-08 |" in table("speed-population", CASES[9][0])
    for name in ("speed-filter", "speed-growth", "speed-population"):
        assert table(name, []) == "Not measured yet.\n"
