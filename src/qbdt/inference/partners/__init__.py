"""Information of other regions and channels on the parameters of a training.

In: a pyhf workspace, a `Measurement`, or the templates of a region. Out: a `Partner`, the expected information of its
counts, which a training takes as a setting.
"""

from qbdt.inference.partners.information import read_partner

__all__ = ["read_partner"]
