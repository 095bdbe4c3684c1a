"""G-DeltaUQ against a dense float64 network that really reads ``[h - c, c]``."""

from dataclasses import replace

import pytest
import torch

from dssgnn.baselines import g_delta_uq as module
from dssgnn.baselines.g_delta_uq import GDeltaUQ, anchor_spread, calibrated_logits
from dssgnn.baselines.gaussian_product import row_law
from dssgnn.data.synthetic import minesweeper
from dssgnn.errors import InputError
from dssgnn.expansion import ChaosExpansion, LogitSamples
from dssgnn.graph import SparseFeatures
from dssgnn.metrics import calibration_metrics
from dssgnn.nn.dropout import drawing_alone
from dssgnn.training import NodeTask, TrainingConfig, fit, fit_population, seeded

LEVELS = ["input", "layer", "hidden"]
MODES = ["random", "shared", "shuffle"]
EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 4], [1, 0, 2, 1, 3, 2, 0]])  # one of them in one direction only
N, F, H, C, M = 6, 4, 5, 3, 3  # node 5 has no neighbour


def numbers(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


X = numbers(N, F)


def make(level="input", seed=0, features=F, classes=C, x=X, **options):
    options = {"num_anchors": M, "num_layers": 3, "dropout": 0.0, **options}
    with seeded(seed):
        model = GDeltaUQ(features, H, classes, level=level, **options).double()
        for norm in model.norms:
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
    if level == "input":
        model.fit_anchors(x[:4])
    return model


def dense_ahat():
    a = torch.eye(N, dtype=torch.float64)
    a[EDGES[1], EDGES[0]] = 1
    degree = a.sum(dim=1)
    return a / (degree[:, None] * degree[None, :]).sqrt()


def reference(model, anchors_of, training):
    """Logits ``[N, M, C]``, pass by pass; ``anchors_of(h)`` gives the anchors of a state."""
    ahat, position = dense_ahat(), model.anchored
    weights, norms = list(model.weights), list(model.norms)

    def step(i, h):
        h = h @ weights[i]
        if i == len(norms):
            return h + model.bias
        h = ahat @ h
        mean, variance = norms[i].running_mean, norms[i].running_var
        if training:
            mean, variance = h.mean(dim=0), h.var(dim=0, correction=0)
        h = (h - mean) / (variance + 1e-5).sqrt() * norms[i].weight + norms[i].bias
        return h.relu() if i + 1 < len(norms) else h

    h = X
    for i in range(position):
        h = step(i, h)
    logits = []
    for c in anchors_of(h.detach()):
        z = torch.cat([h - c, c.expand_as(h)], dim=1)
        for i in range(position, len(weights)):
            z = step(i, z)
        logits.append(z)
    return torch.stack(logits, dim=1)


def drawn(model, generator):
    """The anchors of a training pass, as the notes define them, from the same numbers."""

    def anchors_of(h):
        mean, deviation = h.mean(dim=0), h.std(dim=0)
        deviation[deviation == 0] = deviation.mean()
        if model.level == "input":
            mean, deviation = X[:4].mean(dim=0), X[:4].std(dim=0)
        for _ in range(M):
            if model.anchor_mode == "shuffle":
                yield h[torch.randn(N, generator=generator, dtype=torch.float64).argsort()]
            else:
                rows = N if model.anchor_mode == "random" else 1
                noise = torch.randn(rows, h.size(1), generator=generator, dtype=torch.float64)
                yield mean + deviation * noise

    return anchors_of


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", MODES)
def test_training_against_the_doubled_network(level, mode):
    model = make(level, anchor_mode=mode).train()
    expected = reference(model, drawn(model, torch.Generator().manual_seed(7)), training=True)
    with drawing_alone(torch.Generator().manual_seed(7)):
        got = model(X, EDGES)
    assert isinstance(got, ChaosExpansion)
    assert got.chaos_order == 0
    torch.testing.assert_close(got.mean, expected.mean(dim=1))
    # Anchors carry no gradient; the state they are taken from does, through h - c.
    target = numbers(N, C, seed=3)
    ours = torch.autograd.grad((got.mean * target).sum(), list(model.parameters()))
    theirs = torch.autograd.grad((expected.mean(dim=1) * target).sum(), list(model.parameters()))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("level", LEVELS)
def test_fixed_anchors_are_shared_by_all_nodes(level):
    model = make(level, calibrated=False).eval()
    rows = (lambda h: [c[None] for c in model.anchors]) if level == "input" else (lambda h: h[:M, None])
    got = model(X, EDGES)
    assert isinstance(got, LogitSamples)
    torch.testing.assert_close(got.logits, reference(model, rows, training=False))
    assert torch.equal(model(X, EDGES).logits, got.logits)


def test_anchors_of_zero_leave_half_of_the_weights():
    model = make(num_anchors=2, calibrated=False).eval()
    model.anchors.zero_()
    got = model(X, EDGES)
    half = make(num_anchors=2).eval()
    half.load_state_dict(model.state_dict())
    with torch.no_grad():
        half.weights[0][F:] = numbers(F, H, seed=9)  # what reads the anchor is of no account
    torch.testing.assert_close(half.samples(X, EDGES), got.logits)
    h = X @ model.weights[0][:F]
    for i, norm in enumerate(model.norms):
        h = norm(dense_ahat() @ h)
        h = (h.relu() if i < 2 else h) @ model.weights[i + 1]
    torch.testing.assert_close(got.mean, h + model.bias)
    torch.testing.assert_close(got.mutual_information(), torch.zeros(N).double(), rtol=0, atol=1e-14)


def test_the_gaussian_of_the_training_features():
    x = X.clone()
    x[:4, 1] = 2.5
    model = GDeltaUQ(F, H, C, num_anchors=50_000).double()
    model.fit_anchors(x[:4])
    deviation = x[:4].std(dim=0)
    deviation[1] = 1e-3
    torch.testing.assert_close(model.mean, x[:4].mean(dim=0))
    torch.testing.assert_close(model.deviation, deviation)
    assert model.anchors.shape == (50_000, F)
    standard = (model.anchors - model.mean) / model.deviation
    assert standard.mean(dim=0).abs().max() < 0.02
    torch.testing.assert_close(standard.T.cov(), torch.eye(F).double(), rtol=0, atol=0.03)


def test_states_that_do_not_vary():
    """At a hidden level a deviation of zero is replaced by the mean one."""
    model = make("hidden", num_anchors=1, calibrated=False, fresh=True).eval()
    h = numbers(20_000, H)
    h[:, 2] = 4.0
    (anchor,) = model._anchors(h)
    deviation = h.std(dim=0)
    torch.testing.assert_close(anchor.std(dim=0)[2], deviation.mean(), rtol=0.03, atol=0)
    torch.testing.assert_close(anchor.mean(dim=0)[2], torch.tensor(4.0).double(), rtol=0.01, atol=0)


def test_calibration_by_the_spread():
    logits = numbers(N, M, C)
    p = logits.sigmoid()
    unbiased = ((p - p.mean(dim=1, keepdim=True)).square().sum(dim=1) / (M - 1)).sqrt()
    u = unbiased.mean(dim=1)
    torch.testing.assert_close(anchor_spread(logits), u)
    torch.testing.assert_close(calibrated_logits(logits), logits.mean(dim=1) / (1 + u.exp())[:, None])
    model = make().eval()
    samples, got = model.samples(X, EDGES), model(X, EDGES)
    assert isinstance(got, ChaosExpansion)
    torch.testing.assert_close(got.mean, calibrated_logits(samples))
    torch.testing.assert_close(model.spread(X, EDGES), anchor_spread(samples))
    assert bool((got.mean.abs() <= samples.mean(dim=1).abs() / 2).all())


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", MODES)
def test_fresh_anchors_come_from_the_seed(level, mode):
    options = {"anchor_mode": mode, "fresh": True, "calibrated": False, "dropout": 0.5}
    model = make(level, **options).eval()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    elsewhere = torch.Generator().manual_seed(3)
    with drawing_alone(elsewhere):
        first = model(X, EDGES).logits
    assert torch.equal(elsewhere.get_state(), torch.Generator().manual_seed(3).get_state())
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(model(X, EDGES).logits, first)
    assert not torch.equal(first[:, 0], first[:, 1])
    model.seed = 1
    assert not torch.equal(model(X, EDGES).logits, first)
    expected = reference(make(level, **options), drawn(model, torch.Generator().manual_seed(1)), False)
    torch.testing.assert_close(model(X, EDGES).logits, expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fresh", [True, False])
def test_sparse_features(mode, fresh):
    x = torch.where(X > 0, X, 0.0)
    model = make(x=x, anchor_mode=mode, fresh=fresh, calibrated=False)
    for training in (True, False):
        model.train(training)
        answers = []
        for features in (x, SparseFeatures.from_dense(x)):
            with drawing_alone(torch.Generator().manual_seed(7)):
                answers.append(model(features, EDGES).mean)
        torch.testing.assert_close(*answers)
    other = make(x=x)
    other.fit_anchors(SparseFeatures.from_dense(x[:4]))
    assert torch.equal(other.anchors, model.anchors)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
def test_wide_anchors_are_drawn_behind_the_product(training, sparse, monkeypatch):
    """Numbers that stand for given anchors give what those anchors give."""
    model = GDeltaUQ(F, 2, C, num_anchors=M, num_layers=3, dropout=0.0, fresh=True, calibrated=False).double()
    model.fit_anchors(X[:4])
    model.train(training)
    noise = numbers(M, N, F, seed=5)
    own, other = model.weights[0].detach().chunk(2)
    basis, _ = row_law(other - own, model.deviation)
    drawn = {(M * N, 2): (noise @ basis).flatten(0, 1), (F, 2): numbers(F, 2)}
    monkeypatch.setattr(module, "normal", lambda shape, *_: drawn.pop(shape))
    got = model.samples(SparseFeatures.from_dense(X) if sparse else X, EDGES)
    assert not drawn
    expected = reference(model, lambda h: model.mean + model.deviation * noise, training)
    torch.testing.assert_close(got, expected)
    names = [name for name, _ in model.named_parameters()]
    gradients = [torch.autograd.grad(z[..., 0].sum(), list(model.parameters())) for z in (got, expected)]
    for name, ours, theirs in zip(names, *gradients, strict=True):
        if name == "weights.0":  # has other numbers of the same law, which cancel in the sum of its halves
            ours, theirs = (sum(each.chunk(2)) for each in (ours, theirs))
        torch.testing.assert_close(ours, theirs)


@pytest.fixture(scope="module")
def task():
    data = minesweeper(6, 6, seed=1)
    data.x = data.x.double()
    return NodeTask.from_data(data)


def splits(task):
    tasks = []
    for seed in range(2):
        order = torch.randperm(36, generator=torch.Generator().manual_seed(seed))
        train, val = torch.zeros(2, 36, dtype=torch.bool)
        train[order[: 15 + 3 * seed]] = True
        val[order[20:]] = True
        tasks.append(replace(task, train_mask=train, val_mask=val, test_mask=None))
    return tasks


@pytest.mark.parametrize(
    ("level", "options"),
    [
        ("input", {"fresh": True, "calibrated": False}),
        ("input", {"anchor_mode": "shared"}),
        ("layer", {"fresh": True}),
        ("hidden", {"anchor_mode": "shuffle", "fresh": True, "calibrated": False}),
    ],
)
def test_a_population_is_its_members(level, options, task):
    tasks = splits(task)
    configs = [TrainingConfig(epochs=20, patience=None, seed=s, monitor="nll_mean") for s in range(2)]

    def members():
        return [
            make(level, s, 7, 2, x=t.x[t.train_mask], num_layers=2, dropout=0.3, **options)
            for s, t in enumerate(tasks)
        ]

    alone = members()
    expected = [fit(*each) for each in zip(alone, tasks, configs, strict=True)]
    for way in ("threads", "block"):
        together = members()
        for i, got in enumerate(fit_population(together, tasks, configs, way=way)):
            assert got.best_epoch == expected[i].best_epoch
            for ours, theirs in zip(got.history, expected[i].history, strict=True):
                assert ours == pytest.approx(theirs, abs=1e-8)
            torch.testing.assert_close(together[i].state_dict(), alone[i].state_dict(), rtol=0, atol=1e-8)
    metrics = calibration_metrics(together[0](task.x, task.graph), task.y)
    assert (metrics["chaos_energy"] > 0) == (not alone[0].calibrated)


def test_what_cannot_be(task):
    model = GDeltaUQ(7, H, 2).double()
    with pytest.raises(InputError, match="the anchors are not fitted; call fit_anchors"):
        fit(model, task, TrainingConfig(epochs=1))
    model.load_state_dict(make(features=7, classes=2, x=task.x, num_layers=2, num_anchors=10).state_dict())
    fit(model, task, TrainingConfig(epochs=1))
    for options, message in (
        ({"level": "output"}, "level must be one of 'input', 'layer', 'hidden', got 'output'"),
        ({"anchor_mode": "batch"}, "anchor_mode must be one of"),
        ({"num_anchors": 1}, "num_anchors must be an integer >= 2, got 1"),
        ({"level": "layer", "anchor_layer": 2}, r"anchor_layer must be in 1\.\.1 for 2 layers, got 2"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
    ):
        with pytest.raises(InputError, match=message):
            GDeltaUQ(F, H, C, **options)
    with pytest.raises(InputError, match="anchors are fitted to features for level='input'"):
        GDeltaUQ(F, H, C, level="hidden").fit_anchors(X)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", MODES)
def test_on_a_gpu_an_epoch_is_replayed(level, mode, task):
    """A recording that is refused would warn, and warnings are errors here."""
    task = task.to("cuda")

    def history(fresh, capture):
        model = make(level, 0, 7, 2, x=task.x.cpu(), dropout=0.3, anchor_mode=mode, fresh=fresh).cuda()
        config = TrainingConfig(epochs=12, patience=None, capture=capture)
        return fit(model, task, config).history, model.eval()(task.x, task.graph).mean

    for fresh in (True, False):
        (first, mean), (second, again) = history(fresh, "auto"), history(fresh, "auto")
        assert first == second
        assert torch.equal(mean, again)
    launched, _ = history(False, "never")
    for ours, theirs in zip(first, launched, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-6, abs=1e-6)
