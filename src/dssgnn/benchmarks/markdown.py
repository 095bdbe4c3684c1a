"""Tables in Markdown."""

from collections.abc import Iterable

__all__ = ["ABSENT", "markdown"]

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
