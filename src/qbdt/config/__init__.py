"""An analysis as one YAML file: its schema, and how it is read and checked."""

from qbdt.config.fit import FitSettings
from qbdt.config.reading import json_schema, parse_analysis, read_analysis
from qbdt.config.schema import (
    Analysis,
    BuiltinDataset,
    Folds,
    NormSource,
    SampleFiles,
    ShapeSource,
    ShapeVariation,
    Training,
    WeightSource,
)

__all__ = [
    "Analysis",
    "BuiltinDataset",
    "FitSettings",
    "Folds",
    "NormSource",
    "SampleFiles",
    "ShapeSource",
    "ShapeVariation",
    "Training",
    "WeightSource",
    "json_schema",
    "parse_analysis",
    "read_analysis",
]
