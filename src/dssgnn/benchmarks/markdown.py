"""Tables in Markdown."""

from collections.abc import Iterable

from dssgnn.metrics import PairedComparison

__all__ = ["ABSENT", "markdown", "starred", "tested"]

ABSENT = "Not measured yet.\n"


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table.

    Example:
        >>> print(markdown(["a", "b"], [["1", "2"]]), end="")
        | a | b |
        | --- | --- |
        | 1 | 2 |
    """
    lines = [list(header), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def starred(comparison: PairedComparison, p_value: float) -> str:
    """A paired difference; a star where the corrected p-value is below 0.05."""
    return f"{comparison.difference:+.3f}{'*' if p_value < 0.05 else ''}"


def tested(comparison: PairedComparison, p_value: float) -> list[str]:
    """Difference, interval, corrected p-value and wins of a paired comparison, as cells."""
    c = comparison
    return [f"{c.difference:+.4f}", f"{c.low:+.4f} to {c.high:+.4f}", f"{p_value:.3f}", f"{c.wins}/{c.count}"]
