"""The known graphs: what they are, where their files lie, how they are read, cached and downloaded."""

from dssgnn.data.catalog.loading import get_entry, load, names, status, status_rows

__all__ = ["get_entry", "load", "names", "status", "status_rows"]
