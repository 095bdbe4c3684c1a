"""The one exception the library raises for bad input."""

__all__ = ["InputError"]


class InputError(ValueError):
    """Input that cannot be used; its message names the value received and the one expected.

    The command line prints it as one line, ``error: ...``, and exits with code 2.
    """
