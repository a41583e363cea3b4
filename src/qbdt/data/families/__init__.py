"""Families of weights: replicas and eigenvectors of parton densities, and envelopes of scales, as few sources.

In: a `WeightFamily` and lists of factors on the weights of events. Out: sources, one for each principal component that
is kept. What a family does to any yield is linear in the relative shifts d of the events' weights, so an orthogonal
rotation of its members leaves the covariance of all yields as it is. `find_basis` rotates to principal components and
keeps as many as are needed for a share of the mean squared shift of every process. Only these are stored, in single
precision: a family of a hundred members costs 4 bytes per event and component.
"""

from qbdt.data.families.basis import (
    BASIS_ROWS,
    FamilyBasis,
    FamilyRows,
    FamilySampler,
    find_bases,
    find_basis,
    make_families_table,
    make_sources,
)
from qbdt.data.families.weight_family import ONE_SIGMA, FamilyKind, WeightFamily

__all__ = [
    "BASIS_ROWS",
    "ONE_SIGMA",
    "FamilyBasis",
    "FamilyKind",
    "FamilyRows",
    "FamilySampler",
    "WeightFamily",
    "find_bases",
    "find_basis",
    "make_families_table",
    "make_sources",
]
