"""Graphs in: the catalog, people's own tables, splits, settings, synthetic graphs, checks."""

from dssgnn.data.catalog import load, names, status_rows
from dssgnn.data.checks import GraphReport, check_graph
from dssgnn.data.own import FeatureEncoding, LoadedGraph, read_graph
from dssgnn.data.prepare import Preparation, prepare
from dssgnn.data.settings import ood_setting, setting_rows, shift_setting
from dssgnn.data.splits import Split, make_split, stratified_split
from dssgnn.data.synthetic import minesweeper

__all__ = [
    "FeatureEncoding",
    "GraphReport",
    "LoadedGraph",
    "Preparation",
    "Split",
    "check_graph",
    "load",
    "make_split",
    "minesweeper",
    "names",
    "ood_setting",
    "prepare",
    "read_graph",
    "setting_rows",
    "shift_setting",
    "status_rows",
    "stratified_split",
]
