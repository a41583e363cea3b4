"""Peers of the speed benchmarks, those that are installed, each with its fastest sensible settings.

All grow trees of seven leaves with 256 bins where they can; trees of depth 3 (eight leaves) where they cannot grow best
first, or grow so faster. `pip install qbdt[bench]` brings all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

__all__ = ["LEAVES", "TREES", "installed_peers"]

TREES, LEAVES = 100, 7


def _xgboost(threads: int) -> Any:
    from xgboost import XGBClassifier

    shape = {"grow_policy": "lossguide", "max_leaves": LEAVES, "max_depth": 0, "max_bin": 256}
    return XGBClassifier(tree_method="hist", n_estimators=TREES, n_jobs=threads, **shape)


def _lightgbm(threads: int, **more: Any) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(num_leaves=LEAVES, max_bin=255, n_estimators=TREES, n_jobs=threads, verbose=-1, **more)


def _lightgbm_quantised(threads: int) -> Any:
    return _lightgbm(threads, use_quantized_grad=True)


def _scikit_learn(threads: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=TREES, max_leaf_nodes=LEAVES, max_bins=255, early_stopping=False)


def _hessboost(threads: int) -> Any:
    from hessboost.sklearn import HessboostClassifier

    shape = {"grow_policy": "lossguide", "max_leaves": LEAVES, "max_depth": 0, "max_bin": 256}
    return HessboostClassifier(tree_method="hist", n_estimators=TREES, n_jobs=threads, **shape)


def _hessboost_depth(threads: int) -> Any:
    from hessboost.sklearn import HessboostClassifier

    return HessboostClassifier(tree_method="hist", n_estimators=TREES, n_jobs=threads, max_depth=3, max_bin=256)


def _catboost(threads: int) -> Any:
    from catboost import CatBoostClassifier

    shape = {"depth": 3, "border_count": 254, "boosting_type": "Plain", "bootstrap_type": "No"}
    return CatBoostClassifier(iterations=TREES, thread_count=threads, verbose=False, allow_writing_files=False, **shape)


def _snapml(threads: int) -> Any:
    from snapml import BoostingMachineClassifier

    return BoostingMachineClassifier(num_round=TREES, max_depth=3, hist_nbins=256, n_jobs=threads)


class Peer(NamedTuple):
    """The module of a library, and what makes a model that trains on so many threads."""

    module: str
    make: Callable[[int], Any]


PEERS = {
    "XGBoost": Peer("xgboost", _xgboost),
    "LightGBM": Peer("lightgbm", _lightgbm),
    "LightGBM, quantised gradients": Peer("lightgbm", _lightgbm_quantised),
    "scikit-learn": Peer("sklearn", _scikit_learn),
    "hessboost": Peer("hessboost", _hessboost),
    "hessboost, depth 3": Peer("hessboost", _hessboost_depth),
    "CatBoost, depth 3": Peer("catboost", _catboost),
    "snapml, depth 3": Peer("snapml", _snapml),
}


def installed_peers() -> dict[str, Callable[[int], Any]]:
    """What makes the models of the peers whose library is installed, by name."""
    return {name: peer.make for name, peer in PEERS.items() if find_spec(peer.module)}
