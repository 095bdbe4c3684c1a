"""Figures for ``docs/figures``, the same bytes for the same records; needs matplotlib."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dssgnn.files import atomic_path

__all__ = ["tidy", "write_figures"]

# No date, no random ids; text stays text.
_SETTINGS = {"svg.hashsalt": "dssgnn", "svg.fonttype": "none", "axes.axisbelow": True}


def write_figures(figures: Mapping[Path, Callable[[], Any]], font_size: float = 9) -> list[Path]:
    """Draw every figure into its ``.svg`` file; returns the files that changed."""
    import matplotlib

    matplotlib.use("svg")
    changed = []
    for path, make in figures.items():
        with matplotlib.rc_context({**_SETTINGS, "font.size": font_size}):
            content = _svg(make())
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_path(path) as temporary:
                temporary.write_bytes(content)
            changed.append(path)
    return changed


def tidy(panel: Any) -> None:
    """A light grid, and no frame at the top and the right."""
    panel.grid(color="#DDDDDD", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)


def _svg(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", dpi=120, metadata={"Date": None, "Creator": None})
    # matplotlib ends lines with blanks, which repositories dislike.
    return b"\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + b"\n"
