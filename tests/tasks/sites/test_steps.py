"""The steps of a site: which releases can be common ones, and which records it needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput, Refused
from ppdm_core.model.rows import ArrayRows, Block, Rows
from ppdm_core.model.schema import Schema
from ppdm_core.numerics.noise import Noise
from ppdm_core.sanitizers import Sanitizer
from ppdm_core.sanitizers._basis import fit_basis
from tasks import progress
from tasks.context import ReleaseContext
from tasks.sites import task as site_task
from tasks.sites.exchange import StillWaiting
from tasks.sites.task import end_part
from tasks.sites.terms import check_common_release
from tests.support.common_release import CommonRelease, make_people, write_people
from tests.support.contexts import open_run, read_noise
from tests.support.tables import read_cells
from warehouse.messages.payloads import End, Pool, Selection, SiteRows
from warehouse.messages.roll import CENTRE
from warehouse.sanitized_tables import read_candidate
from warehouse.stage_facts import PoolFacts, SanitizedFacts, read_facts
from warehouse.tables import validated_table


def enter_all(release: CommonRelease) -> None:
    """Exchange hellos and the roll."""
    for name in (CENTRE, *release.sites, CENTRE):
        with suppress(StillWaiting):
            release.enter(name)


class NoiseOfSites(Noise):
    """The noise of one process that gives each record the key of its site."""

    def __init__(self, noises: Sequence[Noise], site: np.ndarray) -> None:
        self.noises, self.site = noises, site  # (n,) number of the site of each record

    def bits(self, block: Block, name: str, columns: int, fingerprint: bytes) -> np.ndarray:
        found = np.zeros((block.n, columns, 2), dtype=np.uint64)
        for number, noise in enumerate(self.noises):
            is_own = self.site[block.record] == number
            fields = {part: getattr(block, part)[is_own] for part in ROW_PARTS}
            found[is_own] = noise.bits(replace(block, **fields), name, columns, fingerprint)
        return found


ROW_PARTS = ("X", "C", "label", "key", "record")


@pytest.mark.slow
def test_pca_pool_rows_are_those_of_one_process_with_the_keys_of_the_sites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The fit is that of one table with the set-aside records of all sites, byte by byte.

    The rows of all sites are those of one process with all records that are released, which uses
    this fit and gives each record the key of its site.
    """
    set_aside: dict[str, Any] = {}
    read = site_task.read_fit_rows

    def keep(context: ReleaseContext, release_id: str, sanitizer: Sanitizer) -> Rows:
        rows = read(context, release_id, sanitizer)
        set_aside[context.home] = read_cells(rows)[:, : len(rows.schema.numeric)]
        return rows

    monkeypatch.setattr(site_task, "read_fit_rows", keep)
    release = CommonRelease(tmp_path / "x", "pca_laplace")
    drawn = release.draw_all()
    noises, X, keys, site, released = [], [], [], [], []
    for number, (name, (context, release_id, _)) in enumerate(drawn.items()):
        store, run = open_run(context, release_id)
        noises.append(read_noise(store, "ward"))
        with store.transaction("tests") as db:
            facts = read_facts(db, release_id, SanitizedFacts)
            found = read_candidate(db, run, facts.public.columns)
            known = db.execute(
                f"select __ppdm_row, __ppdm_key from {validated_table(run)} order by 1"
            ).fetchall()
        rows = found["__ppdm_row"]
        X.append(make_people(release.sites[name], sorted(release.sites).index(name))[0][rows])
        keys.append(np.array([list(known[row][1]) for row in rows], dtype=np.uint8))
        site.append(np.full(len(rows), number))
        released.append(found["component_1"])
        assert len(rows) + len(set_aside[context.home]) == release.sites[name]
    schema = facts.schema
    gathered = ArrayRows(schema, np.concatenate(list(set_aside.values())))
    fit = fit_basis(gathered, 1)
    shared = [context.shared_fit for context, _, _ in drawn.values()]
    assert {json.dumps(each) for each in shared} == {json.dumps(fit)}

    everybody = ArrayRows(unscale_schema(facts), np.concatenate(X), key=np.concatenate(keys))
    sanitizer = release.contexts[CENTRE].make_sanitizer()
    again = sanitizer.sanitize(
        facts.scaling.apply(everybody),
        NoiseOfSites(noises, np.concatenate(site)),
        {**fit, "scaling": facts.scaling.as_dict()},
    )
    pool = np.concatenate(released)
    assert len(pool) == everybody.n > 300
    assert np.array_equal(read_cells(again.rows)[:, 0], pool)


def unscale_schema(facts: SanitizedFacts) -> Schema:
    numeric = tuple(replace(each, low=0.0, high=10.0) for each in facts.schema.numeric)
    return replace(facts.schema, numeric=numeric)


@pytest.mark.extended
def test_site_without_a_class_of_the_roll_refused(tmp_path: Path):
    release = CommonRelease(tmp_path / "x")
    X, _ = make_people(60, 1)
    write_people(tmp_path / "x" / "north" / "t.csv", X, ["calm"] * 60, "north")
    enter_all(release)
    with pytest.raises(BadInput, match="no record with 'mood' = 'tense'") as error:
        release.draw_part("north")
    assert error.value.column == "mood"


TWO = {"east": 130, "north": 150}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "two sites for moments": (
        {"method": "pca_laplace", "sites": TWO},
        "needs at least 3 sites; 2 are named",
    ),
    "one site": ({"sites": {"east": 130}}, "needs at least 2 sites; 1 are named"),
    "private basis": (
        {"method": "pca_laplace", "parameters": {"components": 1, "b": 0.3, "basis": "private"}},
        "fitted on records that every site sets aside",
    ),
    "z-scores": (
        {"method": "dct_fuzzy", "parameters": {"b": 0.1, "p": 0.2, "scale": "zscore"}},
        "cannot scale by z-scores",
    ),
    "another method": (
        {"method": "additive_noise", "parameters": {"b": 0.5}},
        "Sites cannot release together with method 'additive_noise'",
    ),
}


def test_method_that_cannot_be_common_refused_with_those_that_can():
    release: Any = SimpleNamespace(
        make_sanitizer=lambda: SimpleNamespace(common_fit=None), method="additive_noise"
    )
    with pytest.raises(BadInput, match="together with method 'additive_noise'") as error:
        check_common_release(release, 3)
    listed = "kde_resample", "dct_fuzzy", "pca_laplace"
    assert all(name in str(error.value.remedy) for name in listed)
    assert "additive_noise" not in str(error.value.remedy)


@pytest.mark.extended
@pytest.mark.parametrize("case", REFUSED)
def test_enter_release_that_cannot_be_common_refused(tmp_path: Path, case: str):
    given, words = REFUSED[case]
    release = CommonRelease(tmp_path / "x", **given)
    for name in (CENTRE, "east"):
        with pytest.raises(BadInput, match=words):
            release.enter(name)


@pytest.mark.extended
def test_enter_bounds_from_data_refused(tmp_path: Path):
    release = CommonRelease(tmp_path / "x")
    columns = release.contexts["east"].columns
    changed = (*columns[:-1], replace(columns[-1], low="from_data", high="from_data"))
    release.change("east", columns=changed)
    with pytest.raises(BadInput, match="would come from the data of each site") as error:
        release.enter("east")
    assert error.value.column == "iron"


@pytest.mark.extended
def test_enter_other_bounds_than_the_roll_refused(tmp_path: Path):
    release = CommonRelease(tmp_path / "x")
    columns = release.contexts["east"].columns
    release.change("east", columns=(*columns[:-1], replace(columns[-1], high=11.0)))
    for name in (CENTRE, *release.sites, CENTRE):
        with suppress(StillWaiting):
            release.enter(name)
    with pytest.raises(BadInput, match="another 'high' of column 'iron'"):
        release.enter("east")


@pytest.mark.extended
def test_source_changed_during_a_session_refused(tmp_path: Path):
    release = CommonRelease(tmp_path / "x", "dct_fuzzy")
    enter_all(release)
    with suppress(StillWaiting):
        release.draw_part("east")
    X, moods = make_people(131, 9)
    write_people(tmp_path / "x" / "east" / "t.csv", X, moods, "east")
    with pytest.raises(BadInput, match="changed since ward-0001 was begun"):
        release.draw_part("east")


@pytest.mark.extended
@pytest.mark.parametrize("file_changes", [False, True])
def test_bad_input_corrected_before_anything_is_sent_continues(tmp_path: Path, file_changes: bool):
    """What a site has not sent yet, it may correct: the table, or the release file."""
    release = CommonRelease(tmp_path / "x", "dct_fuzzy")
    X, moods = make_people(130, 0)
    write_people(tmp_path / "x" / "east" / "t.csv", X, ["calm"] * 130, "east")
    enter_all(release)
    with pytest.raises(BadInput, match="no record with 'mood' = 'tense'"):
        release.draw_part("east")
    write_people(tmp_path / "x" / "east" / "t.csv", X, moods, "east")
    if file_changes:
        release.change("east", file_digest="1" * 64)
    with pytest.raises(StillWaiting):  # for the selection of the centre
        release.draw_part("east")
    assert list(release.shared.rglob("000-east-centre.msg"))


@pytest.mark.extended
def test_bad_input_after_a_message_was_sent_says_how_to_give_up(tmp_path: Path):
    release = CommonRelease(tmp_path / "x", "dct_fuzzy")
    enter_all(release)
    with suppress(StillWaiting):
        release.draw_part("east")
    session = release.enter(CENTRE).session
    session.receive("east", "bounds")
    session.send("east", "selection", lambda: Selection(kept=[99]))
    with pytest.raises(BadInput, match="coefficients that do not exist") as error:
        release.draw_part("east")
    assert error.value.file is None  # the table is not the cause
    with pytest.raises(BadInput, match="ward-0001 was rejected after") as error:
        release.draw_part("east")
    assert "remove the folder 0001" in str(error.value.remedy)


@pytest.mark.extended
def test_end_part_of_a_site_that_sent_no_rows_says_why(tmp_path: Path):
    """Not that the centre ended the release: the reason is at this site."""
    release = CommonRelease(tmp_path / "x")
    enter_all(release)
    exchange, centre = release.enter("east"), release.enter(CENTRE)
    refusal = Refused("ward-0001 was refused: too many are found.", remedy="See why.")
    with pytest.raises(StillWaiting):
        end_part.fn(exchange, refusal)
    centre.session.send("east", "end", lambda: End(outcome="refused"))
    with pytest.raises(Refused, match="too many are found"):
        end_part.fn(exchange, refusal)
    assert exchange.end is not None and exchange.end.outcome == "refused"


def test_judge_pool_progress_says_that_the_pool_is_attacked(monkeypatch: pytest.MonkeyPatch):
    """The steps of an audit come a second time."""
    events: list[progress.ProgressEvent] = []

    def attack(*_: Any) -> PoolFacts:
        assert events[-1].is_heading and "the pool" in events[-1].text
        raise Refused("The attacks end here.")

    monkeypatch.setattr(progress, "LISTENERS", [events.append])
    monkeypatch.setattr(site_task, "build_rows", lambda *_: SiteRows(outcome="PASS"))
    monkeypatch.setattr(site_task, "find_facts", lambda *_: None)
    monkeypatch.setattr(site_task, "attack_pool", attack)
    store = SimpleNamespace(transaction=lambda _: nullcontext())
    context: Any = SimpleNamespace(open_store=lambda: store)
    session = SimpleNamespace(send=lambda receiver, kind, make: make())
    exchange: Any = SimpleNamespace(receive=lambda *_: Pool(data=""), session=session)
    with pytest.raises(Refused, match="attacks end here"):
        site_task.judge_pool.fn(context, "ward-0001", exchange)
