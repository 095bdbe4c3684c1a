"""Choosing a configuration from a declared space, on validation data alone."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dssgnn.benchmarks.calibration.search.judging import judged
from dssgnn.benchmarks.calibration.search.space import (
    ARMS,
    COEFFICIENT_DECAY,
    OURS,
    PENALTY,
    TWINS,
    dss_setup,
)
from dssgnn.benchmarks.calibration.search.trials import begin, best_shapes, breed, draw, shape_of, text_of
from dssgnn.benchmarks.frame import Setup, nodes_and_direction, place_of, split_tasks, train_together
from dssgnn.benchmarks.records import Record, merge_records, read_records
from dssgnn.errors import InputError
from dssgnn.training import NodeTask, TrainingResult

__all__ = ["Budget", "check_alone", "chosen", "chosen_alone", "search", "searched_row"]

Row = tuple[str, str]
Scores = dict[str, tuple[list[float], str]]  # by configuration: of every split, and the device
Say = Callable[[str], None]

_BENCHMARK = "calibration-search"
_MEMBERS = 30  # of one block; on a small graph a launch costs as much for many as for few
# Settings of the training that a trial's configuration says, or that change nothing.
_TOLD = (
    "objective",
    "lr",
    "weight_decay",
    "groups",
    "chaos_weight",
    "logit_weight",
    "seed",
    "checkpoint_every",
    "capture",
)


@dataclass(frozen=True)
class Budget:
    """How long is searched; the same for every arm.

    Attributes:
        shapes: architectures of the first round.
        rates: settings of the training, for each.
        generations: rounds of architectures bred from the best so far; an arm with declared starts tries as many of
            those.
        children: architectures of such a round.
        splits: whose validation Brier decides in these rounds.
        epochs: of these rounds.
        patience: of these rounds.
        finalists: configurations, of different architectures, that are trained longer in a last round; with none, the
            best so far is chosen.
        final_splits: of the last round.
        final_epochs: of the last round.
        final_patience: of the last round.
        halvings: of the validation nodes, into those that choose a trial's epoch and those that judge it (`judged`);
            with 0 all of them do both.
    """

    shapes: int = 10
    rates: int = 3
    generations: int = 2
    children: int = 4
    splits: tuple[int, ...] = (0, 1)
    epochs: int = 250
    patience: int = 50
    finalists: int = 3
    final_splits: tuple[int, ...] = tuple(range(10))
    final_epochs: int = 1000
    final_patience: int = 100
    halvings: int = 0

    @property
    def starts(self) -> int:
        """How many declared starts are tried: as many as would be bred."""
        return self.generations * self.children

    @classmethod
    def of(cls, num_nodes: int) -> "Budget":
        """Thousands of validation nodes judge well in few splits, and take longer.

        A few dozen need all splits, and patience: there the best epoch may come after hundreds without a better one.
        It is also lucky more often than not, so that there a trial is judged by nodes that did not choose the epoch,
        and trials are few.
        """
        if num_nodes < 1000:
            return cls(
                shapes=5, rates=1, generations=3, splits=tuple(range(10)), epochs=1000, patience=200, finalists=0,
                final_patience=200, halvings=200,
            )  # fmt: skip
        if num_nodes > 5000:
            return cls(splits=(0,), final_splits=(0, 1, 2), epochs=400, patience=80)
        return cls(generations=3)


def search(
    dataset: str,
    row: Row,
    out: Path,
    device: torch.device,
    budget: Budget | None = None,
    say: Say = lambda text: None,
) -> dict[str, Any]:
    """Choose the configuration of ``row`` for a dataset by the mean validation Brier over the splits.

    A first round of architectures that are the same for every arm of a space, then declared ones or rounds of
    architectures like the best so far, then long runs of a few.

    One configuration serves all splits, as in the paper; the validation nodes of one split are largely test nodes of
    others, so their labels are seen by the choice, if not by any training. The test parts are not read. Every trial is
    recorded in ``out`` (benchmark ``calibration-search``; one record a round) and not run again.
    """
    return _search(_Rounds(dataset, row, budget, out, device, say))


def _search(rounds: "_Rounds") -> dict[str, Any]:
    b, arm = rounds.budget, rounds.arm
    scored = rounds.scores("first", draw(arm, b.shapes, b.rates), b.splits)
    if arm.starts:
        scored += rounds.scores("starts", begin(arm, b.starts, b.rates), b.splits)
    for generation in range(1, 1 if arm.starts else b.generations + 1):
        # Under its parent's rates alone a child would keep what was drawn first.
        trials = breed(arm, scored, b.children, max(b.rates, 2), seed=generation)
        scored += rounds.scores(f"bred {generation}", trials, b.splits)
    if not b.finalists:
        return dict(min(scored, key=lambda pair: pair[1])[0])
    finalists = [dict(config) for config in best_shapes(scored)[: b.finalists]]
    final = rounds.scores("final", finalists, b.final_splits)
    return min(final, key=lambda pair: pair[1])[0]


def chosen(
    dataset: str,
    row: Row,
    out: Path,
    device: torch.device,
    budget: Budget | None = None,
    say: Say = lambda text: None,
) -> Setup:
    """The setup that `search` chose for a row, read from its records (what is missing is run), or a twin of `best`."""
    searched = searched_row(row)
    config = search(dataset, searched, out, device, budget, say)
    budget = budget or Budget.of(nodes_and_direction(dataset)[0])
    length = (budget.final_epochs, budget.final_patience)
    if row in TWINS:
        penalty = (config["chaos_weight"] or PENALTY) if row[1] == "twin-p0-penalty" else 0.0
        weight = config["logit_weight"] + penalty
        made = dss_setup(config | {"chaos_order": 0, "quadrature_size": 1, "logit_weight": weight}, *length)
    else:
        made = ARMS[row].setup(config, *length)
    return replace(made, config={**made.config, "arm": row[1]})


def chosen_alone(
    dataset: str,
    row: Row,
    split: int,
    out: Path,
    device: torch.device,
    budget: Budget | None = None,
    say: Say = lambda text: None,
) -> Setup:
    """What a split's own validation nodes choose among the trials of a search, the other splits having no say.

    Raises:
        InputError: as `check_alone` does, and where no trial fitted the device.
    """
    check_alone(dataset, row, [split], budget)
    rounds = _Rounds(dataset, row, budget, out, device, say)
    b = rounds.budget
    _search(rounds)
    tried = {text: values for text, values in rounds.tried.items() if values}
    if not tried:
        raise InputError(f"{dataset} {' '.join(row)}: no trial of its search fitted the device")
    config = json.loads(min(tried, key=lambda text: tried[text][b.splits.index(split)]))
    made = rounds.arm.setup(config, b.final_epochs, b.final_patience)
    return replace(made, config={**made.config, "arm": row[1]})


def check_alone(dataset: str, row: Row, splits: Iterable[int], budget: Budget | None = None) -> None:
    """Check that splits can choose alone: among trials that were fixed beforehand, and judged on every split.

    Bred trials are none of these: a mean over all splits had decided which they are.
    """
    fixed = [" ".join(known) for known, arm in ARMS.items() if arm.starts]
    if row not in ARMS or not ARMS[row].starts:
        raise InputError(
            f"--alone is for {' and '.join(fixed)}, whose trials are declared, got {' '.join(row)}"
        )
    budget = budget or Budget.of(nodes_and_direction(dataset)[0])
    if budget.finalists:
        raise InputError(
            f"--alone is for small graphs, whose trials are judged on every split, got {dataset}"
        )
    for split in splits:
        if split not in budget.splits:
            last = max(budget.splits)
            raise InputError(f"{dataset}: its trials were judged on splits 0 to {last}, got split {split}")


def searched_row(row: Row) -> Row:
    """The row whose search decides on ``row``: a twin is the winner's."""
    return OURS if row in TWINS else row


class _Rounds:
    """Scores of a row's configurations on a dataset, kept in a results file."""

    def __init__(
        self, dataset: str, row: Row, budget: Budget | None, out: Path, device: torch.device, say: Say
    ) -> None:
        nodes, directed = nodes_and_direction(dataset)
        self.budget, self.arm = budget or Budget.of(nodes), ARMS[row].on(directed)
        self.dataset, self.row, self.out, self.device, self.say = dataset, row, out, device, say
        self.tasks: dict[str, list[NodeTask]] = {}
        self.tried: dict[str, list[float]] = {}  # every split's score, by configuration

    def scores(
        self, name: str, trials: list[dict[str, Any]], splits: tuple[int, ...]
    ) -> list[tuple[dict[str, Any], float]]:
        """Every trial with its mean validation Brier; one that does not fit the device is infinitely bad, for good."""
        known = self._read(name, splits)
        missing = [config for config in trials if text_of(config) not in known]
        for block in _blocks(missing, max(1, _MEMBERS // len(splits))):
            values = self._train(name, block, splits)
            for config, own in zip(block, values, strict=True):
                known[text_of(config)] = (own, place_of(self.device))
            drawn = [text_of(config) for config in trials]
            self._write(name, {t: known[t] for t in drawn if t in known}, splits)
        self.tried |= {text_of(config): known[text_of(config)][0] for config in trials}
        return [(config, float(np.mean(self.tried[text_of(config)] or np.inf))) for config in trials]

    def _train(self, name: str, block: list[dict[str, Any]], splits: tuple[int, ...]) -> list[list[float]]:
        halvings = self.budget.halvings
        setups = [self.arm.setup(config, *self._length(name)) for config in block]
        operator = setups[0].operator
        key = text_of({**operator, **setups[0].preparation, "splits": splits})
        if key not in self.tasks:
            self.tasks[key] = split_tasks(
                self.dataset, splits, self.device, setups[0].preparation, **operator
            )
        trained, reason = None, ""
        try:
            trained = train_together(setups, self.tasks[key], splits, node_scores=halvings > 0)
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
        values = [[_value(result, halvings) for _, _, (result,) in each] for each in trained]
        best = min(float(np.mean(v)) for v in values)
        self.say(
            f"{self.dataset} {' '.join(self.row)} {name}: {len(block)} trials, validation Brier {best:.4f}"
        )
        return values

    def _length(self, name: str) -> tuple[int, int]:
        b = self.budget
        return (b.final_epochs, b.final_patience) if name == "final" else (b.epochs, b.patience)

    def _run(self, name: str, splits: tuple[int, ...]) -> dict[str, Any]:
        """All that a trial's score depends on besides its configuration."""
        first = self.arm.setup(draw(self.arm, 1, 1)[0], *self._length(name))
        training = {k: v for k, v in asdict(first.training).items() if k not in _TOLD}
        told = {"splits": splits, "seeds": [first.seed(split, 0) for split in splits]}
        own = {"coefficient_decay": COEFFICIENT_DECAY, "halvings": self.budget.halvings}
        plain: dict[str, Any] = json.loads(json.dumps({**training, **told, **own}))
        return plain

    def _variant(self, name: str) -> str:
        return f"{self.row[1]}, {name} round"

    def _read(self, name: str, splits: tuple[int, ...]) -> Scores:
        if not self.out.exists():
            return {}
        key = (_BENCHMARK, self.dataset, self.row[0], self._variant(name), None, 0)
        run = self._run(name, splits)
        found = [r for r in read_records(self.out) if r.key[:-1] == key and r.config["run"] == run]
        if not found:
            return {}
        # A choice holds wherever it was made; that of this device comes first.
        record = max(found, key=lambda r: (r.device == place_of(self.device), len(r.config["trials"])))
        return {
            text_of(trial["config"]): (trial["val_brier"], trial.get("device", record.device))
            for trial in record.config["trials"]
        }

    def _write(self, name: str, known: Scores, splits: tuple[int, ...]) -> None:
        best = min((float(np.mean(values)) for values, _ in known.values() if values), default=2.0)
        here = place_of(self.device)
        config = {
            "run": self._run(name, splits),
            "trials": [
                {
                    "config": json.loads(text),
                    "val_brier": values,
                    **({} if device == here else {"device": device}),
                }
                for text, (values, device) in known.items()
            ],
        }
        record = Record(
            _BENCHMARK, self.dataset, self.row[0], self._variant(name),
            {"val_brier": best}, config, here, seed=0, selected_on="validation brier",
        )  # fmt: skip
        merge_records(self.out, [record])


def _value(result: TrainingResult, halvings: int) -> float:
    """A split's score of a trial; one that never had a finite score is as bad as can be."""
    value = result.best_value
    if halvings:
        assert result.node_scores is not None
        value = judged(result.node_scores.numpy(), halvings)
    return round(value, 6) if np.isfinite(value) else 2.0


def _blocks(missing: Iterable[dict[str, Any]], most: int) -> Iterable[list[dict[str, Any]]]:
    """Trials of one shape, at most so many at once."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for config in missing:
        groups.setdefault(text_of(shape_of(config)), []).append(config)
    for group in groups.values():
        for start in range(0, len(group), most):
            yield group[start : start + most]
