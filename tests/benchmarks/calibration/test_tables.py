"""The calibration tables from hand-made records; the published values as printed."""

from dataclasses import replace

import pytest

from dssgnn.benchmarks.calibration import DATASETS
from dssgnn.benchmarks.calibration.ablations import ABLATIONS, datasets_of
from dssgnn.benchmarks.calibration.printed import published, published_ablations
from dssgnn.benchmarks.calibration.tables import TABLES
from dssgnn.benchmarks.calibration.tables.targets import PRESENT
from dssgnn.benchmarks.calibration.timing import REPEATED, TIMING
from dssgnn.benchmarks.frame import by_row, config_of_row
from dssgnn.benchmarks.records import Record


def rows(method, variant, briers, dataset="cora", accuracy=0.87, device="NVIDIA H200", **others):
    def record(split, brier):
        metrics = {"accuracy": accuracy, "brier": brier, "ece": 0.02, **others}
        return Record("calibration", dataset, method, variant, metrics, {}, device, split=split, seed=0)

    return [record(*pair) for pair in enumerate(briers)]


def table(name, records):
    return TABLES[name][1](records).splitlines()


def test_published_values_are_the_printed_ones():
    """Typed from the paper's tables."""
    cora, squirrel = published()["cora"], published()["squirrel"]
    assert (cora["dss-gnn"]["accuracy"], cora["dss-gnn"]["brier"]) == (0.8663, 0.207)
    assert (cora["gcn"]["accuracy"], cora["gcn"]["accuracy_sd"], cora["gcn"]["brier"]) == (
        0.8745,
        0.0161,
        0.213,
    )
    assert cora["mc-dropout"]["brier"] == 0.2188
    assert squirrel["dss-gnn"]["brier"] == 0.394
    assert len(published()) == 14


def test_a_row_beside_the_paper():
    (line,) = table("calibration", rows("gcn", "paper", [0.20, 0.22], brier_scaled=0.19))[2:]
    assert line == (
        "| cora | gcn | paper | 2 | 1 | 87.00 ± 0.00 | 87.45 ± 1.61 | 0.2100 ± 0.0100 | 0.213 ± 0.014 | 0.1900 | "
        "0.0200 ± 0.0000 | – |"
    )


def test_the_matrix_marks_the_lowest_of_a_graph():
    records = [
        record
        for system, score in (("gcn", 0.2), ("gat", 0.1))
        for record in rows(system, "paper", [score] * 10) + rows(system, "paper", [score] * 9, "texas")
    ]
    lines = table("calibration-matrix", records)
    assert lines[0] == "| mean test Brier | cora | texas |"
    assert lines[2:] == [
        "| gat paper | **0.100** | – |",
        "| gcn paper | 0.200 | – |",
        "| DSS-GNN in the paper | 0.207 | 0.240 |",
    ]


def test_both_devices_runs_count_and_defaults_do_not():
    records = rows("gcn", "paper", [0.9], device="cpu, 2 threads") + rows("gcn", "paper", [0.2])
    records = [*records[::-1], *rows("gcn", "default", [0.5])]
    lines = table("calibration", records)
    assert len(lines) == 3
    assert "| 0.5500 ± 0.0000 |" in lines[2]


def ablated(variant, briers, dataset="cora", device="NVIDIA H200", **others):
    """Rows whose mean logit's Brier scores are these."""
    made = [
        replace(record, metrics={**record.metrics, "brier_mean": record.metrics["brier"]})
        for record in rows("dss-gnn", variant, briers, dataset, device=device, accuracy_mean=0.86)
    ]
    others = {"brier": 0.5, "chaos_energy": 0.25, **others}
    return [replace(r, benchmark="calibration-ablation", metrics={**r.metrics, **others}) for r in made]


@pytest.mark.parametrize(
    ("few", "many"), [("NVIDIA H200", "cpu, 2 threads"), ("cpu, 2 threads", "NVIDIA H200")]
)
@pytest.mark.parametrize("reverse", [True, False])
def test_a_run_is_of_one_device(few, many, reverse):
    """The run with the most splits stands, also against splits that it lacks; the others' are not filled in."""
    records = rows("gcn", "paper", [0.9, 0.9], device=few) + rows("gcn", "paper", [0.2] * 5, device=many)[2:]
    (splits,) = by_row(records[::-1] if reverse else records, "calibration").values()
    assert {r.device for r in splits.values()} == {many}
    assert sorted(splits) == [2, 3, 4]
    ablations = ablated("published, P=1", [0.9, 0.9], device=few) + ablated(
        "published, P=1", [0.2] * 3, device=many
    )
    line = table("ablation-order", ablations)[2]
    assert line.startswith("| cora | published | P=1 | 3 | 0.2000 ± 0.0000 |")


def test_every_whole_run_of_a_configuration_counts():
    """Also where one device repeated a row and another did not: nobody's best or worst run is dropped."""
    gpu = rows("gcn", "paper", [0.1, 0.1])
    cpu = [r for seed in (0, 1) for r in repeated(rows("gcn", "paper", [0.4, 0.4], device="cpu"), seed)]
    (splits,) = by_row(gpu + cpu, "calibration").values()
    assert [r.metrics["brier"] for r in splits.values()] == pytest.approx(
        [0.325, 0.325]  # a seed counts once, however many devices it was run on
    )
    assert {r.metrics["runs"] for r in splits.values()} == {2}

    def again(key, runs):
        assert key == ("cora", "gcn", "paper")
        return [own for (_, seed), own in runs.items() if seed]

    (some,) = by_row(gpu + cpu, "calibration", again).values()
    assert some[0].metrics["brier"] == 0.4
    assert by_row(gpu, "calibration", again) == {}


def test_the_first_run_says_which_configuration_a_row_has():
    """Repetitions of what was run before do not outvote it."""
    old = [
        replace(r, config={"lr": 1}) for s in (1, 2) for r in repeated(rows("gcn", "paper", [0.9, 0.9]), s)
    ]
    (splits,) = by_row(old + rows("gcn", "paper", [0.1, 0.1]), "calibration").values()
    assert [r.metrics["brier"] for r in splits.values()] == [0.1, 0.1]


def test_a_row_has_the_splits_of_its_first_run():
    """In whatever order the file has the records, and however many splits a repetition has."""
    halves = [
        [r for r in rows("gcn", "paper", [0.1, 0.2, 0.3, 0.4], device=d) if r.split in splits]
        for d, splits in (("a", (0, 1)), ("b", (2, 3)))
    ]
    for records in (halves[0] + halves[1], halves[1] + halves[0]):
        (splits,) = by_row(records, "calibration").values()
        assert set(splits) == {0, 1}
    longer = repeated(rows("gcn", "paper", [0.3, 0.4, 0.5]), 1)
    (splits,) = by_row(rows("gcn", "paper", [0.1, 0.2]) + longer, "calibration").values()
    assert [r.metrics["brier"] for r in splits.values()] == pytest.approx([0.2, 0.3])


def test_more_runs_decide_between_configurations_of_as_many_splits():
    first, second = ([replace(r, config={"lr": lr}) for r in rows("gcn", "paper", [lr] * 2)] for lr in (1, 2))
    second = [replace(r, device="cpu") for r in second]
    for records in (first + second, second + first):
        (splits,) = by_row([*records, *repeated(second, 1)], "calibration").values()
        assert {r.metrics["brier"] for r in splits.values()} == {2}


def test_lists_do_not_make_another_configuration():
    records = [
        replace(r, config={"lr": 1, "lists": {"bins": [r.split]}}) for r in rows("gcn", "paper", [0.1, 0.2])
    ]
    (splits,) = by_row(records, "calibration").values()
    assert set(splits) == {0, 1}


def test_what_is_left_out_of_a_configuration():
    config = {"lr": 1, "training": {"lr": 2, "epochs": 3}, "seeds": [1]}
    (record,) = (replace(r, config=config) for r in rows("gcn", "paper", [0.1]))
    assert config_of_row(record) == {"lr": 1, "training": {"lr": 2, "epochs": 3}}
    assert config_of_row(record, ["training.lr"]) == {"lr": 1, "training": {"epochs": 3}}
    assert config_of_row(record, ["lr"]) == {"training": {"lr": 2, "epochs": 3}}


def test_ablations_beside_the_paper():
    records = ablated("published, P=2", [0.20, 0.22]) + ablated("published, P=0", [0.23])
    lines = table("ablation-order", records)
    assert lines[2:] == [
        "| cora | published | P=0 | 1 | 0.2300 ± 0.0000 | 0.228 ± 0.013 | 86.00 ± 0.00 | 85.12 ± 1.06 "
        "| 0.5000 ± 0.0000 | 0.2500 ± 0.0000 |",
        "| cora | published | P=2 | 2 | 0.2100 ± 0.0100 | 0.212 ± 0.016 | 86.00 ± 0.00 | 86.33 ± 1.12 "
        "| 0.5000 ± 0.0000 | 0.2500 ± 0.0000 |",
    ]
    (line,) = table("ablation-regulariser", ablated("paper, lambda=0.001", [0.3], "texas"))[2:]
    assert line.startswith(
        "| texas | paper | lambda=0.001 | 1 | 0.3000 ± 0.0000 | 0.246 | 86.00 ± 0.00 | 0.5"
    )
    (line,) = table("ablation-norm", ablated("published, norm on", [0.3], "citeseer"))[2:]
    assert "| 0.480 ± 0.024 | 86.00 ± 0.00 | 67.03 ± 1.85 |" in line
    lines = table("ablation-objective", ablated("published, brier", [0.3]))
    assert "paper" not in lines[0]
    assert table("ablation-quadrature", records) == ["Not measured yet."]


def test_what_is_published_has_its_setting():
    tables = published_ablations()
    for table_name, ablation in (
        ("p_brier", "order"),
        ("p_acc", "order"),
        ("lreg_ablation", "regulariser"),
        ("S_ablation", "quadrature"),
        ("bn_calibration", "norm"),
    ):
        for dataset, cells in tables[table_name].items():
            assert dataset in DATASETS
            assert set(cells) == set(ABLATIONS[ablation])
    assert set(tables["bn_calibration"]) == set(datasets_of("norm", "published"))
    # Typed from the paper.
    assert tables["p_brier"]["minesweeper"]["P=6"] == {"brier": 0.169, "brier_sd": 0.014}
    assert tables["lreg_ablation"]["texas"]["lambda=0"]["brier"] == 0.366
    assert tables["S_ablation"]["wisconsin"]["S=2"]["brier"] == 0.142
    assert (
        tables["decompose"]["chameleon"]["ChebNet"]["brier"]
        == published()["chameleon"]["chebnet"]["brier"]
        == 0.776
    )
    assert tables["readout_coincidence"]["squirrel"] == {"brier_difference": 0.0007, "disagreement": 0.0008}
    hybrid = published()["tolokers"]["dss-hybrid"]
    assert (hybrid["accuracy"], hybrid["accuracy_sd"], hybrid["brier"]) == (0.8119, 0.005, 0.255)
    assert published()["tolokers"]["gcn, batch norm"]["brier"] == 0.291


def test_decomposition_chooses_on_validation():
    control = [
        replace(record, metrics={**record.metrics, "brier_mean": 0.28})
        for record in rows("chebnet", "paper", [0.28] * 2)
    ]
    records = [
        *control,
        *ablated("published, P=0", [0.25] * 2, val_brier=0.20),
        *ablated("published, P=1", [0.10] * 2, val_brier=0.19),  # the lowest on the test part
        *ablated("published, P=2", [0.20] * 2, val_brier=0.18),
        *ablated("published, P=3", [0.01], val_brier=0.01),  # of other splits
    ]
    assert table("ablation-decomposition", records)[2:] == [
        "| cora | published | 2 | 0.2800 ± 0.0000 | 0.281 | 0.2500 ± 0.0000 | 0.228 | 0.2000 ± 0.0000 | 0.207 | P=2 "
        "| -20.0 | -9.2 |"
    ]
    (line,) = table("ablation-decomposition", records[2:])[2:]
    assert line.startswith("| cora | published | 2 | – | 0.281 |")


def test_readouts():
    plain = {"brier_mean": 0.21, "chaos_energy": 0.5}
    records = rows("dss-gnn", "published", [0.20, 0.22], **plain, disagreement=0.001)
    records += rows("dss-gnn", "best", [0.20], **plain) + rows("gcn", "paper", [0.2], **plain)
    for without_order in ("best-p0", "twin-p0", "twin-p0-penalty"):
        records += rows("dss-gnn", without_order, [0.20], **plain)
    assert table("ablation-readouts", records)[2:] == [
        "| cora | dss-gnn | best | 1 | 0.0100 | – | – | – | 0.5000 ± 0.0000 |",
        "| cora | dss-gnn | published | 2 | 0.0100 | 0.0002 | 0.10 | 0.03 | 0.5000 ± 0.0000 |",
    ]


def test_agreement_of_rows_without_a_printed_deviation():
    """The GCN's is taken; what is not printed, or printed without any spread, is left out."""
    (line,) = table("calibration-agreement", rows("chebnet", "paper", [0.295] * 10))[2:]
    assert line == "| cora | chebnet | paper | – |  | +1.0 | within two |"
    (line,) = table("calibration-agreement", rows("gat", "paper", [0.057] * 10, "questions", 0.9702))[2:]
    assert line == "| questions | gat | paper | +0.0 | within two | – |  |"
    readouts = {"accuracy_mean": 0.8433 + 0.0097, "brier_mean": 0.226}
    (line,) = table("calibration-agreement", rows("dss-hybrid", "paper", [0.9] * 10, **readouts))[2:]
    assert line == "| cora | dss-hybrid | paper | +1.0 | within two | -1.0 | within two |"


def test_agreement_with_the_paper():
    near, far = (
        table("calibration-agreement", rows("gcn", "paper", [0.2] * 10, accuracy=a))[2] for a in (0.90, 0.91)
    )
    assert near == "| cora | gcn | paper | +1.6 | within two | -0.9 | within two |"
    assert far == "| cora | gcn | paper | +2.2 | not within two | -0.9 | within two |"
    ensemble = table(
        "calibration-agreement", rows("deep-ensemble", "paper", [0.2] * 10, accuracy=0.8745 + 0.0161)
    )
    assert ensemble[2].startswith("| cora | deep-ensemble | paper | +1.0 |")


def test_rows_that_the_paper_does_not_print():
    """Nor a row of nine splits, nor one that only shares its name with a printed one."""
    others = rows("gpr-gnn", "paper", [0.2] * 10) + rows("gcn", "temperature", [0.2] * 10)
    assert table("calibration-agreement", others + rows("gat", "paper", [0.2] * 9)) == ["Not measured yet."]
    assert all(" | – | " in line for line in table("calibration", others)[2:])


def test_paired_comparison_is_corrected_over_datasets():
    ours = [0.10 + 0.01 * i for i in range(10)]
    theirs = [b + 0.01 + 0.001 * i for i, b in enumerate(ours)]
    records = [
        record
        for dataset in ("cora", "texas")
        for record in rows("dss-gnn", "best", ours, dataset) + rows("gcn", "paper", theirs, dataset)
    ]
    lines = table("calibration-paired", records)
    assert len(lines) == 4
    assert lines[2].startswith("| gcn | paper | cora | -0.0145 |")
    assert lines[2].endswith("| 0.004 | 10/10 | 1, 1 |")  # 2/1024 twice


def test_repetitions_are_averaged_before_they_are_compared():
    def runs(method, variant, *briers):
        return [r for seed, b in enumerate(briers) for r in repeated(rows(method, variant, b), seed)]

    ours = runs("dss-gnn", "best", [0.1, 0.2], [0.1, 0.2], [0.3, 0.4], [0.9, 0.9])
    theirs = runs("gcn", "paper", [0.9, 0.9], [0.3, 0.3], [0.3, 0.4])
    (line,) = table("calibration-paired", ours + theirs)[2:]
    # Ours of seeds 1 to 3, as the first was looked at: .4333 and .5; theirs, which nobody chose, of all: .5 and .5333.
    assert "| -0.0500 |" in line
    assert line.endswith("| 2/2 | 3, 3 |")
    other = [replace(r, config={"lr": 1}) if r.seed == 2 else r for r in ours]
    (line,) = table("calibration-paired", other + theirs)[2:]
    assert "| +0.0083 |" in line  # seed 2 is another configuration's: .5 and .55
    (line,) = table("calibration-paired", ours + runs("gcn-res", "tuned", [0.9, 0.9], [0.2, 0.3]))[2:]
    assert "| +0.2167 |" in line  # theirs was chosen too
    assert line.endswith("| 0/2 | 3, 1 |")
    twin = runs("dss-gnn", "twin-p0", [0.2, 0.2], [0.4, 0.4])
    (line,) = table("calibration-paired", ours + twin)[2:]
    assert "| -0.2500 |" in line  # of the run that both repeated
    assert line.endswith("| 2/2 | 1, 1 |")
    assert "| 2 | 4 |" in (line := table("calibration", ours)[2])
    assert "0.3875 ±" in line  # the table itself is of all runs of a split
    line = table("calibration", other)[2]
    assert "| 2 | 3 |" in line
    assert "0.4000 ±" in line


def test_runs_that_lack_splits_are_left_out_of_a_row():
    whole = rows("gcn", "paper", [0.1, 0.2])
    (line,) = table("calibration", whole + repeated(rows("gcn", "paper", [0.9]), 1))[2:]
    assert "| 2 | 1 |" in line
    assert "0.1500 ±" in line


def test_a_seed_on_two_devices_is_one_run():
    here, there = (rows("gcn", "paper", [0.2, 0.4], device=device) for device in ("cpu", "NVIDIA H200"))
    (line,) = table("calibration", here + there)[2:]
    assert line.startswith("| cora | gcn | paper | 2 | 1 |")
    (line,) = table("calibration-paired", rows("dss-gnn", "best", [0.1, 0.2]) + here + there)[2:]
    assert line.endswith("| 1, 1 |")


def test_twins_of_another_search_are_not_compared():
    def searched(variant, width, device="cpu"):
        found = rows("dss-gnn", variant, [0.1, 0.2, 0.3])
        return [replace(r, config={"hidden_channels": width, "arm": variant}, device=device) for r in found]

    ours = searched("best", 64)
    assert len(table("calibration-paired", ours + searched("twin-p0", 64))) == 3
    penalised = [
        replace(r, config={**r.config, "logit_weight": 0.01}) for r in searched("twin-p0-penalty", 64)
    ]
    assert len(table("calibration-paired", ours + penalised)) == 3  # its penalty is what makes it that twin
    slow = [replace(r, config={**r.config, "training": {"lr": 0.1}}) for r in searched("twin-p0", 64)]
    for other in (searched("twin-p0", 128), searched("twin-p0", 64, "NVIDIA H200"), slow):
        assert table("calibration-paired", ours + other) == ["Not measured yet."]


def test_targets_are_counted():
    def all_of(method, variant, brier, accuracy, **others):
        return [
            record
            for dataset in PRESENT
            for record in rows(method, variant, [brier(dataset)] * 10, dataset, accuracy(dataset), **others)
        ]

    def printed(name, key, shift=0.0):
        return lambda d: published()[d][name][key] + shift * (published()[d][name][f"{key}_sd"] or 0)

    best = all_of("dss-gnn", "best", lambda d: 0.05 if d != "cora" else 0.5, lambda d: 0.9)
    gcn = all_of("gcn", "paper", printed("gcn", "brier", 1), printed("gcn", "accuracy", -1))
    gat = all_of("gat", "paper", printed("gat", "brier", 3), printed("gat", "accuracy"))
    times = [
        Record(
            TIMING,
            "all",
            "gcn",
            variant,
            {"seconds": s, "graphs": 10.0},
            {"datasets": list(PRESENT), "splits": list(range(10)), "workers": 2},
            device,
        )
        for variant, s, device in (
            ("paper", 200.4, "a GPU"),
            ("batch-norm", 90.0, "a GPU"),
            ("slow", 999.0, "cpu"),
        )
    ]
    text = TABLES["calibration-targets"][1](best + gcn + gat + times)
    lines = [line[2:-2].split(" | ") for line in text.splitlines()[2:]]
    cells = {what: measured for what, _, measured, _ in lines}
    verdicts = {what: met for what, _, _, met in lines}
    assert cells["`best` below the paper's DSS-GNN, mean test Brier"] == "9 of 10 (not cora)"
    (others,) = [text for what, text in cells.items() if what.startswith("`best` below every other system")]
    assert others == "9 of 10 (not cora)"
    assert cells["`best` above another system by at most"].endswith("(cora, gcn paper)")
    near = "within two published standard deviations"
    assert cells[f"gcn `paper` {near}"] == "accuracy 10 of 10; brier 10 of 10"
    assert cells[f"gat `paper` {near}"].startswith("accuracy 10 of 10; brier 0 of 10 (not cora,")
    assert "200 s (gcn paper, 10 graphs)" in text
    missed = {"`best` above another system by at most", f"gat `paper` {near}"}
    assert {what for what, met in verdicts.items() if met == "missed"} == missed
    assert {*verdicts.values()} == {"met", "missed"}
    assert (
        TABLES["calibration-time"][1](best + times).splitlines()[3]
        == "| gcn | paper | 10 | 10 | 2 | a GPU | 200 |"
    )
    few = [replace(r, config={**r.config, "splits": [0]}) for r in times]
    assert "alone on the GPU" not in TABLES["calibration-targets"][1](best + few)
    again = [
        replace(r, benchmark=REPEATED, metrics={**r.metrics, "brier": 0.25})
        for r in gcn
        if r.setting == "cora"
    ]
    (line,) = TABLES["calibration-repeated"][1](gcn + again).splitlines()[2:]
    assert line.startswith("| cora | gcn | paper | 0.22")
    assert "| 0.2500 | +0.02" in line
    for other in (
        [replace(r, config={**r.config, "lr": 9}) for r in again],
        again[:5],
        [replace(r, device="cpu") for r in again],
    ):  # another configuration, other splits, another device
        assert TABLES["calibration-repeated"][1](gcn + other) == "Not measured yet.\n"
    scaled = rows("gat", "paper", [0.9] * 10, "texas", brier_scaled=0.01)
    text = TABLES["calibration-targets"][1](best + scaled)
    assert "+0.0400 (texas, gat paper with a temperature)" in text
    assert "9 of 10 (not cora)" in TABLES["calibration-targets"][1](best)  # nobody else was run


def verdicts_of(records):
    lines = [line[2:-2].split(" | ") for line in TABLES["calibration-targets"][1](records).splitlines()[2:]]
    return [met for _, _, _, met in lines]


@pytest.mark.parametrize(
    ("lost", "verdicts"),
    [
        (1, ["met", "met", "missed"]),
        (2, ["missed", "met", "missed"]),
        (3, ["missed", "missed", "missed"]),
        (0, ["met", "met", "met"]),
    ],
)
def test_a_target_is_met_or_missed(lost, verdicts):
    """Nine of ten against the paper, eight of ten against others, nowhere above one by more than 0.01."""
    records = []
    for i, dataset in enumerate(PRESENT):
        ours = published()[dataset]["dss-gnn"]["brier"] + (0.02 if i < lost else -0.02)
        theirs = ours + (-0.02 if i < lost else 0.02)
        records += rows("dss-gnn", "best", [ours] * 10, dataset)
        records += rows("bernnet", "paper", [theirs] * 10, dataset)
    assert verdicts_of(records) == verdicts


@pytest.mark.parametrize(("gap", "verdict"), [(0.009, "met"), (0.011, "missed")])
def test_nowhere_above_by_more_than_a_hundredth(gap, verdict):
    records = []
    for dataset in PRESENT:
        records += rows("dss-gnn", "best", [0.05] * 10, dataset)
        records += rows("bernnet", "paper", [0.05 - gap if dataset == "cora" else 0.06] * 10, dataset)
    assert verdicts_of(records)[2] == verdict
    assert verdicts_of(records[:20])[2] == ("" if verdict == "met" else verdict)  # one graph of ten


@pytest.mark.parametrize(
    ("near", "far", "verdict"),
    [(7, 0, ""), (8, 0, "met"), (8, 2, "met"), (7, 2, ""), (7, 3, "missed"), (0, 3, "missed")],
)
def test_graphs_that_were_not_run_may_still_decide(near, far, verdict):
    records = []
    for i, dataset in enumerate(PRESENT[: near + far]):
        printed = published()[dataset]["gcn"]
        shift = 0 if i < near else 3 * printed["brier_sd"]
        records += rows("gcn", "paper", [printed["brier"] + shift] * 10, dataset, printed["accuracy"])
    assert verdicts_of(records)[-1] == verdict


def test_targets_are_of_the_runs_that_are_compared():
    """Beside them stands what the first runs alone would say, and all of them."""
    first = rows("dss-gnn", "best", [0.3] * 10) + rows("gat", "paper", [0.2] * 10)
    text = TABLES["calibration-targets"][1](first)
    assert "| 8 of 10 | 0 of 1 (not cora) |" in text
    text = TABLES["calibration-targets"][1](first + repeated(rows("dss-gnn", "best", [0.06] * 10), 1))
    assert "| 8 of 10 | 1 of 1; first runs: 0 of 1 (not cora) |" in text
    assert (
        "| -0.1400 (cora, gat paper); first runs: +0.1000 (cora, gat paper); all runs: -0.0200 (cora, gat paper) |"
        in text
    )
    few = rows("gcn", "paper", [0.01] * 9)  # says nothing yet
    assert "| 8 of 10 | 0 of 1 (not cora) |" in TABLES["calibration-targets"][1](first + few)
    assert "gcn" not in TABLES["calibration-targets"][1](first + few)


def test_differences_at_a_glance():
    ours = [0.10 + 0.01 * i for i in range(10)]
    theirs = [b + 0.01 + 0.0008 * i for i, b in enumerate(ours)]
    records = rows("dss-gnn", "best", ours) + rows("gcn", "paper", theirs) + rows("gat", "paper", ours[::-1])
    records += rows("dss-gnn", "best", ours, "texas") + rows("gcn", "paper", [*ours[:9], 0.2], "texas")
    lines = table("calibration-pairs", records)
    assert lines[0] == "| `best` less | cora | texas |"
    assert lines[2:] == ["| gat paper | +0.000 | – |", "| gcn paper | -0.014* | -0.001 |"]


def repeated(records, seed):
    return [replace(record, seed=seed) for record in records]


def test_what_was_chosen_and_how_well_it_was_judged():
    config = {
        "family": "deep",
        "num_layers": 3,
        "norm": None,
        "chaos_order": 0,
        "logit_weight": 0.0,
        "lr": 0.01,
    }
    own = [replace(r, config=config) for r in rows("dss-gnn", "best-p0", [0.2, 0.4], val_brier=0.25)]
    lines = table("calibration-chosen", own + rows("gcn", "paper", [0.2], val_brier=0.1))
    assert lines[2:] == ["| cora | dss-gnn | best-p0 | deep, layers 3, P = 0 | 0.2500 | 0.3000 | +0.0500 |"]


def test_splits_that_chose_alone():
    def made(variant, benchmark, briers, lr):
        found = [replace(r, benchmark=benchmark) for r in rows("dss-gnn", variant, briers)]
        return [replace(r, config={"lr": lr if r.split else 1}) for r in found]

    one = made("best", "calibration", [0.2, 0.4], 1)
    alone = [
        replace(r, variant=f"best, chosen on split {r.split}")
        for r in made("best", "calibration-alone", [0.3, 0.6], 2)
    ]
    (line,) = table("calibration-alone", one + alone)[2:]
    assert line == "| cora | dss-gnn | best | 1 | 0.3000 ± 0.1000 | 0.4500 ± 0.1500 | +0.1500 | 1/2 |"
    (line,) = table("calibration-alone", one + alone[1:])[2:]  # as far as it has been run
    assert line == "| cora | dss-gnn | best | 1 | 0.4000 ± 0.0000 | 0.6000 ± 0.0000 | +0.2000 | 0/1 |"
    assert table("calibration-alone", alone) == ["Not measured yet."]


def test_splits_that_chose_alone_are_compared_over_the_same_seeds():
    """With the same scores seed by seed, neither is better, whichever seeds either side has more of."""

    def seeds(variant, benchmark, briers):
        found = [repeated(rows("dss-gnn", variant, [brier] * 2), seed) for seed, brier in enumerate(briers)]
        return [replace(r, benchmark=benchmark) for own in found for r in own]

    one = seeds("best", "calibration", [0.20, 0.24, 0.26])
    for count, runs, mean in ((1, 1, "0.2000"), (2, 1, "0.2400"), (3, 2, "0.2500")):
        alone = [
            replace(r, variant=f"best, chosen on split {r.split}")
            for r in seeds("best", "calibration-alone", [0.20, 0.24, 0.26][:count])
        ]
        (line,) = table("calibration-alone", one + alone)[2:]
        same = f"{mean} ± 0.0000"
        assert line == f"| cora | dss-gnn | best | {runs} | {same} | {same} | +0.0000 | 2/2 |"


def test_nothing_measured():
    assert all(make([]) == "Not measured yet.\n" for _, make in TABLES.values())
