"""Graphs in: catalog, readers, people's own tables, splits, shifts, synthetic graphs, checks."""
