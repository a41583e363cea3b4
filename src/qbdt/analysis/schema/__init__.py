"""The typed schema of an analysis file: its sections, with defaults and descriptions for editors.

In: plain content of a YAML file. Out: an `Analysis`, checked, or a message that names the key. There is a module for
each section; fields that several have are in `schema_fields`.
"""

from qbdt.analysis.schema.analysis_schema import Analysis, Folds
from qbdt.analysis.schema.fit_schema import FigureText, Fit, Variable
from qbdt.analysis.schema.region_schema import Region
from qbdt.analysis.schema.sample_schema import DataDriven, Era, Generated, SampleFiles
from qbdt.analysis.schema.source_schema import FamilySource, ShapeSource, ShapeVariation, Source, WeightSource
from qbdt.analysis.schema.training_schema import Training

__all__ = [
    "Analysis",
    "DataDriven",
    "Era",
    "FamilySource",
    "FigureText",
    "Fit",
    "Folds",
    "Generated",
    "Region",
    "SampleFiles",
    "ShapeSource",
    "ShapeVariation",
    "Source",
    "Training",
    "Variable",
    "WeightSource",
]
