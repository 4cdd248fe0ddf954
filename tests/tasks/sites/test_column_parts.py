"""Parties with other columns of the same persons: sums as centrally, and nothing of one alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput, PpdmError
from ppdm_core.sanitizers._column_parts import ColumnPart, measure_loss, sum_energy
from ppdm_core.sanitizers.dct_fuzzy import DctFuzzy
from tasks.centre.column_parts import JoinedRows, join_rows, lead_by_columns
from tasks.centre.task import end_session
from tasks.sites import column_parts
from tasks.sites.column_parts import (
    agree_by_columns,
    align_persons,
    mask_part,
    order_columns,
)
from tasks.sites.exchange import EndedByCentre, Exchange, StillWaiting
from tests.support.parties import TERMS, Parties
from warehouse.messages.payloads import Coefficients
from warehouse.messages.roll import CENTRE

M = 8
NAMES = tuple(f"x{j}" for j in range(M))


def make_method(**given: Any) -> DctFuzzy:
    parameters = {"b": 0.1, "p": 0.3, "scale": "minmax", "order": NAMES, "others": (), **given}
    return DctFuzzy(**parameters)


METHOD = make_method()


class Columns:
    """Parties in one process with some columns each of the same persons."""

    def __init__(
        self,
        folder: Path,
        split: dict[str, list[int]],
        ids: dict[str, list[str]] | None = None,
        alignment: Any = "shared_id",
        method: DctFuzzy = METHOD,
        n: int = 40,
    ) -> None:
        self.parties = Parties(folder, tuple(split))
        self.split, self.alignment, self.method = split, alignment, method
        people = [f"p{i}" for i in range(n)]
        rng = np.random.default_rng(4)
        level = rng.uniform(0.3, 0.7, (n, 1))
        self.X = dict(zip(people, np.clip(level + rng.normal(0, 0.1, (n, M)), 0, 1), strict=True))
        self.ids = ids or {name: rng.permutation(people).tolist() for name in split}
        self.aligned: dict[str, Any] = {}

    def open(self, name: str) -> Exchange:
        exchange = Exchange(self.parties.enter(name), TERMS, 0.0)
        exchange.begin()
        return exchange

    def make_part(self, name: str) -> ColumnPart:
        return self.method.make_part([NAMES[place] for place in self.split.get(name, [])])

    def read(self, name: str) -> np.ndarray:
        return np.array([self.X[each][self.split[name]] for each in self.ids[name]])

    def run_site(self, name: str) -> list[int]:
        exchange = self.open(name)
        aligned = align_persons(exchange, self.ids[name], self.alignment)
        self.aligned[name] = aligned
        X, own = self.read(name)[aligned.places], [NAMES[place] for place in self.split[name]]
        fit = agree_by_columns(exchange, self.method, own, X, aligned.key)
        part = self.make_part(name)
        exchange.session.send(
            CENTRE, "coefficients", lambda: mask_part(exchange, part, X, fit["order"])
        )
        return fit["kept"]

    def run_centre(self) -> JoinedRows:
        exchange = self.open(CENTRE)
        try:
            lead_by_columns(exchange, self.method)
            return join_rows(exchange, self.method)
        except BadInput:
            end_session(exchange, "refused")
            raise

    def run_all(self, rounds: int = 10) -> dict[str, Any]:
        """Return what each party ended with; each runs from its first step again and again."""
        ended: dict[str, Any] = {}
        runs: dict[str, Callable[[], Any]] = {CENTRE: self.run_centre}
        runs |= {name: lambda name=name: self.run_site(name) for name in self.split}
        for _ in range(rounds):
            for name in [each for each in runs if each not in ended]:
                try:
                    ended[name] = runs[name]()
                except StillWaiting:
                    continue
                except PpdmError as error:
                    ended[name] = error
        return ended


TWO = {"census": [0, 2, 3, 6], "health": [1, 4, 5, 7]}
THREE = {"census": [0, 5], "health": [1, 2, 3], "tax": [4, 6, 7]}


@pytest.mark.extended
@pytest.mark.parametrize("split", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("centre", [False, True])
def test_joined_rows_are_those_of_the_complete_records(tmp_path: Path, split: Any, centre: bool):
    columns = Columns(tmp_path, split, method=make_method(centre=centre))
    ended = columns.run_all()
    found = ended[CENTRE]
    assert isinstance(found, JoinedRows), ended
    kept = ended["census"]
    assert all(ended[name] == kept for name in split) and 0 < len(kept) < M
    aligned = columns.aligned["census"]
    people = [columns.ids["census"][place] for place in aligned.places]
    for name in split:  # one order of persons at all parties
        others = columns.aligned[name]
        assert [columns.ids[name][place] for place in others.places] == people
        assert others.key == aligned.key
    X = np.array([columns.X[each] for each in people])
    part = columns.make_part(CENTRE)
    C = part.transform.compute_coefficients(X)[:, order_columns(aligned.key, kept)]
    # Each party rounds by at most half a step, and half a step is added.
    assert np.abs(found.Y - C).max() <= part.unit * (len(split) + 1) / 2
    complete = part.transform.compute_coefficients(X)
    expected = 1 - (complete[:, kept] ** 2).sum() / (complete**2).sum()
    assert found.loss == pytest.approx(expected, abs=1e-6)


def test_order_of_persons_is_not_that_of_the_ids(tmp_path: Path):
    columns = Columns(tmp_path, TWO)
    columns.run_all()
    people = [columns.ids["census"][place] for place in columns.aligned["census"].places]
    assert people != sorted(people) and people != columns.ids["census"]


def read_sent(columns: Columns, name: str) -> Coefficients:
    """Return what a party sent to the centre, as the centre decrypts it."""
    exchange = columns.open(CENTRE)
    for site in columns.split:
        exchange.session.receive(site, "bounds")
    for site in columns.split:
        exchange.session.send(site, "selection", lambda: pytest.fail("sent twice"))
    message = exchange.session.receive(name, "coefficients")
    assert message is not None and isinstance(message.payload, Coefficients)
    return message.payload


def test_message_of_one_party_inverts_to_noise(tmp_path: Path):
    """Without masks the centre inverts the kept coefficients of a party with few columns."""
    from tasks.centre.column_parts import read_values

    columns = Columns(tmp_path, {"census": [0, 2], "health": [1, 3, 4, 5, 6, 7]})
    kept = columns.run_all()["census"]
    assert len(kept) >= 2  # as many equations as unknown columns
    part, aligned = columns.make_part("census"), columns.aligned["census"]
    order = order_columns(aligned.key, kept)
    X = columns.read("census")[aligned.places]
    basis = part.transform.compute_coefficients(np.eye(M))[:, order][[0, 2]]  # (own, kept)
    clear = part.round_coefficients(X)[:, order] * part.unit
    assert np.abs(clear @ np.linalg.pinv(basis) - X).max() < 1e-6  # the hole of the paper
    sent = read_values("census", read_sent(columns, "census"), len(kept)).view(np.int64)
    guess = sent * part.unit @ np.linalg.pinv(basis)
    assert np.median(np.abs(guess)) > 1e6  # of values from 0 to 1
    assert abs(np.corrcoef(guess.ravel(), X.ravel())[0, 1]) < 0.35


def test_intersection_releases_the_common_persons_alone(tmp_path: Path):
    ids = {"census": [f"p{i}" for i in range(30)], "health": [f"p{i}" for i in range(39, 9, -1)]}
    columns = Columns(tmp_path, TWO, ids, "intersection")
    found = columns.run_all()[CENTRE]
    assert isinstance(found, JoinedRows) and len(found.Y) == 20
    people = [ids["census"][place] for place in columns.aligned["census"].places]
    assert sorted(people) == sorted(f"p{i}" for i in range(10, 30))
    assert people == [ids["health"][place] for place in columns.aligned["health"].places]


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no common person": (
        {"ids": {"census": ["p1", "p2"], "health": ["p3", "p4"]}, "alignment": "intersection"},
        "have no person in common",
    ),
    "one common person": (
        {"ids": {"census": ["p1", "p2"], "health": ["p2", "p4"]}, "alignment": "intersection"},
        "have 1 person in common; at least 2 are needed",
    ),
    "other persons": (
        {"ids": {"census": ["p1", "p2"], "health": ["p1", "p2", "p3"]}},
        "are not those of this party",
    ),
    "an id twice": (
        {"ids": {"census": ["p1", "p1"], "health": ["p1", "p1"]}},
        "An id occurs twice",
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", BAD)
def test_alignment_bad_input_refused(tmp_path: Path, case: str):
    given, words = BAD[case]
    ended = Columns(tmp_path, TWO, **given).run_all(4)
    for name in TWO:
        assert isinstance(ended[name], BadInput) and words in str(ended[name]), ended


def test_intersection_of_three_parties_refused(tmp_path: Path):
    ended = Columns(tmp_path, THREE, alignment="intersection").run_all(4)
    assert all("is found by two parties; 3 take part" in str(ended[name]) for name in THREE)


def test_infeasible_constraints_end_the_release_at_all_parties(tmp_path: Path):
    ended = Columns(tmp_path, TWO, method=make_method(b=0.0, p=1e-9)).run_all()
    assert "no coefficient can be pruned" in str(ended[CENTRE])
    assert all(isinstance(ended[name], EndedByCentre) for name in TWO)


def test_masks_that_do_not_cancel_end_the_release_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mask = column_parts.mask_array

    def cheat(values: Any, own: str, secrets: Any, context: Any) -> Any:
        return mask(values, own, secrets, ("another roll",) if own == "health" else context)

    monkeypatch.setattr(column_parts, "mask_array", cheat)
    ended = Columns(tmp_path, TWO).run_all()
    assert "cannot be that of records within their bounds" in str(ended[CENTRE])
    assert not any(name in str(ended[CENTRE]) for name in TWO)


def test_measure_loss_can_exceed_every_local_loss():
    """Parts that are kept in full can cancel in the kept coefficients (erratum E27)."""
    part = METHOD.make_part(NAMES)
    transform = part.transform
    x = transform.compute_coefficients(np.eye(M)).T[1]  # a record with one coefficient only
    first, second = np.where(np.arange(M) < 4, x, 0.0), np.where(np.arange(M) >= 4, x, 0.0)
    one, two = (
        np.rint(transform.compute_coefficients(v[None]) * 2**20).astype(np.int64)
        for v in (first, second)
    )
    kept = [0, 2, 3, 4, 5, 6, 7]
    local = [measure_loss(each[:, kept], sum_energy(each)) for each in (one, two)]
    both = measure_loss((one + two)[:, kept], sum_energy(one) + sum_energy(two))
    assert both == pytest.approx(1.0, abs=1e-4) and max(local) < 0.6
    assert both <= 2 * max(local) + 1e-4


@pytest.mark.extended
@pytest.mark.parametrize(
    ("split", "words"),
    [
        ({"census": [0, 1, 2, 3], "health": [3, 4, 5, 6, 7]}, "both hold the column 'x3'"),
        ({"census": [0, 1, 2], "health": [4, 5, 6, 7]}, "No party holds the column 'x3'"),
    ],
)
def test_columns_that_are_no_partition_refused(tmp_path: Path, split: Any, words: str):
    ended = Columns(tmp_path, split).run_all()
    assert words in str(ended[CENTRE])
    assert all(isinstance(ended[name], EndedByCentre) for name in split)
