"""What the calibration figures are drawn from: the reliability of every split, the curvature correction of nodes.

The rows are trained anew, as `sweep` trains them; lists, which metrics cannot hold, are in a record's config.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor, nn

from dssgnn.baselines.temperature import TemperatureScaled
from dssgnn.benchmarks.frame import (
    LISTS,
    Setup,
    SweepRow,
    config_of,
    missing_splits,
    place_of,
    split_tasks,
    train,
)
from dssgnn.benchmarks.records import Record, merge_records
from dssgnn.errors import InputError
from dssgnn.expansion import ChaosExpansion, LogitDistribution
from dssgnn.metrics import brier, expected_calibration_error, reliability_curve
from dssgnn.metrics.calibration import brier_by_node, nll_by_node
from dssgnn.training import NodeTask
from dssgnn.validation import check_choice

__all__ = [
    "BENCHMARK",
    "BINS",
    "Correction",
    "Kind",
    "NoChaosOrder",
    "curvature_correction",
    "curvature_records",
    "curves",
    "reliability_bins",
    "reliability_records",
    "variant_of",
]

BENCHMARK = "calibration-curves"
BINS = 15  # of equal width; the tables' calibration error has ten
POINTS = 600  # nodes that a scatter keeps

Kind = Literal["reliability", "curvature"]

_SUFFIX = ", curvature"  # a row may be asked for both, and two records must not share a key


class NoChaosOrder(InputError):
    """A system without a chaos axis has no curvature correction."""


def variant_of(record: Record) -> str:
    """The variant of the row that a record was made from."""
    return record.variant.removesuffix(_SUFFIX)


def reliability_bins(probabilities: Tensor, y: Tensor) -> dict[str, list[float]]:
    """Nodes, summed confidence and right answers in each of `BINS` bins of the highest probability.

    Example:
        >>> bins = reliability_bins(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
        >>> bins["count"][13], bins["confidence"][13], bins["correct"][13]
        (2, 1.8, 1)
    """
    curve = reliability_curve(probabilities, y, BINS)
    support = curve.support
    return {
        "count": [round(value) for value in support.tolist()],
        "confidence": [round(value, 6) for value in (curve.confidence * support).tolist()],
        "correct": [round(value) for value in (curve.accuracy * support).tolist()],
    }


def reliability_records(
    setup: Setup, dataset: str, method: str, variant: str, splits: Sequence[int], device: torch.device
) -> list[Record]:
    """One record a split: the bins of its test nodes, of the system and of it with its temperature.

    ``ece15`` is the calibration error of `BINS` bins, ``*_scaled`` is after temperature scaling.
    """
    tasks = split_tasks(dataset, splits, device, setup.preparation, **setup.operator)
    records = []
    for split, (task, system, _) in zip(splits, train(setup, tasks, splits), strict=True):
        scaled = TemperatureScaled.fitted(system, task)
        metrics, lists = {"temperature": float(scaled.temperature)}, {}
        for name, model in (("", system), ("_scaled", scaled)):
            answer, y = _test_answer(model, task)
            p = answer.predictive()
            metrics[f"brier{name}"] = float(brier(p, y))
            metrics[f"ece15{name}"] = float(expected_calibration_error(p, y, BINS))
            lists[f"reliability{name}"] = reliability_bins(p, y)
        records.append(_record(setup, dataset, method, variant, split, device, metrics, lists))
    return records


@dataclass(frozen=True)
class Correction:
    r"""Proposition curvature, part 1, of every node; each field is ``[N]``.

    Attributes:
        curvature: :math:`\mathrm{tr}\,\mathcal{H}_i = 1 - \sum_c p_{ic}^2`, ``p`` of the mean logit.
        energy: the chaos energy :math:`\mathcal{E}_i`.
        correction: :math:`c_i = \frac12 \mathrm{tr}(\mathcal{H}_i \Sigma_{z_i})`.
        gap: what it approximates, :math:`\bar\ell_i - \ell(Z_{i,0}, y_i)`.
    """

    curvature: Tensor
    energy: Tensor
    correction: Tensor
    gap: Tensor


@torch.no_grad()
def curvature_correction(expansion: ChaosExpansion, y: Tensor) -> Correction:
    r"""The second-order correction of the cross-entropy, :math:`\mathcal{H}_i = \mathrm{diag}(p_i) - p_i p_i^T`.

    The averaged loss is of at least ``P+1`` quadrature nodes, which the proposition asks for, also where the model
    has fewer.

    Args:
        expansion: of ``N`` nodes.
        y: their labels ``[N]``.
    """
    z = expansion.coefficients.double()
    log_p = z[:, 0].log_softmax(dim=-1)
    p = log_p.exp()
    # v' H v is the variance of v under p; centred first, as a shift that all classes share must leave nothing.
    centred = z[:, 1:] - torch.einsum("nc,nqc->nq", p, z[:, 1:])[..., None]
    exact = ChaosExpansion(z, max(expansion.quadrature_size, expansion.chaos_order + 1))
    values, log_weights = exact.log_softmax()
    losses = torch.stack([nll_by_node(value, y) for value in values])  # [S, N]
    return Correction(
        curvature=1 - p.square().sum(dim=-1),
        energy=exact.chaos_energy,
        correction=torch.einsum("nc,nqc->n", p, centred.square()) / 2,
        gap=log_weights.exp() @ losses - nll_by_node(log_p, y),
    )


def curvature_records(
    setup: Setup, dataset: str, method: str, variant: str, split: int, device: torch.device
) -> list[Record]:
    """The record of one split's test nodes: quartiles of the correction, and a sample of the nodes.

    ``accuracy_q1`` to ``brier_q4`` are of the nodes in a quartile of the correction (the fourth has the largest),
    ``*_curvature_q1`` and so on in a quartile of the curvature alone, which knows no chaos order. ``share_q4`` is the
    part of the whole correction that the fourth quartile has.

    Raises:
        NoChaosOrder: if the system has none.
    """
    (task,) = split_tasks(dataset, [split], device, setup.preparation, **setup.operator)
    ((task, system, _),) = train(setup, [task], [split])
    answer, y = _test_answer(system, task)
    if not isinstance(answer, ChaosExpansion) or answer.chaos_order == 0:
        raise NoChaosOrder(
            f"{dataset} {method} {variant}: a curvature correction needs a chaos order of 1 or more"
        )
    found = curvature_correction(answer, y)
    p, mean = answer.predictive(), answer.mean.softmax(dim=-1)
    right, loss = (p.argmax(dim=-1) == y).double(), brier_by_node(p, y)
    metrics = {
        "mean_energy": found.energy.mean(),
        "mean_correction": found.correction.mean(),
        "mean_gap": found.gap.mean(),
        "gap_error": (found.gap - found.correction).abs().mean(),
        "brier": loss.mean(),
        # What the paper's tab:readout_coincidence prints of the two readouts.
        "brier_difference": (loss.mean() - brier(mean, y)).abs(),
        "disagreement": (p.argmax(dim=-1) != mean.argmax(dim=-1)).double().mean(),
    }
    for name, by in (("", found.correction), ("_curvature", found.curvature)):
        quartiles = by.argsort(stable=True).tensor_split(4)
        for q, nodes in enumerate(quartiles, start=1):
            metrics[f"accuracy{name}_q{q}"] = right[nodes].mean()
            metrics[f"brier{name}_q{q}"] = loss[nodes].mean()
        metrics[f"rank_correlation{name}"] = _rank_correlation(by, loss)
    ascending = found.correction.sort().values
    whole = ascending.sum().clamp_min(torch.finfo(torch.float64).tiny)
    metrics["share_q4"] = ascending.tensor_split(4)[3].sum() / whole
    chosen = np.random.default_rng(0).permutation(len(y))[:POINTS]
    nodes = torch.from_numpy(np.sort(chosen)).to(y.device)
    lists = {
        "nodes": len(y),
        "chaos_order": answer.chaos_order,
        "quadrature_size": answer.quadrature_size,
        **{key: _short(value[nodes]) for key, value in vars(found).items()},
    }
    numbers = {key: float(value) for key, value in metrics.items()}
    name = variant + _SUFFIX
    return [_record(setup, dataset, method, name, split, device, numbers, {"curvature": lists})]


def curves(
    rows: Iterable[SweepRow],
    kind: Kind,
    splits: Sequence[int],
    out: Path,
    device: torch.device,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Add the records of rows to ``out``, one row at a time.

    The kind ``"reliability"`` is of every split, ``"curvature"`` of the first of them. What ``out`` holds already, of
    the same configuration, is not run again. A row that does not fit the device, or has no chaos order to show, is
    said, and the next one is run.
    """
    check_choice(kind, Kind, "kind")
    place = place_of(device)
    for dataset, method, variant, make, *_ in rows:
        setup = make()
        wanted = splits if kind == "reliability" else splits[:1]
        name = variant if kind == "reliability" else variant + _SUFFIX
        missing = missing_splits(setup, (BENCHMARK, dataset, method, name), wanted, out, place)
        if not missing:
            continue
        try:
            if kind == "reliability":
                records = reliability_records(setup, dataset, method, variant, missing, device)
            else:
                records = curvature_records(setup, dataset, method, variant, missing[0], device)
        except torch.OutOfMemoryError as error:
            say(f"{dataset} {method} {variant}: left out, {str(error).partition('.')[0]}")
            continue
        except NoChaosOrder as error:
            say(f"left out, {error}")
            continue
        merge_records(out, records)
        say(f"{dataset} {method} {variant}: {kind} of {len(records)} splits")


@torch.no_grad()
def _test_answer(system: nn.Module, task: NodeTask) -> tuple[LogitDistribution, Tensor]:
    """A system's answer of the test nodes in full precision, and their labels."""
    assert task.test_mask is not None  # published splits have one
    answer: LogitDistribution = system.eval()(task.x, task.graph)
    return answer.map(lambda z: z.double())[task.test_mask], task.y[task.test_mask]


def _record(
    setup: Setup,
    dataset: str,
    method: str,
    variant: str,
    split: int,
    device: torch.device,
    metrics: dict[str, float],
    lists: dict[str, Any],
) -> Record:
    return Record(
        benchmark=BENCHMARK,
        setting=dataset,
        method=method,
        variant=variant,
        metrics=metrics,
        config=config_of(setup, split) | {LISTS: lists},
        device=place_of(device),
        split=split,
        seed=0,
        selected_on=f"validation {setup.training.monitor}",
    )


def _rank_correlation(a: Tensor, b: Tensor) -> Tensor:
    """Spearman's; 0 where one does not vary."""
    if bool((a == a[0]).all()) or bool((b == b[0]).all()):
        return a.new_zeros(())
    return a.new_tensor(float(spearmanr(a.cpu().numpy(), b.cpu().numpy()).statistic))


def _short(values: Tensor) -> list[float]:
    return [float(f"{value:.4g}") for value in values.tolist()]
