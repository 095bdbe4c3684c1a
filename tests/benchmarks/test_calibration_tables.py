"""The calibration tables from hand-made records; the published values as printed."""

from dssgnn.benchmarks.calibration.tables import TABLES, published
from dssgnn.benchmarks.records import Record


def rows(method, variant, briers, dataset="cora", accuracy=0.87, device="NVIDIA H200"):
    def record(split, brier):
        metrics = {"accuracy": accuracy, "brier": brier, "ece": 0.02}
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
    lines = table("calibration", rows("gcn", "paper", [0.20, 0.22]))
    assert lines[2] == (
        "| cora | gcn | paper | 2 | 87.00 ± 0.00 | 87.45 ± 1.61 | 0.2100 ± 0.0100 | 0.213 ± 0.014 | 0.0200 ± 0.0000 |"
    )


def test_a_gpus_record_counts_and_defaults_do_not():
    records = rows("gcn", "paper", [0.9], device="cpu, 2 threads") + rows("gcn", "paper", [0.2])
    records = [*records[::-1], *rows("gcn", "default", [0.5])]
    lines = table("calibration", records)
    assert len(lines) == 3
    assert "| 0.2000 ± 0.0000 |" in lines[2]


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
    assert lines[2].endswith("| 0.004 | 10/10 |")  # 2/1024 twice


def test_nothing_measured():
    assert all(make([]) == "Not measured yet.\n" for _, make in TABLES.values())
