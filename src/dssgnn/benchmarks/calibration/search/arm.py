"""What a search draws from: ranges of a row's architectures and rates, and how a configuration becomes a setup."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dssgnn.benchmarks.frame import Setup

__all__ = ["RATES", "Arm", "Config", "Values"]

Config = Mapping[str, Any]
Values = Mapping[str, tuple[Any, ...]]

# What may differ between members of one block: numbers of the training, not what is computed.
RATES = ("lr", "weight_decay", "chaos_weight", "logit_weight", "coefficient_lr", "coefficient_decay")


@dataclass(frozen=True)
class Arm:
    """A row that is searched for.

    Attributes:
        families: ranges of what is computed.
        rates: ranges of the numbers it is trained with.
        setup: ``setup(config, epochs, patience)``.
        orders: ``(P, S)``; none where there is no chaos axis.
        starts: configurations to try beside drawn ones.
    """

    families: Mapping[str, Values]
    rates: Values
    setup: Callable[[Config, int, int], Setup]
    orders: tuple[tuple[int, int], ...] = ()
    starts: tuple[Config, ...] = ()

    def on(self, directed: bool) -> "Arm":
        """The same without draws that an undirected graph does not notice."""
        if directed:
            return self
        families = {
            family: {k: v[:1] if k == "direction" else v for k, v in values.items() if k != "edges"}
            for family, values in self.families.items()
        }
        return replace(self, families=families)
