"""Trials of the search, paired by configuration."""

from dssgnn.benchmarks.calibration.chaos_tables import TABLES, paired_trials
from dssgnn.benchmarks.records import Record


def searched(arm, trials, dataset="cora", device="cpu"):
    config = {"trials": [{"config": c, "val_brier": values} for c, values in trials]}
    return Record("calibration-search", dataset, "dss-gnn", f"{arm}, first round", {}, config, device, seed=0)


def trial(order, lr, values, weight=0.0, **others):
    config = {
        "family": "every",
        "chaos_order": order,
        "quadrature_size": order + 1,
        "lr": lr,
        "chaos_weight": weight,
        "objective": "brier",
    }
    return {**config, **others}, values


RECORDS = [
    searched(
        "best",
        [
            trial(1, 0.1, [0.2, 0.4]),
            trial(3, 0.2, [0.5, 0.5]),
            trial(1, 0.3, []),
            trial(1, 0.1, [0.3], 0.01),
        ],
    ),
    searched(
        "best-p0",
        [
            trial(0, 0.1, [0.4, 0.4]),
            trial(0, 0.2, [0.4, 0.4]),
            trial(0, 0.3, [0.1, 0.1]),
            trial(0, 0.1, [0.2], 0.01),
        ],
    ),
    searched("best-p0", [trial(0, 0.1, [9.0, 9.0])], device="other"),
]


def test_pairs_differ_in_the_order_alone():
    pairs = paired_trials(RECORDS)
    assert [(p.dataset, p.config["lr"], p.penalised, round(p.ours - p.control, 6)) for p in pairs] == [
        ("cora", 0.1, False, -0.1),
        ("cora", 0.2, False, 0.1),
        ("cora", 0.1, True, 0.1),
    ]


def test_tables():
    assert TABLES["chaos-datasets"][1](RECORDS).splitlines()[2] == "| cora | 1/2 | +0.0000 | 0/1 | +0.1000 |"
    assert TABLES["chaos-objectives"][1](RECORDS).splitlines()[2:] == [
        "| brier | 1 | 2 | 1/1 | -0.1000 | 0/1 | +0.1000 |",
        "| brier | 3 | 4 | 0/1 | +0.1000 | – | – |",
    ]
    assert "| every | None |" in TABLES["chaos-families"][1](RECORDS)
    assert TABLES["chaos-datasets"][1]([]) == "Not measured yet.\n"
