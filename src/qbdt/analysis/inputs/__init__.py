"""Inputs of an analysis, looked at before anything is trained.

In: an analysis and its files. Out: tables of yields, sources and probable faults (`inspect_inputs`), or a page with
every variable, source and correlation (`plot_inputs`).
"""

from qbdt.analysis.inputs.drawn_variables import add_variables, list_drawn, require_drawable
from qbdt.analysis.inputs.histograms import choose_edges, fill_variable
from qbdt.analysis.inputs.inputs_page import inputs_document, plot_inputs
from qbdt.analysis.inputs.inspection import Inspection, inspect_inputs

__all__ = [
    "Inspection",
    "add_variables",
    "choose_edges",
    "fill_variable",
    "inputs_document",
    "inspect_inputs",
    "list_drawn",
    "plot_inputs",
    "require_drawable",
]
