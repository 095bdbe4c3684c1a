"""Trials of the search, paired by configuration."""

from dataclasses import replace

from dssgnn.baselines import DeepEnsemble
from dssgnn.benchmarks.calibration.norms import control_of, norm_rows, size_rows
from dssgnn.benchmarks.calibration.search.space import PENALTY
from dssgnn.benchmarks.calibration.tables import TABLES
from dssgnn.benchmarks.calibration.tables.chaos import paired_trials
from dssgnn.benchmarks.records import Record


def searched(arm, trials, dataset="cora", device="cpu"):
    config = {
        "trials": [{"config": c, "val_brier": values} for c, values in trials],
        "run": {"splits": [0]},
    }
    return Record("calibration-search", dataset, "dss-gnn", f"{arm}, first round", {}, config, device, seed=0)


def trial(order, lr, values, weight=0.0, **others):
    config = {
        "family": "every",
        "chaos_order": order,
        "quadrature_size": order + 1,
        "lr": lr,
        "logit_weight": weight,
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


def test_arms_of_two_devices_are_paired_where_no_device_has_both():
    there = replace(RECORDS[0], device="a GPU")
    (first, *_) = paired_trials([there, RECORDS[2]])
    assert (first.config["lr"], round(first.ours - first.control, 6)) == (0.1, -8.7)
    assert paired_trials([there]) == []


def test_tables():
    assert TABLES["chaos-datasets"][1](RECORDS).splitlines()[2] == "| cora | 1/2 | +0.0000 | 0/1 | +0.1000 |"
    assert TABLES["chaos-objectives"][1](RECORDS).splitlines()[2:] == [
        "| drawn | brier | 1 | 2 | 1/1 | -0.1000 | 0/1 | +0.1000 |",
        "| drawn | brier | 3 | 4 | 0/1 | +0.1000 | – | – |",
    ]
    assert "| drawn | every | None |" in TABLES["chaos-families"][1](RECORDS)
    assert TABLES["chaos-datasets"][1]([]) == "Not measured yet.\n"


ROW = [Record("calibration", "cora", "gcn", "paper", {"brier": 0.2}, {}, "cpu", split=0, seed=0)]


def measured(label, values, dataset="cora"):
    return [
        Record(
            "calibration-ablation", dataset, "dss-gnn", label, {"brier": v, "chaos_energy": 0.5}, {}, "cpu", split=s,
            seed=0,
        )
        for s, v in enumerate(values)
    ]  # fmt: skip


def test_norms_are_compared_with_the_same_norm_at_order_0():
    rows = norm_rows()
    assert len(rows) == 11
    for label, make in rows.items():
        config = make("cora").config
        assert f"P={config['chaos_order']}, " in label
        assert make("cora").training.epochs == 300
        control = rows[control_of(config["norm"])]("cora").config
        if "logit_weight" in config:
            assert config.pop("logit_weight") == PENALTY
            assert label.endswith(", penalty")
            assert make("cora").training.logit_weight == PENALTY
        differ = {name for name in config if config[name] != control[name]}
        allowed = {"chaos_order", "quadrature_size", "objective", "joint_dropout"}
        assert differ <= allowed | ({"norm"} if config["norm"] == "joint" else set())
    records = [
        *measured("start, P=0, batch norm", [0.3, 0.4]),
        *measured("start, P=0, batch norm, penalty", [0.1, 0.4]),
        *measured("start, P=0, no norm", [0.1, 0.1]),
        *measured("start, P=3, joint norm, quadrature", [0.2, 0.2]),
        *measured("start, P=3, no norm, predictive", [0.1]),  # not yet all splits
        *measured("start, P=0, batch norm", [0.3], "texas"),
        *measured("start, P=3, joint norm, quadrature", [0.2], "texas"),  # one split says nothing
    ]
    line, penalised = TABLES["chaos-norms"][1](records).splitlines()[2:]
    assert line.startswith(
        "| joint | quadrature | P=0 | cora | 0.3500 ± 0.0500 | 0.2000 ± 0.0000 | -0.1500 |"
    )
    assert line.endswith("| 0.500 | 2/2 | 1 | 0.50 ± 0.00 |")
    assert "| P=0, penalty | cora | 0.2500 ± 0.1500 |" in penalised
    again = [replace(r, seed=1, device="a GPU") for r in [*records[:2], *records[6:8]]]
    again = [
        replace(r, metrics={**r.metrics, "brier": r.metrics["brier"] + 0.1 * (i < 2)})
        for i, r in enumerate(again)
    ]
    (line, _) = TABLES["chaos-norms"][1]([*records, *again]).splitlines()[2:]
    assert "| 0.4000 ± 0.0500 | 0.2000 ± 0.0000 | -0.2000 |" in line  # means of what is compared
    assert "| 2/2 | 2 |" in line  # two runs a split, each pair on one device
    other = [replace(r, config={"lr": 1}) for r in again]
    for seed in ([r for r in again if r.split == 0], other):  # not the same splits, not the same network
        (line, _) = TABLES["chaos-norms"][1]([*records, *seed]).splitlines()[2:]
        assert "| 2/2 | 1 |" in line
    assert TABLES["chaos-norms"][1]([]) == "Not measured yet.\n"
    assert TABLES["chaos-norms-glance"][1](records).splitlines() == [
        "| norm | objective | P=3 less | cora |",
        "| --- | --- | --- | --- |",
        "| joint | quadrature | P=0 | -0.150 |",
        "| joint | quadrature | P=0, penalty | -0.050 |",
    ]


def test_p_values_of_norms_are_corrected_over_the_graphs():
    """And another network is no control, nor are other splits."""
    ours, theirs = ([0.2 + 0.01 * i for i in range(10)], [0.3 + 0.011 * i for i in range(10)])
    label, control = "start, P=3, joint norm, predictive", "start, P=0, batch norm"
    two = [
        record
        for dataset in ("cora", "texas")
        for record in [*measured(label, ours, dataset), *measured(control, theirs, dataset)]
    ]
    assert all("| 0.004 | 10/10 |" in line for line in TABLES["chaos-norms"][1](two).splitlines()[2:])
    longer = [
        replace(r, config={"training": {"epochs": 9, "objective": "mean"}})
        for r in measured(control, theirs, "wisconsin")
    ]
    for objective, epochs, shown in (("brier", 9, 3), ("mean", 8, 2)):
        own = [
            replace(r, config={"training": {"epochs": epochs, "objective": objective}})
            for r in measured(label, ours, "wisconsin")
        ]
        assert len(TABLES["chaos-norms"][1]([*two, *longer, *own]).splitlines()) == 2 + shown
    fewer = [*measured(label, ours[:9], "wisconsin"), *measured(control, theirs, "wisconsin")]
    assert (
        TABLES["chaos-norms"][1]([*two, *fewer]).splitlines()[2:]
        == TABLES["chaos-norms"][1](two).splitlines()[2:]
    )


def test_seeds_are_compared_wherever_they_were_run():
    """A seed of two devices counts once."""
    label, control = "start, P=3, joint norm, predictive", "start, P=0, batch norm"
    records = [
        *measured(control, [0.4, 0.4]),
        *measured(label, [0.1, 0.2]),
        *[replace(r, device="a GPU") for r in measured(label, [0.3, 0.4])],
        *[replace(r, seed=1, device="a GPU") for r in measured(control, [0.5, 0.6])],
        *[replace(r, seed=1) for r in measured(label, [0.4, 0.4])],
        *[replace(r, seed=2) for r in measured(label, [0.9, 0.9])],  # which the control has not
    ]
    (line,) = TABLES["chaos-norms"][1](records).splitlines()[2:]
    assert "| 0.4750 ± 0.0250 | 0.3250 ± 0.0250 | -0.1500 |" in line
    assert "| 2/2 | 2 |" in line


def test_an_order_is_compared_with_as_much_network_as_it_is():
    wide, ensemble = (make("cora") for make in size_rows().values())
    alone = norm_rows()[control_of("joint")]("cora")
    order = norm_rows()["start, P=3, joint norm, predictive"]("cora")
    assert ensemble.members == order.config["quadrature_size"] == 4
    assert ensemble.combine is DeepEnsemble
    assert (
        (ensemble.config, ensemble.training)
        == (alone.config, alone.training)
        == (alone.config, wide.training)
    )
    assert len({ensemble.seed(split, member) for split in range(10) for member in range(4)}) == 40
    states = [made.config["hidden_channels"] * (made.config["chaos_order"] + 1) for made in (wide, order)]
    assert states[0] == states[1] == 256
    assert {k: v for k, v in wide.config.items() if k != "hidden_channels"} == {
        k: v for k, v in alone.config.items() if k != "hidden_channels"
    }
    ours = measured("start, P=3, joint norm, predictive", [0.2, 0.3])
    for label, own, control in zip(
        size_rows(),
        ({"hidden_channels": 256}, {"members": 4}),
        ("four times as wide", "ensemble of four"),
        strict=True,
    ):
        theirs = [replace(r, config=own) for r in measured(label, [0.1, 0.1])]
        ours = [replace(r, config=dict.fromkeys(own, 1)) for r in ours]
        (line,) = TABLES["chaos-norms"][1]([*theirs, *ours]).splitlines()[2:]
        start = f"| joint | predictive | P=0, {control} | cora |"
        assert line.startswith(f"{start} 0.1000 ± 0.0000 | 0.2500 ± 0.0500 | +0.1500 |")


def test_controls_of_size_stand_beside_the_joint_norm_alone():
    """They have its norm; the tables of others would claim what was not run."""
    kinds = ("start, P=3, batch norm, predictive", "start, P=3, joint norm, predictive")
    wide, _ = size_rows()
    records = [r for kind in kinds for r in measured(kind, [0.2, 0.3])]
    records += [replace(r, config={"hidden_channels": 256}) for r in measured(wide, [0.1, 0.1])]
    (line,) = TABLES["chaos-norms"][1]([replace(r, config={}) for r in records]).splitlines()[2:]
    assert line.startswith("| joint | predictive | P=0, four times as wide |")


def test_targets_say_against_whom_the_order_wins_and_loses():
    ours = [0.2 + 0.001 * i for i in range(10)]
    worse, better = ([value + sign * (0.05 + 0.001 * i) for i, value in enumerate(ours)] for sign in (1, -1))
    records = [
        *measured("start, P=3, joint norm, predictive", ours),
        *measured("start, P=0, batch norm", worse),
        *measured("start, P=0, batch norm, width 256", better),
    ]
    rows = [line.split(" | ") for line in TABLES["calibration-targets"][1]([*ROW, *records]).splitlines()]
    start, end = (
        "| a fixed network, joint norm, predictive loss: P = 3 below P = 0",
        ", Holm-corrected p < 0.05",
    )
    found = {
        row[0].removeprefix(start).removesuffix(end): row[1:] for row in rows if row[0].startswith(start)
    }
    assert found == {
        "": ["5 of 10", "1 of 1", " |"],  # the other nine graphs decide
        " four times as wide": ["–", "0 of 1 (not cora); above it on cora", " |"],
    }
    again = [replace(r, seed=1, metrics={**r.metrics, "brier": 0.3}) for r in records[:20]]
    text = TABLES["calibration-targets"][1]([*ROW, *records, *again])
    assert (
        "| 5 of 10 | 1 of 1; repetitions alone: 0 of 1 (not cora) |" in text
    )  # a tie that no test calls a win
