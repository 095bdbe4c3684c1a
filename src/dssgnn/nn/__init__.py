"""The layer, the networks made of it, and encoders that stand beside them."""

from dssgnn.nn.conv import DSSConv
from dssgnn.nn.encoders import GPRGNN, Deterministic, make_encoder
from dssgnn.nn.hybrid import DSSHybrid, HybridExpansion
from dssgnn.nn.network import DSSGNN

__all__ = ["DSSGNN", "GPRGNN", "DSSConv", "DSSHybrid", "Deterministic", "HybridExpansion", "make_encoder"]
