"""`dssgnn bench ...`, a file a command; what is heavy is imported inside them."""

import typer

from dssgnn.benchmarks.commands.calibration import calibration
from dssgnn.benchmarks.commands.reading import reading
from dssgnn.benchmarks.commands.render import render
from dssgnn.benchmarks.commands.speed import speed

__all__ = ["bench"]

bench = typer.Typer(help="The benchmarks; each writes its records into a results file.", no_args_is_help=True)
bench.command()(reading)
bench.command()(render)
bench.command()(speed)
bench.command()(calibration)
