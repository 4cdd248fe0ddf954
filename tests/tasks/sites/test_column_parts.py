"""Parties with other columns of the same persons: sums as centrally, and nothing of one alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppdm_core.model.errors import BadInput
from ppdm_core.numerics.private_intersection import POINT_BYTES
from ppdm_core.sanitizers._column_parts import measure_loss, sum_energy
from tasks.centre.column_parts import JoinedRows
from tasks.sites import column_parts
from tasks.sites.column_parts import order_columns
from tasks.sites.exchange import EndedByCentre, StillWaiting
from tests.support.column_parties import METHOD, NAMES, THREE, TWO, Columns, M, make_method
from warehouse.messages.payloads import (
    BlindedIds,
    Coefficients,
    Payload,
    Selection,
    decode_bytes,
    encode_bytes,
)
from warehouse.messages.roll import CENTRE
from warehouse.messages.session import Session


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


def test_joined_rows_with_noise_are_sums_of_the_parts(tmp_path: Path):
    columns = Columns(tmp_path, THREE, method=make_method(noise_scale=0.4), n=400)
    ended = columns.run_all()
    found, kept = ended[CENTRE], ended["census"]
    assert isinstance(found, JoinedRows), ended
    assert np.array_equal(found.Y, sum(columns.parts.values()))
    aligned = columns.aligned["census"]
    people = [columns.ids["census"][place] for place in aligned.places]
    X = np.array([columns.X[each] for each in people])
    complete = columns.make_part(CENTRE).transform.compute_coefficients(X)
    order = order_columns(aligned.key, kept)
    noise = found.Y - complete[:, order]
    # Three parties, each with all the noise that it needs: the variance of Laplace is 2 b^2.
    assert noise.var() == pytest.approx(3 * 2 * 0.4**2, rel=0.3)
    # The energy of the noise, which is known on average, is subtracted from that of the sums.
    energy = (found.Y**2).sum() - 3 * 2 * 0.4**2 * found.Y.size
    expected = min(1.0, max(0.0, 1 - energy / (complete**2).sum()))
    assert found.loss == pytest.approx(expected, abs=0.02)
    local = [
        measure_loss(float((C[:, kept] ** 2).sum()), float((C**2).sum()))
        for C in (
            columns.make_part(name).compute_coefficients(X[:, places])
            for name, places in THREE.items()
        )
    ]
    assert all(
        0 <= shown - true <= 0.1 for shown, true in zip(found.losses, local, strict=True)
    )  # rounded up in two digits


def test_part_with_noise_other_parties_subtract_their_own_and_keep_the_noise(tmp_path: Path):
    """A party that knows its own part and noise is left with the noise of the other one."""
    columns = Columns(tmp_path, TWO, method=make_method(noise_scale=0.4), n=400)
    found = columns.run_all()[CENTRE]
    aligned = columns.aligned["census"]
    left = found.Y - columns.parts["health"]
    X = columns.read("census")[aligned.places]
    clean = columns.make_part("census").compute_coefficients(X)
    noise = left - clean[:, order_columns(aligned.key, columns.run_site("census"))]
    assert noise.var() == pytest.approx(2 * 0.4**2, rel=0.3)


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


@pytest.mark.parametrize("alignment", ["shared_id", "intersection"])
def test_messages_of_all_rounds_hold_no_id_and_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alignment: str
):
    """Ids, values and coefficients of each party are canaries in everything that it sends."""
    sent: list[tuple[str, str, Payload]] = []
    send = Session.send

    def record(self: Session, receiver: str, kind: str, make: Any) -> None:
        def make_and_keep() -> Payload:
            sent.append((self.name, kind, payload := make()))
            return payload

        send(self, receiver, kind, make_and_keep)

    monkeypatch.setattr(Session, "send", record)
    columns = Columns(tmp_path, TWO, alignment=alignment)
    ended = columns.run_all()
    assert isinstance(ended[CENTRE], JoinedRows)
    rounds = {"order", "bounds", "selection", "coefficients"}
    rounds |= {"roster"} if alignment == "shared_id" else {"blinded"}
    assert {kind for _, kind, _ in sent} == rounds
    order = order_columns(columns.aligned["census"].key, ended["census"])
    for name in TWO:
        texts = [each.model_dump() for sender, _, each in sent if sender == name]
        found = repr(texts).encode() + b"".join(
            decode_bytes(text[field])
            for text in texts
            for field in ("values", "energy", "points")
            if text.get(field)
        )
        X = columns.read(name)
        assert not any(f"'{each}'".encode() in found for each in columns.ids[name])
        assert not any(repr(float(value)).encode() in found for value in X.ravel())
        assert not any(np.float64(value).tobytes() in found for value in X.ravel())
        steps = columns.make_part(name).round_coefficients(X)[:, order]
        assert not any(step.tobytes() in found for step in steps.ravel())


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
        "have 1 person in common; at least 20 are needed",
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
    local = [measure_loss(sum_energy(each[:, kept]), sum_energy(each)) for each in (one, two)]
    both = measure_loss(sum_energy((one + two)[:, kept]), sum_energy(one) + sum_energy(two))
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


def change_sent(monkeypatch: pytest.MonkeyPatch, sender: str, kind: str, change: Any) -> None:
    """Change what a party sends: ``change`` gets the receiver and the payload."""
    send = Session.send

    def send_changed(self: Session, receiver: str, sent: str, make: Any) -> None:
        is_changed = (self.name, sent) == (sender, kind)
        send(self, receiver, sent, (lambda: change(receiver, make())) if is_changed else make)

    monkeypatch.setattr(Session, "send", send_changed)


def test_two_selections_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A centre that asks each party for other coefficients gets no sum of them."""

    def select_others(receiver: str, sent: Selection) -> Selection:
        pruned = [i for i in range(M) if i not in sent.kept]
        other = sorted([*sent.kept[1:], pruned[0]])
        return Selection(kept=other) if receiver == "health" else sent

    change_sent(monkeypatch, CENTRE, "selection", select_others)
    ended = Columns(tmp_path, TWO).run_all()
    assert ended["census"] != ended["health"] and len(ended["census"]) == len(ended["health"])
    assert "cannot be that of records within their bounds" in str(ended[CENTRE])


def test_rounds_in_another_order_refused(tmp_path: Path):
    """A party that sends its coefficients before its bounds is refused."""
    columns = Columns(tmp_path, TWO)
    for name in (CENTRE, *TWO, CENTRE):  # hellos, then the roll
        with suppress(StillWaiting):
            columns.open(name)
    early = columns.open("census").session
    early.send(CENTRE, "coefficients", lambda: Coefficients(outcome="FAIL"))
    with pytest.raises(BadInput, match=r"census-centre\.msg is a 'coefficients', and a 'bounds'"):
        columns.run_centre()


def change_points(*changed: bytes | None) -> Callable[[str, BlindedIds], BlindedIds]:
    """Return a change of a message: these points in place of the last; None: one is left out."""

    def change(receiver: str, sent: BlindedIds) -> BlindedIds:
        raw = decode_bytes(sent.points)[: -POINT_BYTES * len(changed)]
        return BlindedIds(points=encode_bytes(raw + b"".join(each or b"" for each in changed)))

    return change


POINT = (9).to_bytes(POINT_BYTES, "little")  # the base point of the curve
POINTS: dict[str, tuple[Any, str]] = {
    "one too few": (change_points(None), "'census' answered with 39 points to 40"),
    "incomplete": (change_points(POINT[:-1]), "'census' sent points of ids that are incomplete"),
    "on the twist": (change_points((2).to_bytes(32, "little")), "or not on the curve"),
    "of small order": (
        change_points((1).to_bytes(32, "little")),
        "'census' sent points of ids that reveal the power of a key",
    ),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", POINTS)
def test_points_of_ids_bad_ones_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str):
    change, words = POINTS[case]
    sent = itertools.count()

    def change_answer(receiver: str, payload: BlindedIds) -> BlindedIds:
        is_answer = next(sent) > 0  # the census speaks first, with its own points
        return change(receiver, payload) if is_answer or case != "one too few" else payload

    change_sent(monkeypatch, "census", "blinded", change_answer)
    ended = Columns(tmp_path, TWO, alignment="intersection").run_all()
    assert isinstance(ended["health"], BadInput) and words in str(ended["health"]), ended


def test_parties_with_different_alignments_wait_and_are_refused(tmp_path: Path):
    """One sends a roster, the other one points: each is of a kind that is not expected."""
    columns = Columns(tmp_path, TWO)
    for _ in range(3):
        for name, alignment in (("census", "shared_id"), ("health", "intersection")):
            columns.alignment = alignment
            with suppress(StillWaiting, BadInput):
                columns.run_site(name)
        with suppress(StillWaiting):
            columns.open(CENTRE)
    columns.alignment = "intersection"
    words = "This party joined with --intersection, and another one without it"
    with pytest.raises(BadInput, match=words) as error:
        columns.run_site("health")
    assert error.value.remedy and "remove the folder 0001 below" in error.value.remedy


def test_selection_that_does_not_exist_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number, kept in enumerate(([0, M], [1, 1], [2, 1], [])):
        change_sent(
            monkeypatch, CENTRE, "selection", lambda to, sent, kept=kept: Selection(kept=kept)
        )
        ended = Columns(tmp_path / str(number), TWO).run_all()
        for name in TWO:
            assert "selected coefficients that do not exist" in str(ended[name]), (kept, ended)
        monkeypatch.undo()


COEFFICIENTS: dict[str, tuple[dict[str, Any], str]] = {
    "other persons": ({"rows": 39}, "coefficients of different numbers of persons"),
    "too few values": ({"values": encode_bytes(bytes(8))}, "of 'census' do not fit the selection"),
    "no whole value": ({"values": encode_bytes(bytes(7))}, "of 'census' do not fit the selection"),
    "two energies": ({"energy": encode_bytes(bytes(32))}, "energy of 'census' is not one number"),
    "half an energy": ({"energy": encode_bytes(bytes(8))}, "energy of 'census' is not one number"),
    "label of too few": ({"label": [0] * 39}, "'census' sent 39 labels of 40 persons"),
    "label of an unknown class": ({"label": [2] * 40}, "'census' sent a class of the label"),
    "label below all classes": ({"label": [-1] * 40}, "'census' sent a class of the label"),
    "label of no machine number": ({"label": [2**40] * 40}, "'census' sent a class of the label"),
    "no label": ({"label": []}, "A label was sent by no party"),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", COEFFICIENTS)
def test_coefficients_that_do_not_fit_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
):
    changes, words = COEFFICIENTS[case]
    change_sent(
        monkeypatch, "census", "coefficients", lambda to, sent: sent.model_copy(update=changes)
    )
    ended = Columns(tmp_path, TWO, classes=2 if "label" in case else 0).run_all()
    assert isinstance(ended[CENTRE], BadInput) and words in str(ended[CENTRE]), ended
    assert not any(isinstance(each, JoinedRows) for each in ended.values())


def test_labels_of_two_parties_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in TWO:
        change_sent(
            monkeypatch,
            name,
            "coefficients",
            lambda to, sent: sent.model_copy(update={"label": [0] * 40}),
        )
    ended = Columns(tmp_path, TWO, classes=2).run_all()
    assert "A label was sent by 'census', 'health'" in str(ended[CENTRE])


@pytest.mark.parametrize(
    ("holders", "words"),
    [
        ((), "declares the label 'mood', and no party holds it"),
        (("census", "health"), "Several parties hold a label: 'census', 'health'"),
    ],
)
def test_label_without_one_holder_refused_before_any_attack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holders: tuple[str, ...], words: str
):
    for name in TWO:
        has_label = {"has_label": name in holders}
        change_sent(
            monkeypatch,
            name,
            "bounds",
            lambda to, sent, has_label=has_label: sent.model_copy(update=has_label),
        )
    ended = Columns(tmp_path, TWO, classes=2).run_all()
    assert words in str(ended[CENTRE])
    assert all(isinstance(ended[name], EndedByCentre) for name in TWO)
