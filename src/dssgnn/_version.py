"""The version, in one place."""

__version__ = "0.1.0"


def versions() -> dict[str, str]:
    """The versions that a model or a result depends on."""
    import platform

    import torch

    return {"dssgnn": __version__, "torch": torch.__version__, "python": platform.python_version()}
