"""What the calibration table holds of a row: every metric of the test part, read once, at the end."""

from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace

import torch

from dssgnn.baselines.temperature import TemperatureScaled
from dssgnn.benchmarks.frame import Benchmark, Setup, split_tasks, train, train_together
from dssgnn.expansion import LogitDistribution
from dssgnn.training import NodeTask, TrainingResult
from dssgnn.training.loop import evaluate

__all__ = ["ABLATION", "ALONE", "CALIBRATION", "measure", "measure_together"]

_READ = (
    "accuracy",
    "brier",
    "nll",
    "ece",
    "accuracy_mean",
    "brier_mean",
    "nll_mean",
    "ece_mean",
    "chaos_energy",
)
_SCALED = ("brier", "nll", "ece", "brier_mean", "ece_mean")
# What no table does without. Rows of before there was one are run again.
_METRICS = (*_READ, "brier_scaled", "nll_scaled", "ece_scaled", "temperature", "val_brier")


def measure(setup: Setup, name: str, splits: Sequence[int], device: torch.device) -> list[dict[str, float]]:
    """Every metric of every split, the test part of each read once, at the end.

    ``*_scaled`` are of the system with its logits over a temperature, fitted on the validation nodes.
    """
    return measure_together([setup], name, splits, device)[0]


def measure_together(
    setups: Sequence[Setup], name: str, splits: Sequence[int], device: torch.device
) -> list[list[dict[str, float]]]:
    """`measure` for setups that differ in their seeds alone, as one population where the device has room for it."""
    tasks = split_tasks(name, splits, device, setups[0].preparation, **setups[0].operator)
    together = None
    with suppress(torch.OutOfMemoryError) if len(setups) > 1 else nullcontext():
        together = train_together(setups, tasks, splits)
    if together is None:
        if device.type == "cuda":
            torch.cuda.empty_cache()
        together = [train(setup, tasks, splits) for setup in setups]
    return [[_metrics_of(*trained) for trained in each] for each in together]


def _metrics_of(task: NodeTask, system: torch.nn.Module, results: list[TrainingResult]) -> dict[str, float]:
    assert task.test_mask is not None  # published splits have one
    test = evaluate(system, task, task.test_mask)
    row = {key: test[key] for key in _READ} | {"disagreement": _disagreement(system, task)}
    scaled = TemperatureScaled.fitted(system, task)
    after = evaluate(scaled, task, task.test_mask)
    row |= {f"{key}_scaled": after[key] for key in _SCALED}
    row["temperature"] = float(scaled.temperature)
    row["val_brier"] = evaluate(system, task, task.val_mask)["brier"]
    row["epochs"] = float(max(len(result.history) for result in results))
    row["best_epoch"] = float(results[0].best_epoch)
    return row


@torch.no_grad()
def _disagreement(system: torch.nn.Module, task: NodeTask) -> float:
    """The share of test nodes whose two readouts name different classes."""
    expansion: LogitDistribution = system(task.x, task.graph)
    test = expansion.map(lambda z: z[task.test_mask])
    return (test.predictive().argmax(dim=-1) != test.mean.argmax(dim=-1)).double().mean().item()


CALIBRATION = Benchmark("calibration", measure_together, _METRICS, told="brier")
ABLATION = replace(CALIBRATION, name="calibration-ablation")
ALONE = replace(CALIBRATION, name="calibration-alone")
