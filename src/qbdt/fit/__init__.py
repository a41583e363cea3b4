"""Likelihood fits of templates: workspaces, pyhf and iminuit, significances, and the fast Asimov solver."""

from qbdt.fit.appendix import background_uncertainty, source_significances
from qbdt.fit.asimov import AsimovResult, asimov
from qbdt.fit.building import Built, build_templates, refill
from qbdt.fit.combine import write_datacard
from qbdt.fit.histfactory import write_xml
from qbdt.fit.likelihood import Likelihood
from qbdt.fit.newton import NewtonFit, maximise
from qbdt.fit.result import FitResult, FitSummary
from qbdt.fit.run import fit_templates, run_fit, write_fit
from qbdt.fit.summarise import refit_impacts, scan_mu, summarise
from qbdt.fit.workspace import read_workspace, workspace_of, write_workspace

__all__ = [
    "AsimovResult",
    "Built",
    "FitResult",
    "FitSummary",
    "Likelihood",
    "NewtonFit",
    "asimov",
    "background_uncertainty",
    "build_templates",
    "fit_templates",
    "maximise",
    "read_workspace",
    "refill",
    "refit_impacts",
    "run_fit",
    "scan_mu",
    "source_significances",
    "summarise",
    "workspace_of",
    "write_datacard",
    "write_fit",
    "write_workspace",
    "write_xml",
]
