"""A tune in MLflow: one run with a nested run for each setting, so that they can be compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ppdm_core.model.shown_text import escape_markdown, show_line
from ppdm_core.tuning.trial import Trial
from tasks.notify.mlflow_entry import NOTE, round_figure
from tasks.notify.mlflow_log import find_experiment, log_values, reach_mlflow, to_milliseconds
from tasks.progress import log_progress
from tasks.tune.result import TuneResult

PARENT, ENDED = "mlflow.parentRunId", "FINISHED"
PAGE = "tune.html"


def log_tune_runs(home: Path, result: TuneResult, page: str, time: datetime) -> bool:
    """Log a tune; return False if MLflow cannot be reached, on which nothing depends.

    A tune that was logged already is not logged again, and what a killed process logged is removed.
    """

    def log(client: Any) -> bool:
        experiment = find_experiment(client, home, result.dataset)
        earlier = client.search_runs([experiment], f"tags.tune = '{result.number}'")
        if any(PARENT not in run.data.tags and run.info.status == ENDED for run in earlier):
            return True
        for run in earlier:
            client.delete_run(run.info.run_id)
        tags = {"dataset": result.dataset, "tune": str(result.number), "outcome": result.outcome}
        when = to_milliseconds(time)
        parent = client.create_run(
            experiment,
            start_time=when,
            tags={**tags, NOTE: escape_markdown(describe(result))},
            run_name=result.name,
        )
        parent_id = str(parent.info.run_id)
        for place, trial in enumerate(result.trials, start=1):
            run = client.create_run(
                experiment,
                start_time=when,
                tags={**tags, **describe_trial(trial, result), PARENT: parent_id},
                run_name=f"{result.name} setting {place}",
            )
            run_id = str(run.info.run_id)
            log_values(
                client, run_id, list_figures(trial, result), list_words(trial), time, result.number
            )
            client.set_terminated(run_id)
        client.log_text(parent_id, page, PAGE)
        client.set_terminated(parent_id)
        return True

    return bool(reach_mlflow(home, result.name, log_progress, log))


def describe(result: TuneResult) -> str:
    """Return what a tune found, in a few sentences."""
    choice = result.choice
    found = f"Proposed: {choice.setting.title}." if choice else "No setting keeps the policy."
    costs = " ".join(each.sentence for each in result.trade_offs)
    return f"{result.tried} settings were tried. {found} {costs}".rstrip()


def describe_trial(trial: Trial, result: TuneResult) -> dict[str, str]:
    """Return the tags of a setting."""
    is_chosen = trial.setting.digest == result.chosen
    return {
        "method": trial.setting.method,
        "verdict": trial.outcome,
        "outcome": "proposed" if is_chosen else "tried",
        "round": str(trial.round),
    }


def list_figures(trial: Trial, result: TuneResult) -> Mapping[str, float]:
    """Return the figures of a setting, under the names that releases have."""
    figures = {f"{score.kind}/{score.name}": score.value for score in trial.scores}
    utility = result.utility.compute(trial.scores)
    if utility is not None:
        figures["utility/chosen"] = utility.share
    if trial.guarantee is not None:
        figures["worst_case/amplification.record.ln"] = trial.guarantee.ln_record
    return {name: round_figure(value) for name, value in figures.items() if math.isfinite(value)}


def list_words(trial: Trial) -> Mapping[str, str]:
    """Return method and parameters of a setting, under the names that releases have."""
    own = {f"method/{name}": str(value) for name, value in trial.setting.parameters.items()}
    words = {"method": trial.setting.method, **own, "records": str(trial.records)}
    return {name: show_line(text) for name, text in words.items()}
