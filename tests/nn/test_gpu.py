"""The same numbers on a GPU; skipped where there is none."""

from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from dssgnn import DSSGNN, DSSHybrid, GraphOperator
from dssgnn.data.synthetic import minesweeper
from dssgnn.nn import make_encoder
from dssgnn.training import NodeTask, TrainingConfig, fit, seeded

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU: torch sees none")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "options",
    [{}, {"gate_order": 1}, {"norm": "joint", "residual": True}, {"norm": "joint", "residual": "inner"}],
)
@pytest.mark.parametrize("direction", ["both", "in"])
def test_outputs_and_gradients_equal_the_cpus(dtype, options, direction):
    """In training where there is a norm, which then takes its moments on the GPU too."""
    board = minesweeper(12, 12)
    weight = torch.rand(board.num_edges, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    operator = GraphOperator.from_edge_index(
        board.edge_index, board.num_nodes, weight, direction=direction, normalization="rw"
    )
    with seeded(0):
        model = DSSGNN(7, 16, 2, chaos_order=3, readout="filtered", dropout=0.0, **options).double()
    results = []
    for device, kind in (("cpu", torch.float64), ("cuda", dtype)):
        copy = deepcopy(model).to(device, kind).train("norm" in options)
        x = board.x.to(device, kind).requires_grad_()
        expansion = copy(x, operator.to(device).to(kind))
        expansion.log_predictive()[:, 0].sum().backward()
        results.append(
            [expansion.coefficients, x.grad, *(p.grad for p in copy.parameters()), *copy.buffers()]
        )
    tolerance = 1e-10 if dtype == torch.float64 else 1e-3
    for cpu, gpu in zip(*results, strict=True):
        assert (gpu.cpu().double() - cpu).norm() <= tolerance * max(1.0, float(cpu.detach().norm()))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_training_learns_and_resumes(precision, tmp_path):
    task = NodeTask.from_data(minesweeper(30, 30)).to("cuda")
    config = TrainingConfig(epochs=40, patience=None, precision=precision, checkpoint_every=10)
    with seeded(0):
        base = make_encoder("gcn", 7, 16, 2)
        model = DSSHybrid(base, DSSGNN(7, 16, 2), warmup_epochs=5).to("cuda")
    file = tmp_path / "run.safetensors"
    result = fit(model, task, replace(config, epochs=20), checkpoint=file)
    again = fit(model, task, config, checkpoint=file, resume=True)
    assert again.history[:20] == result.history
    assert again.best_value < result.history[0]["val_brier"]
    assert next(model.parameters()).is_cuda
