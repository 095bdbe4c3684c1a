"""`dssgnn datasets`."""

from typing import Annotated

import typer

__all__ = ["datasets"]


def datasets(
    as_json: Annotated[bool, typer.Option("--json", help="Every field, for machines.")] = False,
) -> None:
    """List every known dataset: size, licence, where it is looked for, present or absent and why.

    Example: dssgnn datasets --json
    """
    import json

    from rich.console import Console
    from rich.table import Table

    from dssgnn.data.catalog import status_rows

    rows = status_rows()
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    table = Table(
        "name", "nodes", "edges", "classes", "features", "licence", "here", caption="edges: both directions"
    )
    table.columns[0].no_wrap = True
    for row in rows:
        sizes = (f"{row[key]:,}" for key in ("nodes", "edges", "classes", "features"))
        table.add_row(row["name"], *sizes, row["licence"], "yes" if row["present"] else "no")
    console = Console()
    console.print(table)
    for row in rows:
        if not row["present"]:
            console.print(f"{row['name']}: {row['reason']}", soft_wrap=True, highlight=False)
