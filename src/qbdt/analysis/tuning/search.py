"""The search itself, with Optuna; resumable at every trial, and the same however often it was interrupted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from qbdt.analysis.loader import training_settings
from qbdt.analysis.schema import Analysis
from qbdt.analysis.tuning.judge import Judge
from qbdt.analysis.tuning.result import Tuning, TuningTrial
from qbdt.analysis.tuning.space import Dimension, space_of
from qbdt.data import Dataset
from qbdt.errors import ConfigError, DataError, FitError, OutputError, require
from qbdt.files import digest, make_folder
from qbdt.progress import Progress, silent
from qbdt.statistics import Sensitivity
from qbdt.training import Settings, SingleModel, train

STUDY_FILE = "study.db"
RANDOM_TRIALS = 10
"""Trials at random before the search learns from what it has seen."""


def tune(
    dataset: Dataset,
    analysis: Analysis,
    folder: Path | str,
    *,
    n_trials: int = 50,
    inner: int = 3,
    seed: int = 0,
    n_threads: int | None = None,
    device: str | None = None,
    progress: Progress = silent,
    say: Callable[[str], None] = lambda text: None,
) -> Tuning:
    """Search for training settings with a small σ_μ, beginning at the training section of the analysis.

    Parameters
    ----------
    folder
        Where the study is kept; a search that is started again in the same folder goes on.
    n_trials
        Number of trials in all, those of earlier calls included.
    inner
        Inner folds; see `Judge`.
    say
        Told about every trial.
    """
    analysis.require_one_strength("a search")
    base = training_settings(analysis)
    space = space_of(base.method)
    judge = Judge(dataset, analysis.fit, _trainer(analysis, n_threads, device), inner, n_threads, device)
    claim = _digest_search(dataset, analysis, space, inner, seed)
    with _explain_storage_errors(Path(folder) / STUDY_FILE), _open_study(Path(folder), claim) as study:
        start = _judge_start(study, judge, base, space)
        say(f"settings of the file: σ_μ {start.value:.4f}")
        with progress("trials", n_trials) as advance:
            advance(min(len(_list_finished(study)), n_trials))
            while (number := len(_list_finished(study))) < n_trials:
                trial = _run_trial(study, judge, base, space, number, seed)
                say(f"trial {number}: σ_μ {trial.value:.4f}")
                advance(1)
        trials = tuple(_read_trial(found, i) for i, found in enumerate(_list_finished(study)[:n_trials]))
        searched = Tuning(base.method, start, trials, Sensitivity(0, 0), Sensitivity(0, 0))
        chosen = [replace(base, **searched.best_without(fold).settings) for fold in range(judge.n_outer)]
        out_of_fold = _judge_whole(study, "out of fold", judge, [base] * judge.n_outer)
        return replace(searched, out_of_fold=out_of_fold, nested=_judge_whole(study, "nested", judge, chosen))


@contextmanager
def _explain_storage_errors(path: Path) -> Iterator[None]:
    """Say what is wrong with the file of the study: a full disk, a damaged file."""
    internal: type[Exception] = require("optuna.exceptions", "qbdt tune").StorageInternalError
    database: type[Exception] = require("sqlalchemy.exc", "qbdt tune").SQLAlchemyError
    try:
        yield
    except (internal, database) as error:
        cause = error.__cause__ if isinstance(error, internal) else error
        reason = getattr(cause, "orig", None) or cause
        raise OutputError(f"{path}: the study cannot be read or written: {reason}") from error


def _trainer(
    analysis: Analysis, n_threads: int | None, device: str | None
) -> Callable[[Dataset, Settings], SingleModel]:
    wanted = analysis.training.systematics

    def run(events: Dataset, settings: Settings) -> SingleModel:
        told = events if wanted is None else events.with_systematics(wanted)
        done = train(told, settings, n_threads=n_threads, device=device)
        if not done.complete:
            raise KeyboardInterrupt
        return done.ensemble

    return run


@contextmanager
def _open_study(folder: Path, claim: str) -> Iterator[Any]:
    """Open the study of a folder, and close its file; refuse that of another analysis."""
    optuna = require("optuna", "qbdt tune")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    make_folder(folder)
    storage = optuna.storages.RDBStorage(f"sqlite:///{(folder / STUDY_FILE).resolve()}")
    try:
        study = optuna.create_study(storage=storage, study_name="qbdt", direction="minimize", load_if_exists=True)
        if study.user_attrs.setdefault("claim", claim) != claim:
            raise ConfigError(
                f"{folder} holds a search of another analysis, other events or other ranges; give another folder"
            )
        study.set_user_attr("claim", claim)
        yield study
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _digest_search(dataset: Dataset, analysis: Analysis, space: tuple[Dimension, ...], inner: int, seed: int) -> str:
    samples = [(s.name, str(s.role), s.events.n_rows, f"{s.events.total:.10g}") for s in dataset.samples]
    return digest([analysis.model_dump(mode="json"), samples, repr(space), inner, seed])


def _judge_start(study: Any, judge: Judge, base: Settings, space: tuple[Dimension, ...]) -> TuningTrial:
    """Judge the settings of the file; refuse to search where even they give nothing that can be fitted."""
    known = study.user_attrs.get("start")
    if known is None:
        known = _judge(judge, base)
        study.set_user_attr("start", known)
    settings = {dimension.name: getattr(base, dimension.name) for dimension in space}
    return TuningTrial(-1, settings, tuple(known["full"]), tuple(known["stat"]))


def _run_trial(
    study: Any, judge: Judge, base: Settings, space: tuple[Dimension, ...], number: int, seed: int
) -> TuningTrial:
    """Propose, judge and note one set of settings; what is proposed depends only on the trials that were finished."""
    optuna = require("optuna", "qbdt tune")
    study.sampler = optuna.samplers.TPESampler(seed=seed * 1_000_003 + number, n_startup_trials=RANDOM_TRIALS)
    trial = study.ask()
    proposed = replace(base, **{dimension.name: dimension.suggest(trial) for dimension in space})
    try:
        verdict = _verdict(judge, proposed)
    except BaseException:
        study.tell(trial, state=optuna.trial.TrialState.FAIL)
        raise
    for key, values in verdict.items():
        trial.set_user_attr(key, values)
    study.tell(trial, float(np.mean(verdict["full"])))
    return _read_trial(_list_finished(study)[-1], number)


def _verdict(judge: Judge, settings: Settings) -> dict[str, list[float]]:
    """σ_μ without each outer fold; infinite where these settings give nothing that can be fitted."""
    try:
        return _judge(judge, settings)
    except (FitError, DataError):
        return {"full": [float("inf")] * judge.n_outer, "stat": [float("inf")] * judge.n_outer}


def _judge(judge: Judge, settings: Settings) -> dict[str, list[float]]:
    found = [judge.inside(fold, settings) for fold in range(judge.n_outer)]
    return {"full": [s.sigma_full for s in found], "stat": [s.sigma_stat for s in found]}


def _list_finished(study: Any) -> list[Any]:
    return [trial for trial in study.trials if trial.value is not None]


def _read_trial(trial: Any, number: int) -> TuningTrial:
    known = trial.user_attrs
    return TuningTrial(number, dict(trial.params), tuple(known["full"]), tuple(known["stat"]))


def _judge_whole(study: Any, name: str, judge: Judge, settings: list[Settings]) -> Sensitivity:
    """σ_μ of the whole analysis with these settings; it stays in the study, so that it is found once."""
    key = hashlib.sha256(repr(settings).encode()).hexdigest()
    known = study.user_attrs.get(name)
    if known is None or known["settings"] != key:
        found = judge.outside(settings)
        known = {"settings": key, "full": found.sigma_full, "stat": found.sigma_stat}
        study.set_user_attr(name, known)
    return Sensitivity(known["stat"], known["full"])
