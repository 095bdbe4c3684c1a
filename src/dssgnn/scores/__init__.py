"""What is read from an expansion over a graph."""

from dssgnn.scores.propagation import propagate, propagation_operator

__all__ = ["propagate", "propagation_operator"]
