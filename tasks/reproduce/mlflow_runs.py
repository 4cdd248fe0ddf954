"""A reproduction in MLflow: one run with a nested run for each claim."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import Any

from ppdm_core.model.shown_text import escape_markdown
from tasks.notify.mlflow_entry import NOTE, round_figure
from tasks.notify.mlflow_log import find_experiment, log_values, reach_mlflow, to_milliseconds
from tasks.progress import log_progress
from tasks.reproduce.plan import Reproduction
from tasks.tune.mlflow_runs import PARENT

EXPERIMENT = "reproduction"


def log_claim_runs(home: Path, found: Reproduction, time: datetime) -> bool:
    """Log all claims; return False if MLflow cannot be reached, on which nothing depends."""

    def log(client: Any) -> bool:
        experiment = find_experiment(client, home, EXPERIMENT)
        when = to_milliseconds(time)
        parent = client.create_run(experiment, start_time=when, run_name=EXPERIMENT)
        parent_id = str(parent.info.run_id)
        for finding in found.findings:
            claim = finding.claim
            run = client.create_run(
                experiment,
                start_time=when,
                tags={
                    "paper": claim.paper,
                    "claim": claim.id,
                    "verdict": str(finding.verdict),
                    "kind": claim.kind,
                    NOTE: escape_markdown(claim.claim),
                    PARENT: parent_id,
                },
                run_name=claim.id,
            )
            true, false, still_open = finding.counts
            figures: dict[str, float] = {
                "statements/true": true,
                "statements/false": false,
                "statements/open": still_open,
            }
            values = [each.value for each in finding.decided if math.isfinite(each.value)]
            if len(values) == 1:
                figures["value"] = values[0]
            numbers = {name: round_figure(value) for name, value in figures.items()}
            words = {"experiment": claim.experiment, "paper says": claim.figure}
            log_values(client, str(run.info.run_id), numbers, words, time, 0)
            client.set_terminated(str(run.info.run_id))
        client.set_terminated(parent_id)
        return True

    return bool(reach_mlflow(home, EXPERIMENT, log_progress, log))
