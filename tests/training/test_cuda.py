"""On a GPU: an epoch replayed as a graph does what it does launched, alone and in a population."""

import gc
from collections import deque
from dataclasses import replace

import pytest
import torch

from dssgnn import DSSGNN, DSSHybrid
from dssgnn.data.synthetic import minesweeper
from dssgnn.errors import InputError
from dssgnn.nn import Deterministic, make_encoder
from dssgnn.training import NodeTask, TrainingConfig, capture, fit, fit_population, seeded
from dssgnn.training.epoch import Epoch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

CONFIG = TrainingConfig(epochs=30, patience=None, seed=3, lr=0.02)
DROPOUT = {"dropout": 0.4, "input_dropout": 0.2, "lift_dropout": 0.3}


@pytest.fixture(scope="module")
def task():
    data = minesweeper(12, 12, seed=1)
    data.x = data.x.double()
    return NodeTask.from_data(data).to("cuda")


@pytest.fixture
def calls(monkeypatch):
    """How often an epoch was run by Python; a replay does not."""
    counted, real = [], Epoch.__call__

    def call(self):
        counted.append(1)
        return real(self)

    monkeypatch.setattr(Epoch, "__call__", call)
    return counted


def dss(seed=0, **options):
    with seeded(seed):
        return DSSGNN(7, 8, 2, chaos_order=1, **{**DROPOUT, **options}).double().cuda()


def hybrid(seed=0):
    with seeded(seed):
        base = make_encoder("gpr-gnn", 7, 8, 2, dropout=0.0)
        return DSSHybrid(base, DSSGNN(7, 8, 2, **DROPOUT), warmup_epochs=10).double().cuda()


class Waits(torch.nn.Module):
    """A model that reads a value back in every forward pass."""

    def __init__(self):
        super().__init__()
        self.inner = dss()

    def forward(self, x, graph):
        expansion = self.inner(x, graph)
        return expansion.map(lambda z: z * (1.0 if z.sum().item() != 0.5 else 2.0))


def close(model, other):
    for name, value in model.state_dict().items():
        torch.testing.assert_close(other.state_dict()[name], value, rtol=0, atol=1e-8, msg=name)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "rmsprop", "sgd"])
@pytest.mark.parametrize(
    "options", [{}, {"norm": "batch"}, {"norm": "joint", "joint_dropout": True, "residual": "inner"}]
)
def test_replayed_and_launched_are_equal(optimizer, options, task, calls):
    launched, replayed = dss(**options), dss(**options)
    config = replace(CONFIG, optimizer=optimizer, clip=0.5)
    expected = fit(launched, task, replace(config, capture="never"))
    assert len(calls) == 30
    result = fit(replayed, task, config)
    assert len(calls) == 30 + 4
    assert result.best_epoch == expected.best_epoch
    close(launched, replayed)


def test_same_seed_same_bits(task):
    first, second = dss().float(), dss().float()
    single = replace(task, x=task.x.float(), graph=task.graph.to(torch.float32))
    histories = [fit(model, single, CONFIG).history for model in (first, second)]
    assert histories[0] == histories[1]


def test_a_new_phase_is_recorded_anew(task, calls):
    launched, replayed = hybrid(), hybrid()
    fit(launched, task, replace(CONFIG, capture="never"))
    calls.clear()
    fit(replayed, task, CONFIG)
    assert len(calls) == 8
    close(launched, replayed)


def test_a_model_that_waits_is_launched(task, calls):
    expected, model = Waits(), Waits()
    fit(expected, task, replace(CONFIG, capture="never"))
    calls.clear()
    with pytest.warns(UserWarning, match="no CUDA graph could be made"):
        fit(model, task, CONFIG)
    assert len(calls) == 30
    close(expected, model)


@pytest.mark.parametrize("way", [{}, {"warmup": 1}])
def test_a_recording_that_fails_leaves_everything_in_order(way, monkeypatch):
    """Also where the wait shows up only in the recording itself."""
    weight = torch.zeros(3, device="cuda")
    runs = []

    def function():
        runs.append(1)
        if torch.cuda.is_current_stream_capturing():
            weight.sum().item()
        weight.add_(torch.rand(3, device="cuda"))
        return weight

    with seeded(0):
        step = capture(function, **way)
        with pytest.warns(UserWarning, match="no CUDA graph could be made"):
            deque((step() for _ in range(6)), maxlen=0)
        got = weight.clone()
    weight.zero_()
    with seeded(0):
        for _ in range(6):
            function()
    assert torch.equal(got, weight)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_capture_of_any_function():
    weight = torch.zeros(3, device="cuda")
    runs = []

    def function():
        runs.append(1)
        weight.add_(1)
        return weight * 2

    step = capture(function)
    values = [step().tolist()[0] for _ in range(8)]
    assert values == [2.0 * n for n in range(1, 9)]
    assert len(runs) == 4


@pytest.mark.parametrize(
    "make",
    [
        dss,
        lambda seed: dss(seed, norm="batch", residual=True),
        lambda seed: dss(seed, norm="joint", joint_dropout=True, residual="inner"),
        hybrid,
    ],
)
@pytest.mark.parametrize("rates", [(0.02, 0.02, 0.02), (0.02, 0.01, 0.05)])
def test_population(make, rates, task, calls):
    configs = [replace(CONFIG, seed=seed, lr=lr) for seed, lr in enumerate(rates)]
    alone, together = ([make(seed) for seed in range(3)] for _ in range(2))
    expected = [fit(model, task, config) for model, config in zip(alone, configs, strict=True)]
    calls.clear()
    results = fit_population(together, [task] * 3, configs)
    assert len(calls) in (4, 8)
    for want, got, model, member in zip(expected, results, alone, together, strict=True):
        assert got.best_epoch == want.best_epoch
        close(model, member)


def test_members_stop_on_their_own(task):
    configs = [replace(CONFIG, epochs=80, seed=seed, patience=4, lr=0.05) for seed in range(3)]
    alone, together = ([dss(seed) for seed in range(3)] for _ in range(2))
    expected = [fit(model, task, config) for model, config in zip(alone, configs, strict=True)]
    results = fit_population(together, [task] * 3, configs)
    assert [len(r.history) for r in results] == [len(r.history) for r in expected]
    for model, member in zip(alone, together, strict=True):
        close(model, member)


def test_threads_are_for_a_cpu(task):
    with pytest.raises(InputError, match="way='threads' is for a CPU, got a task on cuda"):
        fit_population([dss()], [task], [CONFIG], way="threads")


def test_resume_is_the_whole_run(task, tmp_path):
    config = replace(CONFIG, checkpoint_every=7)
    whole, resumed = dss(), dss()
    expected = fit(whole, task, config).history

    def kill(row):
        if row["epoch"] == 17:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(dss(), task, config, checkpoint=tmp_path / "run", on_epoch=kill)
    result = fit(resumed, task, config, checkpoint=tmp_path / "run", resume=True)
    for ours, theirs in zip(result.history, expected, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-8)
    close(whole, resumed)


def test_recordings_leave_no_memory_behind(task):
    """Streams keep workspaces; graphs keep pools; both must be given back or shared."""
    held = []
    for seed in range(4):
        fit(dss(seed), task, CONFIG)
        gc.collect()
        torch.cuda.synchronize()
        held.append(torch.cuda.memory_allocated())
    assert held[1] == held[2] == held[3]


@pytest.mark.parametrize("name", ["gcn", "gat", "gcn-res", "chebnet", "bernnet", "tfe-gnn"])
def test_encoders_are_recorded(name, task, calls):
    with seeded(0):
        model = Deterministic(make_encoder(name, 7, 8, 2)).double().cuda()
    fit(model, task, CONFIG)
    assert len(calls) == 4
