"""`dssgnn bench calibration`: systems on the published splits, one record for each dataset, system and split."""

from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from dssgnn.benchmarks.records import Record, device_name, merge_records, read_records
from dssgnn.data import load
from dssgnn.devices import resolve_device
from dssgnn.estimator import DSSClassifier

__all__ = ["DATASETS", "run"]

# The graphs of the paper's first table.
DATASETS = (
    "cora", "citeseer", "pubmed", "texas", "cornell", "wisconsin", "chameleon", "squirrel", "coauthor-cs",
    "roman-empire", "amazon-ratings", "minesweeper", "tolokers", "questions",
)  # fmt: skip

_METRICS = ("accuracy", "brier", "nll", "ece", "accuracy_mean", "brier_mean", "chaos_energy")


def run(
    datasets: Iterable[str],
    methods: Iterable[str],
    splits: Iterable[int],
    out: Path,
    *,
    device: str = "auto",
    seed: int = 0,
    say: Callable[[Record], None] = lambda record: None,
) -> None:
    """Fit every method with its defaults on every split and add the test metrics to ``out``, one by one.

    What ``out`` holds already is not run again, so a sweep that was stopped goes on where it was. The epoch is
    chosen on validation Brier; the test part is read once, at the end.
    """
    place = device_name(torch.device(resolve_device(device)))
    methods, splits = tuple(methods), tuple(splits)
    done = {record.key for record in read_records(out)} if out.exists() else set()
    for name in datasets:
        for split in splits:
            data = None
            for method in methods:
                key = ("calibration", name, method, "default", split, seed, place)
                if key in done:
                    continue
                data = load(name, split=split) if data is None else data
                estimator = DSSClassifier(method=method, device=device, seed=seed).fit(data, name=name)
                metrics = estimator.state_.metrics
                record = Record(
                    benchmark="calibration",
                    setting=name,
                    method=method,
                    variant="default",
                    metrics={k: metrics["test"][k] for k in _METRICS}
                    | {"val_brier": metrics["val"]["brier"]},
                    config=estimator.get_params() | {"training": metrics["training"]},
                    device=place,
                    split=split,
                    seed=seed,
                    selected_on="validation brier",
                )
                merge_records(out, [record])
                say(record)
