"""Categorical features from the source to the published file, by the steps without Prefect."""

from __future__ import annotations

import csv
import gzip
import math
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from flows.config.context import build_checked_context
from flows.config.release_file import load
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Attacker, Limit, Policy
from ppdm_core.model.release import PublicParameters, Response
from ppdm_core.model.schema import Categorical
from ppdm_core.published import public_from_dict
from ppdm_core.sanitizers.randomized_response import estimate_frequencies
from tasks.audit.task import attack_shadows
from tasks.context import ReleaseContext
from tasks.ingest.task import begin_release, load_raw, validate
from tasks.judge.task import judge
from tasks.publish.task import build_expected_content, publish_candidate
from tasks.release_summary import Summary, read_summary
from tasks.sanitize.task import draw_candidate
from tasks.settings_check import check_settings
from tests.support.contexts import make_context
from tests.support.leak_tests import SharedLeakTests, run_shared_leak_tests
from warehouse.columns import Column
from warehouse.home import Home
from warehouse.integrity.key_files import write_key
from warehouse.json_codec import from_json, to_json
from warehouse.publishing.expected_content import ExpectedContent
from warehouse.publishing.leak_scan import check_bytes

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
KEY = bytes(range(32))  # fixed, because estimates are compared with their standard errors
LIMIT = Limit(1000.0, "DPO", "a bound for every record")
SMALL = Policy(
    required=("record_linkage", "attribute_inference"),
    limits={
        "amplification.record": LIMIT,
        "record_linkage.rate": Limit(0.2, "DPO", "1 in 5"),
        "shrinkage.breach_rate": Limit(0.2, "DPO", "1 in 5"),
        "membership.true_positive_rate": Limit(0.2, "DPO", "1 in 5"),
        "label.rate": Limit(0.05, "DPO", "1 in 20"),
    },
    attacker=Attacker(),
    shadow_draws=1,
    splits=3,
    effort="quick",
)
COLOURS = ("red", "it's green", "bl\u00fce")
N = 400


def run(context: ReleaseContext, *steps: Any) -> Summary:
    release_id = begin_release.fn(context)
    for step in steps:
        step.fn(context, release_id)
    return read_summary(context.open_store(), release_id)


def expect_content(context: ReleaseContext, summary: Summary) -> ExpectedContent:
    assert summary.sanitized is not None
    with context.open_store().transaction() as db:
        return build_expected_content(db, context, summary.run, summary.sanitized)


def check_candidate(context: ReleaseContext, summary: Summary) -> Path:
    """Check the file of the candidate as publishing does, and return its path."""
    path = context.open_store().home.candidate(summary.run.release_id)
    check_bytes(path, expect_content(context, summary))
    return path


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch off the progress bar, which needs a Prefect server, and reuse the leak tests."""
    monkeypatch.setattr("tasks.notify.prefect_artifacts.MIN_PROGRESS_INTERVAL", math.inf)
    leak_tests = SharedLeakTests(run_shared_leak_tests())
    monkeypatch.setattr("tasks.audit.self_test.FOUND_TESTS", leak_tests)


@pytest.fixture
def context(tmp_path: Path) -> ReleaseContext:
    rng = np.random.default_rng(5)
    lines = [
        f'p{i},{rng.random()!r},{rng.random()!r},"{COLOURS[i % 3] if i % 5 else ""}",{"ab"[i % 2]}'
        for i in range(N)
    ]
    (tmp_path / "t.csv").write_text("id,x,y,colour,group\n" + "\n".join(lines) + "\n")
    number: dict[str, Any] = {"role": "feature", "type": "numeric", "low": 0.0, "high": 1.0}
    context = make_context(
        tmp_path,
        columns=(
            Column("id", "identifier"),
            Column("x", **number),
            Column("y", **number),
            Column("colour", "feature", "categorical", categories=COLOURS, missing="keep"),
            Column("group", "label", "categorical", categories=("a", "b")),
        ),
        method="pipeline",
        parameters={
            "numeric": {"method": "pca_laplace", "components": 1, "b": 0.5, "basis_share": 0.2},
            "categorical": {"method": "randomized_response", "gamma": {"attribute": 3}},
        },
        policy=SMALL,
    )
    write_key(Home(tmp_path / "home").keys / "table.key", KEY)
    return context


def exclude_numeric(context: ReleaseContext) -> ReleaseContext:
    columns = tuple(
        replace(column, role="exclude") if column.type == "numeric" else column
        for column in context.columns
    )
    parameters = context.parameters["categorical"]
    return replace(
        context,
        columns=columns,
        method="randomized_response",
        parameters={"gamma": parameters["gamma"]},
    )


@pytest.mark.slow
def test_publish_mixed_table_categories_as_text(context: ReleaseContext, quiet: None) -> None:
    # The leak tests of record_linkage are shared, those of attribute_inference take seconds.
    context = replace(context, policy=replace(SMALL, required=("record_linkage",)))
    check_settings(context)
    steps = (load_raw, validate, draw_candidate, attack_shadows, judge)
    summary = run(context, *steps)
    assert summary.verdict is not None and summary.verdict.failures == ()
    assert publish_candidate.fn(context, summary.run.release_id, False) == "published"
    folder = Path(context.home) / "published" / "table" / "latest"
    table = pq.read_table(folder / "data.parquet")
    assert table.column_names == ["component_1", "colour", "group"]
    assert set(table.column("colour").to_pylist()) == {*COLOURS, None}
    card = (folder / "card.md").read_text()
    assert "`component_1` to `colour` and the label `group`" in card
    assert "Categories are random answers" in card


@pytest.mark.extended
def test_randomized_response_release_other_columns_unchanged(
    context: ReleaseContext, tmp_path: Path
) -> None:
    summary = run(exclude_numeric(context), load_raw, validate, draw_candidate)
    wanted = expect_content(exclude_numeric(context), summary)
    assert wanted.names == ("colour", "group")
    table = pq.read_table(check_candidate(exclude_numeric(context), summary))
    (records,) = wanted.originals.blocks()
    place = records.position.astype(int).tolist()
    truth = [COLOURS[i % 3] if i % 5 else None for i in place]
    assert [COLOURS.index(t) if t else -1 for t in truth] == records.codes[:, 0].tolist()
    assert table.column("group").to_pylist() == ["ab"[i % 2] for i in place]
    same = sum(a == b for a, b in zip(table.column("colour").to_pylist(), truth, strict=True))
    assert abs(same / N - 0.5) < 4 * math.sqrt(0.25 / N)  # 0.5 = 3 / (3 + 4 - 1)


@pytest.mark.slow
def test_audit_categorical_release_runs_categorical_attacks(
    context: ReleaseContext, quiet: None
) -> None:
    alone = exclude_numeric(context)
    check_settings(alone)
    summary = run(alone, load_raw, validate, draw_candidate, attack_shadows, judge)
    assert summary.run.stage == "refused"
    assert summary.report is not None and not summary.report.failed
    scores = {score.name: score for score in summary.report.scores}
    assert scores["record_linkage.rate"].value < 0.05
    assert "attribute_inference.inference_rate" in scores
    assert "works on numbers" in summary.report.skipped["shrinkage"].sentence
    assert summary.verdict is not None
    why = {finding.check: finding.why for finding in summary.verdict.failures}
    on_numbers = {"shrinkage.breach_rate", "membership.true_positive_rate"}
    on_numbers |= {"covered.reconstruction", "covered.membership"}
    assert set(why) == {*on_numbers, "covered.linkage"}
    assert "any release of this table keeps the limit on record_linkage" in why["covered.linkage"]


def test_check_settings_no_amplification_limit_bad_input(context: ReleaseContext) -> None:
    limits = {name: limit for name, limit in SMALL.limits.items() if "amplification" not in name}
    with pytest.raises(BadInput, match="No limit judges the categorical features"):
        check_settings(replace(context, policy=replace(SMALL, limits=limits)))


@pytest.mark.extended
def test_draw_candidate_category_named_like_component_bad_input(
    context: ReleaseContext, tmp_path: Path
) -> None:
    source = tmp_path / "t.csv"
    source.write_text(source.read_text().replace("colour", "Component_1", 1))
    columns = tuple(
        replace(column, name="Component_1") if column.name == "colour" else column
        for column in context.columns
    )
    with pytest.raises(BadInput, match="'Component_1' has the name of a column"):
        run(replace(context, columns=columns), load_raw, validate, draw_candidate)


@pytest.mark.extended
def test_draw_candidate_basis_file_used_for_numeric_part(
    context: ReleaseContext, tmp_path: Path
) -> None:
    (tmp_path / "basis.json").write_text(
        '{"columns": ["x", "y"], "loadings": [[0.6], [0.8]], "variances": [0.2, 0.1]}'
    )
    numeric = {"method": "pca_laplace", "components": 1, "b": 0.5, "basis": "file"}
    parameters = {**context.parameters, "numeric": {**numeric, "basis_file": "basis.json"}}
    summary = run(replace(context, parameters=parameters), load_raw, validate, draw_candidate)
    assert summary.sanitized is not None
    found = summary.sanitized.public.loadings
    assert found is not None
    assert np.allclose(found, [[0.6], [0.8]], atol=2.0**-20)


def test_json_codec_public_parameters_round_trip() -> None:
    response = Response(Categorical("c", ("a", "b"), True), 3.0)
    public = PublicParameters("randomized_response", "original", (), responses=(response,))
    assert from_json(PublicParameters, to_json(public)).responses == (response,)
    assert public_from_dict(to_json(public)).responses == (response,)


@pytest.mark.slow
def test_estimate_frequencies_adult_release_within_standard_errors(
    shared_data: Path, tmp_path: Path
) -> None:
    source = shared_data / "adult.csv.gz"
    content = tomllib.loads((EXAMPLES / "randomized_response.toml").read_text())
    context = build_checked_context(load(EXAMPLES / "randomized_response.toml"))
    Home(tmp_path).create()
    write_key(Home(tmp_path).keys / f"{context.dataset}.key", KEY)
    context = replace(
        context,
        home=str(tmp_path),
        source=replace(context.source, path=str(source)),
        policy=replace(context.policy, shadow_draws=1),
    )
    summary = run(context, load_raw, validate, draw_candidate)
    table = pq.read_table(check_candidate(context, summary))
    with gzip.open(source, "rt") as file:
        records = list(csv.DictReader(file))
    features = [n for n, c in content["columns"].items() if c["role"] == "feature"]
    assert table.column_names == [*features, "label"]
    assert table.num_rows == len(records) == 32_561
    assert summary.sanitized is not None
    errors: list[float] = []
    for response in summary.sanitized.public.responses:
        name, k = response.column.name, len(response.column.categories)
        answers = [*response.column.categories, *([None] if response.column.missing else [])]
        counts, truth = Counter(table.column(name).to_pylist()), Counter(r[name] for r in records)
        assert counts.keys() <= set(answers) and len(answers) >= k
        found, variance = estimate_frequencies(
            np.array([counts[answer] for answer in answers]), response.gamma, len(answers)
        )
        real = np.array([truth[answer or ""] for answer in answers]) / len(records)
        errors += ((found - real) / np.sqrt(variance)).tolist()
    assert len(errors) == 102
    assert max(map(abs, errors)) < 4
    assert 0.7 < np.std(errors) < 1.3
