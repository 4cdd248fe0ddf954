"""Parties with other columns, by the steps of the flows: from their tables to a publication.

The attacks on the part of each party are left out: verdicts are stored in their place. The steps of
an own release are tested elsewhere.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import tomlkit

from flows.config.context import build_context
from flows.config.release_file import load
from ppdm_core.model.errors import BadInput, PpdmError, Undecided
from ppdm_core.model.manifest import key_fingerprint
from ppdm_core.model.verdict import Finding, Outcome, Verdict
from tasks.centre.task import collect_rows, judge_by_sites, lead_fit, pool_rows, publish_pool
from tasks.context import ReleaseContext
from tasks.ingest.task import load_raw
from tasks.sanitize.task import draw_candidate
from tasks.sites.column_task import align_and_agree, judge_joined_rows, send_part
from tasks.sites.exchange import Exchange, StillWaiting
from tasks.sites.pool_review import store_pool_facts
from tasks.sites.task import begin_part, end_part, enter_release
from tasks.sites.terms import check_common_release
from tests.support.contexts import create_home, write_unchecked
from tests.support.small_release import BY, CONTENT, feature
from warehouse.database import get_run
from warehouse.integrity.home_key import home_key
from warehouse.messages.membership import Membership, store_membership
from warehouse.messages.roll import CENTRE
from warehouse.publishing.manifest import verify
from warehouse.sanitized_tables import read_candidate
from warehouse.stage_facts import PoolFacts, SanitizedFacts, find_facts, read_facts
from warehouse.stages import Stage, is_past

pytestmark = pytest.mark.slow
COLUMNS = {"census": ("height", "weight", "pulse"), "health": ("iron", "sugar", "salt")}
ORDER = [*COLUMNS["census"], *COLUMNS["health"]]
N = 60


class ColumnRelease:
    """A centre and two parties; the census holds the label."""

    def __init__(self, folder: Path, verdicts: dict[str, Outcome] | None = None) -> None:
        self.folder, self.verdicts = folder, verdicts or {}
        rng = np.random.default_rng(2)
        level = rng.uniform(2, 8, (N, 1))
        self.X = np.clip(level + rng.normal(0, 1, (N, 6)), 0, 10)
        self.moods = ["calm" if each < 5 else "tense" for each in level[:, 0]]
        (folder / "shared").mkdir(parents=True)
        self.contexts = {name: self.make_context(name) for name in (CENTRE, *COLUMNS)}
        pins = {name: self.find_fingerprint(name) for name in self.contexts}
        for name, context in self.contexts.items():
            member = Membership(name, "ward", str(folder / "shared"), pins)
            store_membership(context.open_store().home, member)
        self.ended: dict[str, Any] = {}
        self.waits: dict[str, str] = {}

    def make_context(self, name: str) -> ReleaseContext:
        folder = self.folder / name
        folder.mkdir()
        own = ORDER if name == CENTRE else [*COLUMNS[name]]
        has_label = name != "health"
        content = copy.deepcopy(CONTENT)
        content["dataset"]["name"], content["source"]["path"] = "ward", "t.csv"
        label = {"mood": content["columns"]["mood"]} if has_label else {}
        content["columns"] = {
            "person": {"role": "identifier"},
            **label,
            **{each: feature() for each in own},
        }
        others = [] if name == CENTRE else [each for each in ORDER if each not in own]
        content["sanitizer"] = {
            "method": "dct_fuzzy",
            "b": 0.4,
            "p": 0.3,
            "scale": "minmax",
            "order": ORDER,
            "others": others,
        }
        content["limits"]["amplification.record"] = {"value": 1e9, "waive": ["dct_fuzzy"], **BY}
        content["limits"]["other_party.breach_rate"] = {"value": 0.1, **BY}
        if not has_label:
            del content["limits"]["label.rate"], content["limits"]["knn_accuracy"]
        if name != CENTRE:
            places = [ORDER.index(each) for each in own]
            order = np.random.default_rng(len(name)).permutation(N)
            rows = [
                ",".join(
                    [f"p{i:03d}", *([self.moods[i]] if has_label else [])]
                    + [repr(float(self.X[i, place])) for place in places]
                )
                for i in order
            ]
            head = ",".join(["person", *(["mood"] if has_label else []), *own])
            (folder / "t.csv").write_text("\n".join([head, *rows]) + "\n")
        (folder / "release.toml").write_text(tomlkit.dumps(content))
        create_home(folder / ".ppdm")
        return build_context(load(folder / "release.toml"))

    def find_fingerprint(self, name: str) -> str:
        with self.contexts[name].open_store().transaction("tests") as db:
            return key_fingerprint(home_key(db).signing().public_key())

    def enter(self, name: str) -> Exchange:
        return enter_release.fn(self.contexts[name], 0.0, name == CENTRE)

    def run_centre(self) -> Stage:
        context, exchange = self.contexts[CENTRE], self.enter(CENTRE)
        lead_fit.fn(context, exchange, "bounds")
        parts = collect_rows.fn(context, exchange)
        release_id = pool_rows.fn(context, exchange, parts, None)
        judge_by_sites.fn(context, release_id, exchange, parts)
        return publish_pool.fn(context, release_id, exchange)

    def run_site(self, name: str) -> None:
        context, exchange = self.contexts[name], self.enter(name)
        release_id = begin_part.fn(context, exchange, None)
        load_raw.fn(context, release_id)
        with context.open_store().transaction("tests") as db:
            stage = get_run(db, release_id).stage
        if not is_past(stage, Stage.VALIDATED):
            write_unchecked(context, release_id)
        context, aligned = align_and_agree.fn(context, release_id, exchange)
        draw_candidate.fn(context, release_id)
        self.store_verdict(context, release_id, self.verdicts.get(name, "PASS"))
        send_part.fn(context, release_id, exchange, aligned)
        judge_joined_rows.fn(context, release_id, exchange, aligned)
        end_part.fn(exchange)

    def store_verdict(self, context: ReleaseContext, release_id: str, outcome: Outcome) -> None:
        with context.open_store().transaction("tests") as db:
            if find_facts(db, release_id, PoolFacts) is not None:
                return
            run, facts = get_run(db, release_id), read_facts(db, release_id, SanitizedFacts)
        finding = Finding("record_linkage.rate", outcome, "As the test needs it.")
        digests = (context.policy.digest, facts.data_digest, run.code_version)
        verdict = Verdict(outcome, (finding,), *digests)
        reached = datetime.now(UTC).isoformat()
        store_pool_facts(context, release_id, PoolFacts(verdict, (), (), reached))

    def run_all(self, rounds: int = 10) -> dict[str, Any]:
        runs: dict[str, Callable[[], Any]] = {CENTRE: self.run_centre}
        runs |= {name: lambda name=name: self.run_site(name) for name in COLUMNS}
        for _ in range(rounds):
            for name in [each for each in runs if each not in self.ended]:
                try:
                    self.ended[name] = runs[name]()
                except (StillWaiting, Undecided) as error:
                    self.waits[name] = str(error)
                except PpdmError as error:
                    self.ended[name] = error
        return self.ended

    @property
    def published(self) -> Path:
        return Path(self.contexts[CENTRE].home) / "published" / "ward" / "0001"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> ColumnRelease:
    release = ColumnRelease(tmp_path_factory.mktemp("columns") / "x")
    ended = release.run_all()
    assert ended.get(CENTRE) == Stage.PUBLISHED, (ended, release.waits)
    assert all(ended[name] is None for name in COLUMNS), ended
    return release


def test_column_release_publishes_sums_of_the_parts(published: ColumnRelease):
    manifest = verify(published.published).manifest
    table = pq.read_table(published.published / "data.parquet")
    names = [each for each in table.column_names if each != "mood"]
    Y = np.column_stack([table.column(each).to_numpy() for each in names])
    assert manifest["rows"] == len(Y) == N and 0 < len(names) < 6
    parts = []
    for name in COLUMNS:
        context = published.contexts[name]
        with context.open_store().transaction("tests") as db:
            found = read_candidate(db, get_run(db, "ward-0001"), tuple(names))
        order = np.random.default_rng(len(name)).permutation(N)
        rows = np.column_stack([found[each] for each in names])
        by_person = np.empty_like(rows)
        by_person[order] = rows  # the table of each party has another order
        parts.append(by_person)
    expected = np.sum(parts, axis=0)
    assert np.allclose(Y[np.lexsort(Y.T)], expected[np.lexsort(expected.T)], atol=1e-9)
    rows = {
        tuple(np.round(row, 9)): mood for row, mood in zip(expected, published.moods, strict=True)
    }
    moods = table.column("mood").to_pylist()
    near = [min(rows, key=lambda each, y=y: np.abs(np.array(each) - y).max()) for y in Y]
    assert [rows[each] for each in near] == moods


def test_column_release_manifest_has_the_global_loss_and_signed_verdicts(published: ColumnRelease):
    manifest = verify(published.published).manifest
    facts = manifest["public"]["facts"]
    assert 0 < facts["energy_loss"] < 1
    assert all(0 < facts[f"energy_loss_party_{t}"] < 1 for t in (1, 2))
    page = (published.published / "report.html").read_text()
    assert "2 parties with different columns" in page and "columns of party 2" in page
    assert manifest["sites"]["count"] == 2
    assert any(
        "Every party knows the order" in each for each in manifest["guarantee"]["assumptions"]
    )


def test_column_release_no_party_publishes_its_part(published: ColumnRelease):
    for name in COLUMNS:
        folder = Path(published.contexts[name].home) / "published"
        assert not folder.exists() or not [*folder.rglob("data.parquet")]


def test_column_release_messages_hold_no_id_and_no_value(published: ColumnRelease):
    raw = b"".join(each.read_bytes() for each in published.folder.joinpath("shared").rglob("*.msg"))
    assert b"p001" not in raw
    kinds = set()
    for path in published.folder.joinpath("shared").rglob("*.msg"):
        kinds.add(json.loads(path.read_text())["header"]["kind"])
    assert kinds == {
        "order", "roster", "bounds", "selection", "coefficients", "pool", "verdict", "end"
    }  # fmt: skip


def test_column_release_refused_by_one_party_ends(tmp_path: Path):
    release = ColumnRelease(tmp_path / "x", {"health": "FAIL"})
    ended = release.run_all()
    assert "The gate of 'health' did not pass its columns" in str(ended[CENTRE])
    assert not release.published.exists()


def test_column_release_in_review_sends_nothing(tmp_path: Path):
    release = ColumnRelease(tmp_path / "x", {"health": "REVIEW"})
    release.run_all(5)
    assert "health" not in release.ended and CENTRE not in release.ended
    sent = [each.name for each in (tmp_path / "x" / "shared").rglob("*-health-centre.msg")]
    assert len(sent) == 1  # the bounds


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"others": ["iron", "sugar", "salt", "pulse"]}, "gives the column 'pulse' to another"),
        ({"others": ["iron", "sugar"]}, "'salt', which is neither declared nor in 'others'"),
        ({"order": ["height", "weight", *ORDER[3:]]}, "Column 'pulse' is not in 'order'"),
    ],
)
def test_party_with_other_columns_than_its_order_refused(
    tmp_path: Path, change: dict[str, Any], words: str
):
    release = ColumnRelease(tmp_path / "x")
    context = release.contexts["census"]
    changed = replace(context, parameters={**context.parameters, **change})
    with pytest.raises(BadInput, match=words):
        check_common_release(changed, 2)


def test_party_without_a_limit_on_the_other_party_refused(tmp_path: Path):
    release = ColumnRelease(tmp_path / "x")
    context = release.contexts["census"]
    limits = {
        name: limit
        for name, limit in context.policy.limits.items()
        if not name.startswith("other_party")
    }
    release.contexts["census"] = replace(context, policy=replace(context.policy, limits=limits))
    with pytest.raises(BadInput, match="No limit judges what the other parties learn"):
        release.enter("census")


def test_release_of_one_party_alone_refused():
    from ppdm_core.model.rows import ArrayRows
    from ppdm_core.model.schema import Numeric, Schema
    from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy

    method = DctFuzzy(scale="minmax", order=("x", "y", "z"), others=("z",))
    rows = ArrayRows(Schema((Numeric("x", 0, 1), Numeric("y", 0, 1))), np.ones((3, 2)))
    with pytest.raises(BadInput, match="no party can release alone"):
        method.fit(rows)
