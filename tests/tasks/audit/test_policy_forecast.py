"""What `ppdm check` foretells of the policy check is what the self-test of the release finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppdm.cli.check_forecast import list_policy_lines
from ppdm_core.model.policy import Limit, Policy
from tasks.audit.policy_forecast import PolicyForecast, forecast_policy_check
from tasks.audit.task import attack_shadows
from tasks.context import ReleaseContext
from tasks.home_state import read_home_state
from tasks.ingest.source_check import open_checked_source
from tasks.ingest.task import begin_release, load_raw, validate
from tasks.sanitize.next_release import prepare_release
from tasks.sanitize.task import draw_candidate
from tests.support.contexts import make_context
from warehouse.columns import Column
from warehouse.stage_facts import AuditedFacts, read_facts

LINK = "record_linkage.rate"


def make_policy(line: float) -> Policy:
    limit = Limit(line, "DPO", "a line")
    return Policy(("record_linkage",), {LINK: limit}, shadow_draws=1, splits=0, effort="quick")


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReleaseContext:
    monkeypatch.setattr(
        "tasks.notify.prefect_artifacts.ProgressBar.show", lambda bar, share: None
    )  # needs a server
    values = np.random.default_rng(1).integers(2, 6, (200, 2)).tolist()
    lines = [f"p{i},{x},{y}" for i, (x, y) in enumerate(values)]
    (tmp_path / "t.csv").write_text("id,x,y\n" + "\n".join(lines) + "\n")
    numeric: dict[str, Any] = {"role": "feature", "type": "numeric", "low": 0.0, "high": 10.0}
    columns = (Column("id", "identifier"), Column("x", **numeric), Column("y", **numeric))
    return make_context(tmp_path, columns=columns, parameters={"b": 0.3}, policy=make_policy(0.4))


def foretell(context: ReleaseContext) -> PolicyForecast:
    state = read_home_state(context)
    with open_checked_source(context, state.columns) as source:
        release = prepare_release(source, context, state)
        return forecast_policy_check(context, release, state)


def validate_first(context: ReleaseContext) -> str:
    """Begin a release, so that the dataset has its key."""
    release_id: str = begin_release.fn(context)
    load_raw.fn(context, release_id)
    validate.fn(context, release_id)
    return release_id


@pytest.mark.slow
def test_forecast_policy_check_as_the_release_finds_it(context: ReleaseContext) -> None:
    release_id = validate_first(context)
    foretold = foretell(context)
    assert foretold.is_exact
    draw_candidate.fn(context, release_id)
    attack_shadows.fn(context, release_id)
    with context.open_run(release_id) as (db, _):
        found = read_facts(db, release_id, AuditedFacts).report.self_test
    assert found is not None and found.policy_check == foretold.check


@pytest.mark.slow
def test_forecast_policy_check_weak_limit_the_named_one_refuses(context: ReleaseContext) -> None:
    validate_first(context)
    foretold = foretell(context)
    text = "\n".join(list_policy_lines(foretold))
    assert "the self-test will refuse this policy on this table" in text
    assert foretold.check is not None
    weak = [each for each in foretold.check.bad if each.refusing_limits]
    assert weak and not any(each.refused_by for each in weak)
    for each in weak:
        line = each.refusing_limits[LINK]
        words = f"{LINK} of that bad release is {each.observed[LINK]:.3g}; a limit of {line:g}"
        assert words in text
    assert "raise 'b' (now 0.3)" in text
    named = min(each.refusing_limits[LINK] for each in weak)
    stricter = foretell(replace(context, policy=make_policy(named)))
    assert stricter.check is not None
    refused = {each.name for each in stricter.check.bad if each.refused_by}
    assert refused >= {each.name for each in weak}


@pytest.mark.slow
def test_forecast_policy_check_time_limit_said(context: ReleaseContext) -> None:
    foretold = foretell(replace(context, policy=replace(context.policy, time_limit=0.001)))
    assert foretold.check is None
    assert foretold.gaps == (
        "Whether this policy refuses bad releases of this table is not known (TimeLimit).",
    )
