"""Choosing a configuration from a declared space, on validation data alone."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dssgnn.benchmarks.calibration.frame import place_of, train_together
from dssgnn.benchmarks.calibration.setup import Setup
from dssgnn.benchmarks.calibration.space import ARMS, TWINS, Config, draw, dss_setup, shape_of
from dssgnn.benchmarks.records import Record, merge_records, read_records
from dssgnn.benchmarks.tasks import split_tasks
from dssgnn.training import NodeTask

__all__ = ["Budget", "chosen", "search", "searched_together"]

Row = tuple[str, str]
Say = Callable[[str], None]

_BENCHMARK = "calibration-search"
_MEMBERS = 12  # of one block; more would not be faster


@dataclass(frozen=True)
class Budget:
    """How long is searched; the same for every arm.

    Attributes:
        shapes: architectures.
        rates: settings of the training, for each.
        splits: of the first round, whose validation Brier decides who stays.
        epochs: of the first round.
        patience: of the first round.
        finalists: configurations that are trained longer, in the second round.
        final_splits: of the second round.
        final_epochs: of the second round.
        final_patience: of the second round.
    """

    shapes: int = 16
    rates: int = 3
    splits: tuple[int, ...] = (0, 1, 2)
    epochs: int = 250
    patience: int = 60
    finalists: int = 4
    final_splits: tuple[int, ...] = tuple(range(10))
    final_epochs: int = 1000
    final_patience: int = 100

    @classmethod
    def of(cls, num_nodes: int) -> "Budget":
        """Thousands of validation nodes judge well in few splits."""
        return cls(splits=(0,), final_splits=(0, 1, 2)) if num_nodes > 5000 else cls()


def search(
    dataset: str,
    rows: Sequence[Row],
    out: Path,
    device: torch.device,
    budget: Budget | None = None,
    say: Say = lambda text: None,
) -> dict[Row, dict[str, Any]]:
    """Choose the configuration of each of ``rows`` for a dataset by the mean validation Brier over the splits.

    One configuration serves all splits, as in the paper; the validation nodes of one split are largely test nodes of
    others, so their labels are seen by the choice, if not by any training. The test parts are not read. Every trial is
    recorded in ``out`` (benchmark ``calibration-search``; one record a row and round) and not run again.

    Rows that differ in numbers alone (the penalised twin and the plain one) are trained in the same blocks.
    """
    budget = budget or Budget.of(split_tasks(dataset, (0,), "cpu")[0].graph.num_nodes)
    trials = {row: draw(ARMS[row], dataset, budget.shapes, budget.rates) for row in rows}
    rounds = _Rounds(dataset, budget, out, device, say)
    first = rounds.scores("first", trials, budget.splits)
    kept = {
        row: [trials[row][i] for i in np.argsort(first[row], kind="stable")[: budget.finalists]]
        for row in rows
    }
    final = rounds.scores("final", kept, budget.final_splits)
    return {row: kept[row][int(np.argmin(final[row]))] for row in rows}


def chosen(
    dataset: str,
    row: Row,
    out: Path,
    device: torch.device,
    budget: Budget | None = None,
    say: Say = lambda text: None,
) -> Setup:
    """The setup that `search` chose for a row, read from its records (what is missing is run), or a twin of `best`."""
    budget = budget or Budget.of(split_tasks(dataset, (0,), "cpu")[0].graph.num_nodes)
    searched = ("dss-gnn", "best") if row in TWINS else row
    config = search(dataset, searched_together(row), out, device, budget, say)[searched]
    length = (budget.final_epochs, budget.final_patience)
    if row in TWINS:
        config = config | {"chaos_order": 0, "quadrature_size": 1}
        made = dss_setup(config, TWINS[row], *length)
    else:
        made = ARMS[row].setup(config, row[1], *length)
    return replace(made, config={**made.config, "arm": row[1], "budget": asdict(budget)})


def searched_together(row: Row) -> tuple[Row, ...]:
    """The rows of one search: the plain and the penalised control differ in numbers alone; a twin is the winner's."""
    if row in TWINS:
        return (("dss-gnn", "best"),)
    return tuple(r for r in ARMS if "p0" in r[1]) if "p0" in row[1] else (row,)


class _Rounds:
    """Scores of configurations on a dataset, kept in a results file."""

    def __init__(self, dataset: str, budget: Budget, out: Path, device: torch.device, say: Say) -> None:
        self.dataset, self.budget, self.out, self.device, self.say = dataset, budget, out, device, say
        self.tasks: dict[str, list[NodeTask]] = {}

    def scores(
        self, name: str, trials: dict[Row, list[dict[str, Any]]], splits: tuple[int, ...]
    ) -> dict[Row, list[float]]:
        """The mean validation Brier of every trial; one that does not fit the device is infinitely bad, for good."""
        known = {row: self._read(row, name) for row in trials}
        missing = [
            (row, config)
            for row, each in trials.items()
            for config in each
            if _text(config) not in known[row]
        ]
        for block in _blocks(missing, max(1, _MEMBERS // len(splits))):
            values = self._train(name, block, splits)
            for (row, config), own in zip(block, values, strict=True):
                known[row][_text(config)] = own
            for row in {row for row, _ in block}:
                drawn = [_text(config) for config in trials[row]]
                self._write(row, name, {t: known[row][t] for t in drawn if t in known[row]}, splits)
        return {
            row: [float(np.mean(known[row][_text(config)] or np.inf)) for config in each]
            for row, each in trials.items()
        }

    def _train(
        self, name: str, block: list[tuple[Row, dict[str, Any]]], splits: tuple[int, ...]
    ) -> list[list[float]]:
        first = name == "first"
        b = self.budget
        epochs, patience = (b.epochs, b.patience) if first else (b.final_epochs, b.final_patience)
        setups = [ARMS[row].setup(config, row[1], epochs, patience) for row, config in block]
        operator = setups[0].operator
        key = _text({**operator, **setups[0].preparation, "splits": splits})
        if key not in self.tasks:
            self.tasks[key] = split_tasks(
                self.dataset, splits, self.device, setups[0].preparation, **operator
            )
        trained, reason = None, ""
        try:
            trained = train_together(setups, self.tasks[key], splits)
        except torch.OutOfMemoryError as error:
            reason = str(error).partition(".")[0]
        if trained is None:  # not in the clause above, which holds on to what was allocated
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
            half = len(block) // 2
            if half:
                return self._train(name, block[:half], splits) + self._train(name, block[half:], splits)
            self.say(f"{self.dataset}: left out, {reason}")
            return [[]]
        values = [
            [round(v, 6) if np.isfinite(v := result.best_value) else 2.0 for _, _, (result,) in each]
            for each in trained
        ]
        best = min(float(np.mean(v)) for v in values)
        self.say(
            f"{self.dataset} {' '.join(block[0][0])} {name}: {len(block)} trials, validation Brier {best:.4f}"
        )
        return values

    def _digest(self, row: Row) -> str:
        """Of the space, and of all that a trial's configuration does not say."""
        arm = ARMS[row]
        first = arm.setup(draw(arm, self.dataset, 1, 1)[0], row[1], 1, 1)
        declared = {
            "families": arm.families, "rates": arm.rates, "orders": arm.orders, "budget": asdict(self.budget),
            "training": asdict(first.training), "seeds": [first.seed(split, 0) for split in range(10)],
        }  # fmt: skip
        return hashlib.sha256(_text(declared).encode()).hexdigest()[:12]

    def _read(self, row: Row, name: str) -> dict[str, list[float]]:
        if not self.out.exists():
            return {}
        key = (_BENCHMARK, self.dataset, row[0], f"{row[1]}, {name} round", None, 0, place_of(self.device))
        record = next((r for r in read_records(self.out) if r.key == key), None)
        if record is None or record.config["space"] != self._digest(row):
            return {}
        return {_text(trial["config"]): trial["val_brier"] for trial in record.config["trials"]}

    def _write(self, row: Row, name: str, known: dict[str, list[float]], splits: tuple[int, ...]) -> None:
        best = min((float(np.mean(values)) for values in known.values() if values), default=2.0)
        config = {
            "space": self._digest(row),
            "budget": asdict(self.budget),
            "splits": splits,
            "trials": [{"config": json.loads(text), "val_brier": values} for text, values in known.items()],
        }
        record = Record(
            _BENCHMARK, self.dataset, row[0], f"{row[1]}, {name} round",
            {"val_brier": best}, config, place_of(self.device), seed=0, selected_on="validation brier",
        )  # fmt: skip
        merge_records(self.out, [record])


def _blocks(
    missing: Iterable[tuple[Row, dict[str, Any]]], most: int
) -> Iterable[list[tuple[Row, dict[str, Any]]]]:
    """Trials of one shape, at most so many at once."""
    groups: dict[str, list[tuple[Row, dict[str, Any]]]] = {}
    for row, config in missing:
        groups.setdefault(_text(shape_of(config)), []).append((row, config))
    for group in groups.values():
        for start in range(0, len(group), most):
            yield group[start : start + most]


def _text(config: Config) -> str:
    return json.dumps(config, sort_keys=True, default=list)
