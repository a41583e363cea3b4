"""Front door of data."""

from qbdt.data.categories import (
    Categories,
    bits_of_codes,
    categories_of,
    codes_of_bits,
    merged_categories,
    require_categories,
    require_few_categories,
)
from qbdt.data.columns import as_columns
from qbdt.data.dataset import Dataset, Role, Sample, Tally
from qbdt.data.events import Events
from qbdt.data.expressions import Expression
from qbdt.data.feature_names import chosen_features, directions_by_name, repeated
from qbdt.data.folds import FoldRule, HashFolds, ModuloFolds, SplitFolds, fold_rule_from_dict
from qbdt.data.identity import event_keys, row_keys, tells_events_apart
from qbdt.data.systematic import FlatSystematic, Kind, Systematic, Variation

__all__ = [
    "Categories",
    "Dataset",
    "Events",
    "Expression",
    "FlatSystematic",
    "FoldRule",
    "HashFolds",
    "Kind",
    "ModuloFolds",
    "Role",
    "Sample",
    "SplitFolds",
    "Systematic",
    "Tally",
    "Variation",
    "as_columns",
    "bits_of_codes",
    "categories_of",
    "chosen_features",
    "codes_of_bits",
    "directions_by_name",
    "event_keys",
    "fold_rule_from_dict",
    "merged_categories",
    "repeated",
    "require_categories",
    "require_few_categories",
    "row_keys",
    "tells_events_apart",
]
