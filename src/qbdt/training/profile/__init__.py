"""Front door of training.profile."""

from qbdt.training.profile.score import ProfiledEnsemble

__all__ = ["ProfiledEnsemble"]
