"""Information of other regions and channels on the parameters of a training.

In: a pyhf workspace, a `Measurement`, or the templates of a region. Out: a `Partner`, the expected information of its
counts, which a training takes as a setting; and a `JointFit`, what comes of a fit together with it.
"""

from qbdt.inference.partners.information import read_partner
from qbdt.inference.partners.joint_fit import JointFit, join_information

__all__ = ["JointFit", "join_information", "read_partner"]
