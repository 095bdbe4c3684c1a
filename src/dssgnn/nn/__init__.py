"""The layer, the networks made of it, and encoders that stand beside them."""

from dssgnn.nn.conv import DSSConv
from dssgnn.nn.encoders import Deterministic, make_encoder
from dssgnn.nn.hybrid import DSSHybrid, HybridExpansion
from dssgnn.nn.network import DSSGNN

__all__ = ["DSSGNN", "DSSConv", "DSSHybrid", "Deterministic", "HybridExpansion", "make_encoder"]
