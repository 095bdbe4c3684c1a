"""`TFEGNN` against its equations, written densely."""

import pytest
import torch

from baselines.conformance import F64, NODES, Conformance, edges, features, outer, randomize
from dssgnn.baselines import TFE_PRESETS, TFEGNN
from dssgnn.data.synthetic import minesweeper
from dssgnn.errors import InputError
from dssgnn.nn import Deterministic
from dssgnn.training import NodeTask, TrainingConfig, fit, seeded


class TestTFEGNN(Conformance):
    encoder = TFEGNN
    rates = ("dropout", "propagation_dropout")
    options = {"filter_orders": (3, 2)}  # noqa: RUF012

    def test_groups(self):
        self.groups("*_filter", "*branch_weights")


class TestSideBySide(TestTFEGNN):
    options = {"filter_orders": (2, 3), "combination": "con", "normalization": "rw", "num_layers": 3}  # noqa: RUF012


class TestLow(TestTFEGNN):
    options = {"filter_orders": (3, 2), "combination": "low", "direction": "in"}  # noqa: RUF012


def dense(model, x, edge_index, normalization, eta):
    """The equations of baselines.md 5.6, with the degrees of protocols.md 1.4 on directed edges."""
    a = torch.eye(NODES, dtype=F64)
    a.index_put_((edge_index[0], edge_index[1]), torch.ones(edge_index.size(1), dtype=F64), accumulate=True)
    rows, columns = a.sum(dim=1), a.sum(dim=0)
    if normalization == "sym":
        low = columns[:, None] ** -0.5 * a * rows**-0.5
        high = torch.eye(NODES, dtype=F64) - columns[:, None] ** eta * a * rows**eta
    else:
        low = a / rows
        high = torch.eye(NODES, dtype=F64) - low
    branches = []
    for matrix, coefficients in ((low, model.low_filter), (high, model.high_filter)):
        if coefficients is None:
            continue
        total = power = x
        for c in coefficients:
            power = matrix @ power
            total = total + c * power
        branches.append(model.branch_weights[len(branches)] * total)
    h = torch.cat(branches, dim=1) if model.combination == "con" else sum(branches)
    for i, weight in enumerate(model.mlp.weights):
        h = (h.relu() if i else h) @ weight
    return h


@pytest.mark.parametrize("hidden", [3, 16])  # narrower and wider than the features
@pytest.mark.parametrize("kind", ["directed", "undirected"])
@pytest.mark.parametrize("combination", ["sum", "con", "low", "high"])
@pytest.mark.parametrize(("normalization", "eta"), [("sym", -0.3), ("sym", -0.5), ("rw", -0.3)])
def test_equation(hidden, kind, combination, normalization, eta):
    model = TFEGNN(5, hidden, 3, 2, (4, 3), normalization, eta, combination, propagation_dropout=0.0)
    randomize(model.double())
    x, edge_index = features().requires_grad_(), edges(kind)
    got, wanted = model(x, edge_index), dense(model, x, edge_index, normalization, eta)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-10)
    ours, theirs = (torch.autograd.grad(z, [x, *model.parameters()], outer(got)) for z in (got, wanted))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def test_directions():
    model = randomize(TFEGNN(5, 8, 3, direction="in", propagation_dropout=0.0).double())
    x, edge_index = features(), edges()
    torch.testing.assert_close(
        model(x, edge_index), dense(model, x, edge_index.flip(0), "sym", -0.3), rtol=0, atol=1e-10
    )


def test_start():
    """Coefficients 0.5, branch weights 1, and weights around -1/sqrt(fan_in) or around 0."""
    with seeded(0):
        model = TFEGNN(400, 300, 3)
    assert model.low_filter.tolist() == [0.5] * 6
    assert model.high_filter.tolist() == [0.5] * 5
    assert model.branch_weights.tolist() == [1, 1]
    assert model.mlp.weights[0].mean().item() == pytest.approx(-0.05, abs=0.001)
    assert model.mlp.weights[0].std().item() == pytest.approx(0.05, abs=0.001)
    with seeded(0):
        model = TFEGNN(400, 300, 3, weight_init="glorot")
    assert model.mlp.weights[0].mean().item() == pytest.approx(0, abs=0.001)


@pytest.mark.parametrize("preset", TFE_PRESETS)
def test_presets(preset):
    chosen = TFE_PRESETS[preset]
    options = chosen["model"] | {"hidden_channels": 8}
    with seeded(0):
        model = Deterministic(TFEGNN(7, options.pop("hidden_channels"), 2, **options))
    config = TrainingConfig(**chosen["training"] | {"epochs": 3})
    fit(model, NodeTask.from_data(minesweeper(5, 5)), config)
    assert (model.encoder.branch_weights == 1).all() == (preset == "dss_paper")
    assert not (model.encoder.low_filter == 0.5).any()
    for name, values in chosen.get("space", {}).items():
        assert chosen["model"][name] in values


def test_choices():
    with pytest.raises(InputError, match=r"eta must be in \[-1, 0\], got 0.3"):
        TFEGNN(5, 8, 3, eta=0.3)
    with pytest.raises(InputError, match="combination must be one of 'sum', 'con', 'low', 'high', got 'cat'"):
        TFEGNN(5, 8, 3, combination="cat")
    with pytest.raises(InputError, match="filter_orders must be an integer >= 1, got 0"):
        TFEGNN(5, 8, 3, filter_orders=(0, 2))
