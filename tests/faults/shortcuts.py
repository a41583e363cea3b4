"""What takes long and writes nothing, done once for all trials of a case: fits, trainings of searches, drawing.

The first run of a command fills memories that its children, which are forks, have too. What is written, and how, stays
as it is; figures are saved as usual, with nothing inside of their axes.
"""

import json
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from matplotlib.axes import Axes

from qbdt.analysis import region_fit
from qbdt.analysis.resources import estimate, resource_plan
from qbdt.analysis.tuning import judge
from qbdt.data import Dataset
from qbdt.studies.comparison import comparison_page, contestants, nested_training


def take_shortcuts() -> None:
    """Replace what takes long, in this process."""
    for name in ("fit_templates", "fit_measurement"):
        setattr(region_fit, name, remember(getattr(region_fit, name), _name_fit))
    for name in ("inside", "outside"):
        setattr(judge.Judge, name, remember(getattr(judge.Judge, name), _name_judgement))
    for one in contestants.CONTESTANTS:
        object.__setattr__(one, "fit", remember(one.fit, _name_training))
    comparison_page.run_fit = remember(comparison_page.run_fit, _name_run)  # type: ignore[attr-defined]
    nested_training.time = SimpleNamespace(process_time=lambda: 0.0)  # type: ignore[assignment, attr-defined]
    provenance = sys.modules["qbdt.files.provenance"]
    provenance.versions = remember(provenance.versions, lambda: "")  # type: ignore[attr-defined]
    Axes.draw = lambda self, renderer: None  # type: ignore[method-assign]
    Axes.get_tightbbox = lambda self, renderer=None, **options: self.get_window_extent(renderer)  # type: ignore[method-assign]
    estimate.BASE, resource_plan.LEAST = 0, 1  # as if Python itself took nothing: a few events go out of core


def remember(compute: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
    """Compute once for each name that arguments have."""
    known: dict[str, Any] = {}

    def look_up(*arguments: Any, **options: Any) -> Any:
        key = name(*arguments)
        if key not in known:
            known[key] = compute(*arguments, **options)
        return known[key]

    return look_up


def _name_fit(templates: Any, settings: Any, progress: Any) -> str:
    return json.dumps([templates.to_dict(), settings.model_dump()])


def _name_judgement(judge: Any, *arguments: Any) -> str:
    return repr(arguments)


def _name_training(data: Dataset, settings: Any, seed: int) -> str:
    return repr((nested_training._digest_events(data), settings, seed))


def _name_run(scored: Dataset, settings: Any) -> str:
    return repr((nested_training._digest_events(scored), settings))
