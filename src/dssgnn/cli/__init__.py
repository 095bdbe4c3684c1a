"""The command line, a file a command. Everything heavy is imported inside them, so that help comes at once."""

import os
import re
import sys
from typing import Annotated

import typer

from dssgnn._version import __version__
from dssgnn.benchmarks.commands import bench
from dssgnn.cli.datasets import datasets
from dssgnn.cli.demo import demo
from dssgnn.cli.evaluate import evaluate
from dssgnn.cli.fit import fit
from dssgnn.cli.predict import predict
from dssgnn.cli.report import report

__all__ = ["app", "main"]

app = typer.Typer(
    name="dssgnn",
    help="Uncertainty for graph neural networks.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(fit)
app.command()(predict)
app.command()(evaluate)
app.command()(report)
app.command()(demo)
app.command()(datasets)
app.add_typer(bench, name="bench")


def main() -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    from dssgnn.errors import InputError

    # Threads that spin while they wait stall each other on a busy machine; torch is not imported yet.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        code = app(standalone_mode=False)
    except (InputError, OSError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        # typer carries its own copy of click: its usage errors are known by what they can do.
        if not hasattr(error, "format_message"):
            if isinstance(error, MemoryError) or re.search("allocate memory|out of memory", str(error)):
                _fail(f"not enough memory for this model and graph: {error}")
            raise
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            sys.exit(2)
        _fail(error.format_message() or "see --help")
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> None:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
