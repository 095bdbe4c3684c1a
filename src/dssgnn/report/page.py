"""The page as HTML: template, style, script and data in one file."""

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from dssgnn.errors import InputError
from dssgnn.files import atomic_path
from dssgnn.report.content import report_content

__all__ = ["render", "write_report"]

SCRIPTS = ("draw.js", "performance.js", "inside.js", "detail.js", "nodes.js", "page.js")


def write_report(
    folder: Path | str, out: Path | str, *, outliers: Mapping[str, np.ndarray] | None = None
) -> None:
    """Write the page of a model folder: one file that needs no network.

    Args:
        folder: as `dssgnn fit` writes it; with ``--no-graph`` the parts that need edges say so.
        out: the HTML file; whole or absent.
        outliers: energies of the nodes of other graphs by name, drawn beside those of the test part.

    Raises:
        InputError: if a file of the folder is missing or malformed, or ``out`` cannot be written.
    """
    page = render(report_content(folder, outliers)).encode("utf-8", errors="replace")
    try:
        with atomic_path(out) as path:
            path.write_bytes(page)
            path.chmod(0o644)  # a temporary file is its owner's alone
    except OSError as error:
        raise InputError(f"{out} must be a file that can be written: {error.strerror or error}") from None


def render(content: Mapping[str, Any]) -> str:
    """The page that shows `report_content`.

    A strict content policy allows the page's own style and scripts by their hashes and nothing else, so that
    even a string that slipped through escaping could neither run nor load anything.
    """
    style = _text("page.css")
    theme = _text("theme.js")
    script = "(() => {\n'use strict';\n" + "\n".join(_text(name) for name in SCRIPTS) + "})();\n"
    about = content["about"]
    return Template(_text("page.html")).substitute(
        policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(theme)} {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        title=html.escape(f"{about['method']} on {about['graph']}"),
        style=style,
        theme=theme,
        script=script,
        data=embed(content),
    )


def embed(content: object) -> str:
    """JSON that is safe inside a ``<script>`` element: no character in it can end or open a tag.

    Example:
        >>> embed({"class": "</script><b>&"})
        '{"class":"\\\\u003c/script\\\\u003e\\\\u003cb\\\\u003e\\\\u0026"}'
    """
    text = json.dumps(content, allow_nan=False, separators=(",", ":"), default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _text(name: str) -> str:
    return files("dssgnn.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
