"""Parties with other columns, by the steps of the flows: from their tables to a publication.

The attacks on the part of each party are left out: verdicts are stored in their place. The steps of
an own release are tested elsewhere.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import tomlkit
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from flows.config.context import build_context
from flows.config.release_file import load
from ppdm_core.audit.joined_linkage import share_equal_rows
from ppdm_core.model.errors import BadInput, PpdmError, Undecided
from ppdm_core.model.manifest import key_fingerprint
from ppdm_core.model.verdict import Finding, Outcome, Verdict
from ppdm_core.numerics.masks import pack_values
from ppdm_core.numerics.private_intersection import hash_id
from ppdm_core.sanitizers._column_parts import ColumnPart, sum_energy
from tasks.centre.task import collect_rows, judge_by_sites, lead_fit, pool_rows, publish_pool
from tasks.context import ReleaseContext
from tasks.ingest.task import load_raw
from tasks.sanitize.task import draw_candidate
from tasks.sites.column_task import align_and_agree, judge_joined_rows, send_part
from tasks.sites.exchange import Exchange, StillWaiting
from tasks.sites.pool_review import store_pool_facts
from tasks.sites.task import begin_part, end_part, enter_release
from tasks.sites.terms import check_common_release, check_intersection, find_column_method
from tests.support.contexts import create_home, write_unchecked
from tests.support.small_release import BY, CONTENT, feature
from warehouse.audit_results import find_verdict
from warehouse.database import get_run
from warehouse.integrity.home_key import home_key
from warehouse.messages.envelope import bind, make_suite, parse_message
from warehouse.messages.membership import Membership, store_membership
from warehouse.messages.payloads import decode_bytes, encode_bytes
from warehouse.messages.roll import CENTRE
from warehouse.publishing.manifest import verify
from warehouse.sanitized_tables import read_candidate
from warehouse.sql import ROW
from warehouse.stage_facts import AuditedFacts, PoolFacts, SanitizedFacts, find_facts, read_facts
from warehouse.stages import Stage, is_past
from warehouse.tables import draws_table

pytestmark = pytest.mark.slow
COLUMNS = {"census": ("height", "weight", "pulse"), "health": ("iron", "sugar", "salt")}
ORDER = [*COLUMNS["census"], *COLUMNS["health"]]
N = 400  # enough to certify the limit on membership in the sums
NOISE = 0.7  # scale; so much that a recipient with whole records finds few rows of so small a table


def make_id(person: int) -> str:
    return f"person-{person:05d}"


class ColumnRelease:
    """A centre and two parties; the census holds the label."""

    def __init__(
        self,
        folder: Path,
        verdicts: dict[str, Outcome] | None = None,
        persons: dict[str, range] | None = None,
        noise: float | None = NOISE,
        limits: dict[str, Any] | None = None,
        is_coarse: bool = False,
    ) -> None:
        """Make the parties; each has the persons of its range, by default the first N.

        ``limits`` change those of the centre. Coarse records have values of 0 and 10 alone.
        """
        self.noise, self.limits = noise, limits or {}
        self.folder, self.verdicts = folder, verdicts or {}
        self.persons = persons or dict.fromkeys(COLUMNS, range(N))
        n = max(each.stop for each in self.persons.values())
        rng = np.random.default_rng(2)
        level = rng.uniform(2, 8, (n, 1))
        self.X = np.clip(level + rng.normal(0, 1, (n, 6)), 0, 10)
        if is_coarse:
            self.X = np.where(rng.random((n, 6)) < 0.5, 0.0, 10.0)
        self.moods = ["calm" if each < 5 else "tense" for each in level[:, 0]]
        (folder / "shared").mkdir(parents=True)
        self.contexts = {name: self.make_context(name) for name in (CENTRE, *COLUMNS)}
        pins = {name: self.find_fingerprint(name) for name in self.contexts}
        for name, context in self.contexts.items():
            shared = str(folder / "shared")
            member = Membership(name, "ward", shared, pins, intersects=persons is not None)
            store_membership(context.open_store().home, member)
        self.keys: dict[str, bytes] = {}  # of the messages to each party
        self.roll = ""
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
        waive = {"waive": ["dct_fuzzy"]} if self.noise is None else {}
        if self.noise is not None:
            content["sanitizer"]["noise_scale"] = self.noise
        content["limits"]["amplification.record"] = {"value": 1e9, **waive, **BY}
        content["limits"]["other_party.breach_rate"] = {"value": 0.1, **BY}
        content["limits"]["related_party.inference_rate"] = {"value": 0.2, **BY}
        if not has_label:
            del content["limits"]["label.rate"], content["limits"]["knn_accuracy"]
        if name == CENTRE:
            content["limits"] |= self.limits
        else:
            places = [ORDER.index(each) for each in own]
            rows = [
                ",".join(
                    [make_id(i), *([self.moods[i]] if has_label else [])]
                    + [repr(float(self.X[i, place])) for place in places]
                )
                for i in self.list_persons(name)
            ]
            head = ",".join(["person", *(["mood"] if has_label else []), *own])
            (folder / "t.csv").write_text("\n".join([head, *rows]) + "\n")
        (folder / "release.toml").write_text(tomlkit.dumps(content))
        create_home(folder / ".ppdm")
        return build_context(load(folder / "release.toml"))

    def list_persons(self, name: str) -> list[int]:
        """Return the numbers of a party's persons in the order of its table."""
        found: list[int] = np.random.default_rng(len(name)).permutation(self.persons[name]).tolist()
        return found

    def read_part(self, name: str) -> tuple[list[int], np.ndarray]:
        """Return the persons that a party drew, and their parts."""
        context = self.contexts[name]
        with context.open_store().transaction("tests") as db:
            run = get_run(db, "ward-0001")
            columns = read_facts(db, run.release_id, SanitizedFacts).public.columns
            found = read_candidate(db, run, columns)
        persons = [self.list_persons(name)[row] for row in found[ROW]]
        return persons, np.column_stack([found[each] for each in columns])

    def find_fingerprint(self, name: str) -> str:
        with self.contexts[name].open_store().transaction("tests") as db:
            return key_fingerprint(home_key(db).signing().public_key())

    def enter(self, name: str) -> Exchange:
        exchange = enter_release.fn(self.contexts[name], 0.0, name == CENTRE)
        self.roll = exchange.session.roll.digest
        self.keys[name] = bytes.fromhex((exchange.entry.folder / "exchange.key").read_text())
        return exchange

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
        store_pool_facts(context, release_id, PoolFacts(verdict, (), (), (), reached))

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


@pytest.fixture(scope="module")
def common(tmp_path_factory: pytest.TempPathFactory) -> ColumnRelease:
    """A release of the persons that two tables have in common."""
    persons = {"census": range(20 + N), "health": range(20, N + 60)}
    release = ColumnRelease(tmp_path_factory.mktemp("common") / "x", persons=persons)
    ended = release.run_all()
    assert ended.get(CENTRE) == Stage.PUBLISHED, (ended, release.waits)
    return release


def test_column_release_publishes_sums_of_the_parts(published: ColumnRelease):
    manifest = verify(published.published).manifest
    table = pq.read_table(published.published / "data.parquet")
    names = [each for each in table.column_names if each != "mood"]
    Y = np.column_stack([table.column(each).to_numpy() for each in names])
    assert manifest["rows"] == len(Y) == N and 0 < len(names) < 6
    expected = np.zeros((N, len(names)))
    for name in COLUMNS:
        persons, part = published.read_part(name)
        expected[persons] += part  # the table of each party has another order
    assert np.allclose(Y[np.lexsort(Y.T)], expected[np.lexsort(expected.T)], atol=1e-9)
    rows = {
        tuple(np.round(row, 9)): mood for row, mood in zip(expected, published.moods, strict=True)
    }
    moods = table.column("mood").to_pylist()
    near = [min(rows, key=lambda each, y=y: np.abs(np.array(each) - y).max()) for y in Y]
    assert [rows[each] for each in near] == moods


def test_column_release_of_common_persons_draws_judges_and_charges_them_alone(
    common: ColumnRelease,
):
    """What the gate of a party judges is what is published, not all persons that it has."""
    release, persons = common, common.persons
    table = pq.read_table(release.published / "data.parquet").drop_columns("mood")
    Y = np.column_stack([column.to_numpy() for column in table.columns])
    expected = np.zeros((N + 60, Y.shape[1]))
    for name, own in persons.items():
        drawn, part = release.read_part(name)
        assert sorted(drawn) == list(range(20, 20 + N)), name
        expected[drawn] += part
        context = release.contexts[name]
        with context.open_store().transaction("tests") as db:
            facts = read_facts(db, "ward-0001", SanitizedFacts)
            run = get_run(db, "ward-0001")
            query = f"select count(distinct record) from {draws_table(run)}"
            ((charged,),) = db.execute(query).fetchall()
        assert (facts.released, facts.set_aside) == (N, len(own) - N)
        assert charged == N
    expected = expected[20 : 20 + N]
    assert np.allclose(Y[np.lexsort(Y.T)], expected[np.lexsort(expected.T)], atol=1e-9)


def test_column_release_manifest_has_the_global_loss_and_signed_verdicts(published: ColumnRelease):
    manifest = verify(published.published).manifest
    facts = manifest["public"]["facts"]
    assert 0 <= facts["energy_loss"] < 1  # an estimate, because the sums hold noise
    assert all(0 < facts[f"energy_loss_party_{t}"] < 1 for t in (1, 2))
    page = (published.published / "report.html").read_text()
    assert "2 parties with different columns" in page and "columns of party 2" in page
    assert manifest["sites"]["count"] == 2
    assert any(
        "Every party knows the order" in each for each in manifest["guarantee"]["assumptions"]
    )


def find_failures(release: ColumnRelease) -> dict[str, str]:
    """Return the checks of the centre that do not pass, with their outcome."""
    with release.contexts[CENTRE].open_store().transaction("tests") as db:
        verdict = find_verdict(db, "ward-0001")
    assert verdict is not None
    return {each.check: each.outcome for each in verdict.failures}


@pytest.mark.parametrize(
    ("limit", "outcome"), [({"value": 100}, "FAIL"), ({"value": 1e9, "review": 100}, "REVIEW")]
)
def test_column_release_sum_above_the_centres_limit_on_amplification_refused(
    tmp_path: Path, limit: dict[str, float], outcome: str
):
    """A complete record is in all parts: its gamma is the product of theirs.

    Nobody reviews at the centre, so that a REVIEW of its own checks refuses, too.
    """
    release = ColumnRelease(tmp_path / "x", limits={"amplification.record": {**limit, **BY}})
    ended = release.run_all()
    figures = {}
    for name, context in release.contexts.items():
        with context.open_store().transaction("tests") as db:
            facts = read_facts(db, "ward-0001", SanitizedFacts)
        figures[name] = math.exp(facts.guarantee.ln_record)
    assert figures["census"] < 100 and figures["health"] < 100 < figures[CENTRE]
    assert figures[CENTRE] == pytest.approx(figures["census"] * figures["health"])
    assert ended[CENTRE] == Stage.REFUSED
    assert find_failures(release) == {"amplification.record": outcome}
    assert not release.published.exists()


def test_column_release_sum_that_whole_records_find_refused(tmp_path: Path):
    """Each part has few different rows; together they are nearly as good as names."""
    release = ColumnRelease(tmp_path / "x", noise=None, is_coarse=True)
    ended = release.run_all()
    label = np.array([release.moods.index(each) for each in release.moods])
    for name in COLUMNS:
        persons, part = release.read_part(name)
        assert share_equal_rows(part, label[persons]).mean() < 0.1, name
    assert ended[CENTRE] == Stage.REFUSED
    assert find_failures(release)["record_linkage.rate"] == "FAIL"
    with release.contexts[CENTRE].open_store().transaction("tests") as db:
        linkage, membership = read_facts(db, "ward-0001", AuditedFacts).report.scores
    assert linkage.name == "record_linkage.rate" and linkage.value > 0.25
    assert membership.name == "membership.true_positive_rate"
    assert not release.published.exists()


def test_column_release_little_noise_that_whole_records_see_through_refused(tmp_path: Path):
    limit = {"amplification.record": {"value": 1e300, **BY}}
    few = dict.fromkeys(COLUMNS, range(200))
    release = ColumnRelease(tmp_path / "x", noise=0.02, limits=limit, persons=few)
    ended = release.run_all()
    assert ended.get(CENTRE) == Stage.REFUSED, (ended, release.waits)
    assert find_failures(release)["record_linkage.rate"] == "FAIL"


def test_column_release_sum_that_shows_who_is_in_it_refused(tmp_path: Path):
    """Without noise every record has a row of its own: it is there, or it is not."""
    release = ColumnRelease(tmp_path / "x", noise=None)
    assert release.run_all()[CENTRE] == Stage.REFUSED
    assert find_failures(release) == {
        "record_linkage.rate": "FAIL",
        "membership.true_positive_rate": "FAIL",
    }


def test_column_release_no_party_publishes_its_part(published: ColumnRelease):
    for name in COLUMNS:
        folder = Path(published.contexts[name].home) / "published"
        assert not folder.exists() or not [*folder.rglob("data.parquet")]


def open_messages(release: ColumnRelease) -> list[tuple[str, dict[str, Any]]]:
    """Return kind and payload of every message, as its receiver decrypts it."""
    found = []
    for path in sorted(release.folder.joinpath("shared").rglob("*.msg")):
        header, body, _ = parse_message(path.name, path.read_bytes())
        key = X25519PrivateKey.from_private_bytes(release.keys[header.receiver])
        text = make_suite().decrypt(decode_bytes(body), key, info=bind(header))
        found.append((header.kind, json.loads(text)))
    return found


def find_leaks(release: ColumnRelease, messages: list[tuple[str, dict[str, Any]]]) -> set[str]:
    """Return what of the parties' private content is in messages: in their text or their bytes."""
    content = json.dumps([payload for _, payload in messages]).encode()
    for _, payload in messages:
        for field in ("points", "values", "energy", "data"):
            if payload.get(field):
                content += decode_bytes(payload[field])
    leaks = set()
    for name, context in release.contexts.items():
        if name == CENTRE:
            continue
        persons, Y = release.read_part(name)
        X = release.X[persons][:, [ORDER.index(each) for each in COLUMNS[name]]]
        part = make_column_part(context, name)
        scaled = part.round_coefficients(X / 10)
        inside = X[(X > 0) & (X < 10)]  # the bounds are no secret
        canaries: dict[str, list[bytes]] = {
            "id": [make_id(each).encode() for each in release.list_persons(name)],
            "hash": [hash_id(make_id(i), release.roll) for i in release.list_persons(name)],
            "value": [repr(each).encode() for each in inside.tolist()],
            "bytes": [np.float64(each).tobytes() for each in np.append(inside, inside / 10)],
            "part": [row.tobytes() for row in part.count_steps(Y)],
            "part as numbers": [row.tobytes() for row in Y],
            "coefficients": [row.tobytes() for row in scaled],
            "energy": [pack_values([sum_energy(scaled)])],
        }
        leaks |= {what for what, each in canaries.items() if any(one in content for one in each)}
    return leaks


def make_column_part(context: ReleaseContext, name: str) -> ColumnPart:
    method = find_column_method(context.make_sanitizer())
    assert method is not None
    return method.make_part(COLUMNS[name])


def plant(release: ColumnRelease, what: str) -> dict[str, Any]:
    """Return a payload with private content of the census."""
    persons, Y = release.read_part("census")
    X = release.X[persons][:, [ORDER.index(each) for each in COLUMNS["census"]]]
    part = make_column_part(release.contexts["census"], "census")
    scaled = part.round_coefficients(X / 10)
    planted: dict[str, dict[str, Any]] = {
        "id": {"names": [make_id(persons[0])]},
        "hash": {"points": encode_bytes(hash_id(make_id(persons[3]), release.roll))},
        "value": {"low": X[5].tolist()},
        "bytes": {"values": encode_bytes(X[7].tobytes())},
        "part": {"values": encode_bytes(part.count_steps(Y).tobytes())},
        "part as numbers": {"data": encode_bytes(Y[9].tobytes())},
        "coefficients": {"values": encode_bytes(scaled.tobytes())},
        "energy": {"energy": encode_bytes(pack_values([sum_energy(scaled)]))},
    }
    return planted[what]


ROUNDS = {"order", "bounds", "selection", "coefficients", "pool", "verdict", "end"}
LEAKS = (
    "id", "hash", "value", "bytes", "part", "part as numbers", "coefficients", "energy"
)  # fmt: skip


@pytest.mark.parametrize(("fixture", "kind"), [("published", "roster"), ("common", "blinded")])
def test_column_release_messages_hold_no_id_and_no_value(
    request: pytest.FixtureRequest, fixture: str, kind: str
):
    release: ColumnRelease = request.getfixturevalue(fixture)
    messages = open_messages(release)
    assert {each for each, _ in messages} == {*ROUNDS, kind}
    assert find_leaks(release, messages) == set()


@pytest.mark.parametrize("what", LEAKS)
def test_column_release_planted_content_in_messages_found(published: ColumnRelease, what: str):
    """The search of the test above finds each kind of content, if it is there."""
    assert find_leaks(published, [("planted", plant(published, what))]) == {what}


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


def test_part_that_was_begun_with_another_file_refused(tmp_path: Path):
    release = ColumnRelease(tmp_path / "x", {"health": "REVIEW"})
    release.run_all(3)
    context = release.contexts["census"]
    release.contexts["census"] = replace(context, file_digest="f" * 64)
    with pytest.raises(BadInput, match="changed since ward-0001 was begun") as error:
        release.run_site("census")
    assert "remove the folder 0001 below private/exchanges/ward" in str(error.value.remedy)


@pytest.mark.parametrize(
    ("party", "attack", "what"),
    [
        ("census", "other_party", "what other parties learn of this party's columns"),
        ("census", "related_party", "what parties with related columns learn"),
        (CENTRE, "record_linkage", "how many persons complete records find in the sums"),
        (CENTRE, "membership", "whom complete records show to be in the sums"),
    ],
)
def test_party_or_centre_without_a_limit_that_it_needs_refused(
    tmp_path: Path, party: str, attack: str, what: str
):
    release = ColumnRelease(tmp_path / "x")
    context = release.contexts[party]
    limits = {
        name: limit for name, limit in context.policy.limits.items() if not name.startswith(attack)
    }
    release.contexts[party] = replace(context, policy=replace(context.policy, limits=limits))
    with pytest.raises(BadInput, match=f"No limit '{attack}.* judges {what}"):
        release.enter(party)


def test_intersection_of_three_parties_refused(tmp_path: Path):
    release = ColumnRelease(tmp_path / "x")
    check_intersection(release.contexts["census"], 2)
    with pytest.raises(BadInput, match="is found by two parties; 3 take part"):
        check_intersection(release.contexts["census"], 3)


def test_release_of_one_party_alone_refused():
    from ppdm_core.model.rows import ArrayRows
    from ppdm_core.model.schema import Numeric, Schema
    from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy

    method = DctFuzzy(scale="minmax", order=("x", "y", "z"), others=("z",))
    rows = ArrayRows(Schema((Numeric("x", 0, 1), Numeric("y", 0, 1))), np.ones((3, 2)))
    with pytest.raises(BadInput, match="no party can release alone"):
        method.fit(rows)
