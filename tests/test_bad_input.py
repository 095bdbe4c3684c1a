"""Bad input to graphs, networks and expansions: one `InputError` that names what came and what was expected."""

import math
import re

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dssgnn import DSSGNN, ChaosExpansion, DSSConv, DSSHybrid, GraphOperator
from dssgnn.baselines.published_dss import PublishedDSS
from dssgnn.errors import InputError
from dssgnn.nn import make_encoder

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
LONG = torch.long


def operator(edges: object = EDGES, *arguments: object, **options: object) -> GraphOperator:
    return GraphOperator.from_edge_index(edges, *arguments, **options)


def features(rows: int = 3, columns: int = 4) -> Tensor:
    return torch.ones(rows, columns)


def with_value(value: float) -> Tensor:
    x = features()
    x[2, 1] = value
    return x


def hybrid(**options: object) -> DSSHybrid:
    return DSSHybrid(make_encoder("gcn", 4, 5, 2), DSSGNN(4, 5, 2), **options)


class WrongBase(nn.Module):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return torch.zeros(x.shape[0], 7)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_features_that_are_not_finite(value: float) -> None:
    message = re.escape(f"x[2, 1] is {value}, expected finite")
    with pytest.raises(InputError, match=message):
        DSSGNN(4, 5, 2)(with_value(value), EDGES)
    with pytest.raises(InputError, match=message):
        hybrid(warmup_epochs=0)(with_value(value), EDGES)


def test_features_are_checked_during_warm_up_too() -> None:
    """The base runs alone then, and would answer NaN without a word."""
    with pytest.raises(InputError, match=r"x\[2, 1\] is nan, expected finite"):
        hybrid(warmup_epochs=5)(with_value(math.nan), EDGES)
    with pytest.raises(InputError, match=r"x has 6 features, but the model was made for 4"):
        hybrid(warmup_epochs=5)(features(3, 6), EDGES)


def test_features_that_turn_bad_in_place() -> None:
    """The check runs once a tensor; a change of the tensor is noticed."""
    model, x = DSSGNN(4, 5, 2), features()
    model(x, EDGES)
    x[0, 3] = math.nan
    with pytest.raises(InputError, match=r"x\[0, 3\] is nan"):
        model(x, EDGES)
    huge = torch.full((3, 4), 3e38)  # finite, though their sum is not
    assert model(huge, EDGES).coefficients.shape == (3, 3, 2)


def test_opposite_infinities_do_not_cancel() -> None:
    x = features()
    x[0, 0], x[1, 0] = math.inf, -math.inf
    with pytest.raises(InputError, match=r"x\[0, 0\] is inf"):
        DSSGNN(4, 5, 2)(x, EDGES)


EDGE_CASES = [
    (torch.tensor([[0, 1], [1, 3]]), 3, r"names node 3, but there are 3 nodes"),
    (torch.tensor([[0, -2], [1, 0]]), 3, r"negative node -2; nodes are numbered from 0"),
    (torch.zeros(3, 4, dtype=LONG), 3, r"shape \[2, E\], got \[3, 4\]"),
    (torch.zeros(4, 2, dtype=LONG), 3, r"shape \[2, E\], got \[4, 2\]"),
    (torch.zeros(2, dtype=LONG), 3, r"shape \[2, E\], got \[2\]"),
    (torch.zeros(2, 2, 2, dtype=LONG), 3, r"shape \[2, E\], got \[2, 2, 2\]"),
    (torch.zeros(2, 4), 3, r"int64 or int32, got torch\.float32"),
    (torch.zeros(2, 4, dtype=torch.bool), 3, r"int64 or int32, got torch\.bool"),
]


@pytest.mark.parametrize(("edges", "nodes", "message"), EDGE_CASES)
def test_edges(edges: Tensor, nodes: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        operator(edges, nodes)
    with pytest.raises(InputError, match=message):
        DSSGNN(4, 5, 2)(features(nodes), edges)
    with pytest.raises(InputError, match=message):
        DSSConv(4, 5, 1)(torch.ones(nodes, 2, 4), edges)
    with pytest.raises(InputError, match=message):
        hybrid()(features(nodes), edges)


@pytest.mark.parametrize("normalization", ["sym", "rw", "col"])
def test_weights(normalization: str) -> None:
    def build(weights: object) -> None:
        operator(EDGES, 3, weights, normalization=normalization)

    with pytest.raises(InputError, match=r"edge 2 is -0\.5, expected non-negative"):
        build(torch.tensor([1.0, 0.0, -0.5, -2.0]))
    for value in (math.nan, math.inf):
        with pytest.raises(InputError, match=rf"edge 1 is {value}, expected finite"):
            build(torch.tensor([1.0, value, 1.0, 1.0]))
    with pytest.raises(InputError, match=r"shape \[4\], got \[3\]"):
        build(torch.ones(3))
    with pytest.raises(InputError, match=r"shape \[4\], got \[4, 1\]"):
        build(torch.ones(4, 1))
    with pytest.raises(InputError, match=r"floating point, got torch\.int64"):
        build(torch.ones(4, dtype=LONG))


def test_weights_that_are_no_tensor() -> None:
    with pytest.raises(InputError, match=r"edge_weight.*list"):
        operator(EDGES, 3, [1.0, 1.0, 1.0, 1.0])


OPERATOR_CASES = [
    ({"edges": [[0], [1]]}, r"tensor of shape \[2, E\], got list"),
    ({"num_nodes": 0}, r"num_nodes must be an integer >= 1, got 0"),
    ({"num_nodes": 2.5}, r"num_nodes must be an integer >= 1, got 2\.5"),
    ({"edges": torch.empty(2, 0, dtype=LONG)}, r"edge_index is empty and num_nodes is not given"),
    ({"normalization": "symmetric"}, r"normalization must be one of 'sym', 'rw', 'col', got 'symmetric'"),
    ({"direction": "forward"}, r"direction must be one of 'both', 'in', 'out', got 'forward'"),
    ({"symmetrize": "min"}, r"symmetrize must be one of 'max', 'mean', got 'min'"),
    ({"self_loops": "add"}, r"self_loops must be one of True, False, 'keep', got 'add'"),
    ({"lambda_max": 0.0}, r"lambda_max must be positive or 'estimate', got 0\.0"),
    ({"lambda_max": -1}, r"lambda_max must be positive or 'estimate', got -1"),
    ({"lambda_max": math.inf}, r"lambda_max must be positive or 'estimate', got inf"),
    ({"lambda_max": math.nan}, r"lambda_max must be positive or 'estimate', got nan"),
    ({"lambda_max": "lanczos"}, r"lambda_max must be positive or 'estimate', got 'lanczos'"),
    ({"lambda_max": "estimate", "direction": "in"}, r"estimate.*got direction='in'"),
    ({"lambda_max": "estimate", "normalization": "rw"}, r"estimate.*normalization='rw'"),
    ({"dtype": torch.int64}, r"dtype.*got torch\.int64"),
]


@pytest.mark.parametrize(("options", "message"), OPERATOR_CASES)
def test_operator_options(options: dict, message: str) -> None:
    options = {"edges": EDGES, **options}
    with pytest.raises(InputError, match=message):
        operator(options.pop("edges"), **options)


NETWORK_CASES = [
    ({"chaos_order": -1}, r"chaos_order must be an integer >= 0, got -1"),
    ({"chaos_order": 1.5}, r"chaos_order must be an integer >= 0, got 1\.5"),
    ({"chaos_order": True}, r"chaos_order must be an integer >= 0, got True"),
    ({"gate_order": -1}, r"gate_order must be an integer >= 0, got -1"),
    ({"filter_orders": (3, -1)}, r"filter_orders must be an integer >= 0, got -1"),
    ({"filter_orders": (1, 2, 3)}, r"filter_orders must be two degrees .*got \(1, 2, 3\)"),
    ({"filter_orders": 3}, r"filter_orders must be two degrees .*got 3"),
    ({"quadrature_size": 0}, r"quadrature_size must be an integer >= 1, got 0"),
    ({"quadrature_size": 200}, r"quadrature_size must be at most 128, got 200"),
    ({"activation": "rectify"}, r"activation must be one of .*relu.*got 'rectify'"),
    ({"bias": "no"}, r"bias must be one of True, False, got 'no'"),
    ({"filter_init": "bandpass"}, r"filter_init must be one of .*lowpass.*got 'bandpass'"),
    ({"weight_init": "he"}, r"weight_init must be one of .*glorot.*got 'he'"),
]
ONLY_NETWORK_CASES = [
    ({"num_layers": 0}, r"num_layers must be an integer >= 1, got 0"),
    ({"propagation": "middle"}, r"propagation must be one of 'every', 'first', 'last', got 'middle'"),
    ({"readout": "mean"}, r"readout must be one of 'linear', 'filtered', got 'mean'"),
    ({"residual": "dense"}, r"residual must be one of .*'identity'.*got 'dense'"),
    ({"residual": 1}, r"residual must be one of .*'identity'.*got 1"),
    ({"norm": "layer"}, r"norm must be one of .*'batch', 'joint', got 'layer'"),
    ({"lift": "none"}, r"lift must be one of 'separate', 'shared', got 'none'"),
    ({"branches": "mean"}, r"branches must be one of 'sum', 'concat', got 'mean'"),
    ({"branches": "concat"}, r"branches='concat' goes with propagation='first', got propagation='every'"),
    ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1\.0"),
    ({"input_dropout": -0.1}, r"input_dropout must be in \[0, 1\), got -0\.1"),
    ({"lift_dropout": math.nan}, r"lift_dropout must be in \[0, 1\), got nan"),
    ({"dropout": "a"}, r"dropout must be in \[0, 1\), got 'a'"),
    ({"dropout": None}, r"dropout must be in \[0, 1\), got None"),
    ({"joint_dropout": "no"}, r"joint_dropout must be one of True, False, got 'no'"),
    ({"activation": None}, r"activation=None"),
]


@pytest.mark.parametrize(("options", "message"), NETWORK_CASES + ONLY_NETWORK_CASES)
def test_network_options(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DSSGNN(4, 5, 2, **options)


@pytest.mark.parametrize(("options", "message"), NETWORK_CASES)
def test_layer_options(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DSSConv(4, 5, **{"chaos_order": 2, **options})


@pytest.mark.parametrize("position", [0, 1, 2])
def test_widths(position: int) -> None:
    widths = [4, 5, 2]
    widths[position] = 0
    name = ("in_channels", "hidden_channels", "out_channels")[position]
    with pytest.raises(InputError, match=rf"{name} must be an integer >= 1, got 0"):
        DSSGNN(*widths)
    if position != 1:
        with pytest.raises(InputError, match=rf"{name} must be an integer >= 1, got 0"):
            DSSConv(widths[0], widths[2], 1)


def test_features_that_do_not_match_the_model() -> None:
    model = DSSGNN(4, 5, 2)
    with pytest.raises(InputError, match=r"x has 6 features, but the model was made for 4"):
        model(features(3, 6), EDGES)
    with pytest.raises(InputError, match=r"shape \[N, features\], got \[3\]"):
        model(torch.ones(3), EDGES)
    with pytest.raises(InputError, match=r"shape \[N, features\], got \[3, 4, 1\]"):
        model(torch.ones(3, 4, 1), EDGES)
    with pytest.raises(InputError, match=r"floating point, got torch\.int64"):
        model(torch.ones(3, 4, dtype=LONG), EDGES)
    with pytest.raises(InputError, match=r"tensor of shape \[N, features\], got list"):
        model([[1.0] * 4] * 3, EDGES)
    with pytest.raises(InputError, match=r"5 rows, but the graph has 3 nodes"):
        model(features(5), operator())
    with pytest.raises(InputError, match=r"names node 2, but there are 2 nodes"):
        model(features(2), EDGES)


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (DSSGNN(4, 5, 2), features().double()),
        (DSSGNN(4, 5, 2).double(), features()),
        (DSSGNN(4, 5, 2), features().half()),
    ],
    ids=["float64 in float32", "float32 in float64", "float16 in float32"],
)
def test_features_of_another_type(model: DSSGNN, x: Tensor) -> None:
    """Features from numpy are float64 by default: the message names both types."""
    got, expected = str(x.dtype).split(".")[1], str(model.readout_weight.dtype).split(".")[1]
    with pytest.raises(InputError, match=rf"(?s)(?=.*{got})(?=.*{expected})"):
        model(x, EDGES)


def test_state_of_the_wrong_shape() -> None:
    conv = DSSConv(4, 5, 2)
    for shape in [(3, 2, 4), (3, 3, 5), (3, 4), (3, 3, 4, 1)]:
        message = re.escape(f"[N, 3, 4], got {list(shape)}")
        with pytest.raises(InputError, match=message):
            conv(torch.ones(shape), EDGES)
    with pytest.raises(InputError, match=r"5 rows, but the graph has 3 nodes"):
        conv(torch.ones(5, 3, 4), operator())
    with pytest.raises(InputError, match=r"float32.*float64"):
        conv(torch.ones(3, 3, 4, dtype=torch.float64), operator())


def test_graphs_that_are_none() -> None:
    for module, state in ((DSSGNN(4, 5, 2), features()), (DSSConv(4, 5, 2), torch.ones(3, 3, 4))):
        with pytest.raises(InputError, match=r"GraphOperator or an edge_index, got str"):
            module(state, "cora")
    with pytest.raises(InputError, match=r"edge_weight goes with an edge_index"):
        DSSConv(4, 5, 2)(torch.ones(3, 3, 4), operator(), torch.ones(4))


def test_operator_products() -> None:
    op = operator()
    with pytest.raises(InputError, match=r"4 rows, but the graph has 3 nodes"):
        op @ torch.ones(4, 2)
    with pytest.raises(InputError, match=r"float32.*float64"):
        op @ torch.ones(3, 2, dtype=torch.float64)
    with pytest.raises(InputError, match=r"basis must be one of 'chebyshev', 'monomial', got 'bernstein'"):
        op.filter(torch.ones(3, 1, 2), torch.ones(1, 1, 3), "bernstein")
    with pytest.raises(InputError, match=r"\[N, Q, d\].*\[R, Q, K\+1\], got \[3, 2, 2\] and \[1, 3, 3\]"):
        op.filter(torch.ones(3, 2, 2), torch.ones(1, 3, 3))


def test_hybrid() -> None:
    with pytest.raises(InputError, match=r"warmup_epochs must be an integer >= 0, got -1"):
        hybrid(warmup_epochs=-1)
    with pytest.raises(InputError, match=r"logits \[3, 7\], the branch expects \[3, 2\]"):
        DSSHybrid(WrongBase(), DSSGNN(4, 5, 2), warmup_epochs=0)(features(), EDGES)
    with pytest.raises(InputError, match=r"encoder must be one of .*gcn.*got 'transformer'"):
        make_encoder("transformer", 4, 5, 2)


def test_expansion() -> None:
    for shape in [(2, 3), (2,), (2, 3, 4, 5), (2, 0, 3), (2, 3, 0)]:
        with pytest.raises(InputError, match=re.escape(f"[N, P+1, C], got {list(shape)}")):
            ChaosExpansion(torch.ones(shape))
    with pytest.raises(InputError, match=r"quadrature_size must be an integer >= 1, got 0"):
        ChaosExpansion(torch.ones(2, 3, 4), 0)
    with pytest.raises(InputError, match=r"quadrature_size must be at most 128, got 129"):
        ChaosExpansion(torch.ones(2, 3, 4), 129).predictive()
    for temperature in (0.0, -1.0, math.nan):
        with pytest.raises(InputError, match=rf"temperature must be positive, got {temperature}"):
            ChaosExpansion(torch.ones(2, 3, 4)).energy(temperature)


def test_expansion_of_something_else() -> None:
    with pytest.raises(InputError, match=r"floating point, got torch\.int64"):
        ChaosExpansion(torch.ones(2, 3, 4, dtype=LONG))
    with pytest.raises(InputError, match=r"\[N, P\+1, C\], got list"):
        ChaosExpansion([[[1.0]]])


def test_an_input_error_is_a_value_error() -> None:
    """Callers that know nothing of dssgnn can catch it."""
    assert issubclass(InputError, ValueError)


def test_rates_may_be_numpys_as_sweeps_bring_them() -> None:
    assert DSSGNN(2, 4, 2, dropout=np.float32(0.25), eta=np.float64(-0.5)).dropout == 0.25
    for rate in (True, np.True_, "a", None, 1.0, float("nan")):
        for make in (DSSGNN, PublishedDSS):
            with pytest.raises(InputError, match=r"dropout must be in \[0, 1\), got "):
                make(2, 4, 2, dropout=rate)
