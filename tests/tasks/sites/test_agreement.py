"""Sites agree on a common fit: equal to the central one, and refused where it would leak."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import tasks.centre.fit as centre_fit
from ppdm_core.model.errors import BadInput
from ppdm_core.model.rows import ArrayRows
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.numerics.integer_moments import sum_moments
from ppdm_core.numerics.masks import MODULUS, pack_values, sum_masked, unpack_values
from ppdm_core.sanitizers._basis import fit_basis, sum_scores
from tasks.sites import fit as site_fit
from tasks.sites.exchange import EndedByCentre, StillWaiting
from tests.support.agreements import DCT, PCA, SCHEMA, Agreement, gather
from tests.support.parties import Parties
from warehouse.messages.envelope import StrayFile
from warehouse.messages.payloads import Basis, MaskedSums, SharedFit, decode_bytes, encode_bytes
from warehouse.messages.roll import CENTRE


@pytest.mark.extended
@pytest.mark.parametrize("sites", [("east", "north", "south"), ("a", "b", "c", "d", "e")])
def test_pca_common_basis_has_the_bytes_of_the_central_one(tmp_path: Path, sites):
    agreement = Agreement(Parties(tmp_path, sites), PCA)
    ended = agreement.run_all()
    central = json.dumps(fit_basis(gather(agreement.rows), 2))
    assert {json.dumps(ended[site]) for site in sites} == {central}


def test_dct_common_selection_is_the_central_one_and_order_is_shared(tmp_path: Path):
    agreement = Agreement(Parties(tmp_path), DCT)
    ended = agreement.run_all()
    fits = [ended[site] for site in agreement.parties.sites]
    assert len({json.dumps(fit["order"]) for fit in fits}) == 1
    assert fits[0]["kept"] == sorted(fits[0]["order"])
    assert DCT.fit(gather(agreement.rows))["kept"] == fits[0]["kept"]
    # The centre saw bounds, and no key of the order.
    folder = agreement.open(CENTRE).entry.folder
    kinds = {
        json.loads(path.read_text())["header"]["kind"] for path in folder.glob("messages/*/*.msg")
    }
    assert kinds == {"bounds", "selection"}


@pytest.mark.extended
def test_dct_order_changes_with_the_session(tmp_path: Path):
    """Three columns have six orders: one session in six repeats that of another by chance."""
    first, *others = (
        Agreement(Parties(tmp_path / str(i)), DCT).run_all()["east"] for i in range(10)
    )
    assert all(each["kept"] == first["kept"] for each in others)
    assert any(each["order"] != first["order"] for each in others)


def change_sums(
    monkeypatch: pytest.MonkeyPatch, site: str, sent_kind: str, places: slice, added: int
) -> None:
    """Let one site add to numbers that it sends under its masks."""
    mask = site_fit.mask

    def cheat(exchange: Any, kind: str, values: list[int], *answered: Any) -> MaskedSums:
        sent = mask(exchange, kind, values, *answered)
        if exchange.member.name != site or kind != sent_kind:
            return sent
        numbers = unpack_values(decode_bytes(sent.values))
        numbers[places] = [(number + added) % MODULUS for number in numbers[places]]
        return MaskedSums(values=encode_bytes(pack_values(numbers)))

    monkeypatch.setattr(site_fit, "mask", cheat)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("kind", "places", "added"),
    [
        ("moments", slice(0, 1), -(10**6)),
        ("moments", slice(1, 2), 2**60),
        ("moments", slice(6, 7), 2**90),
        ("moments", slice(6, 7), -(2**90)),
        ("scores", slice(0, 1), 2**90),
        ("scores", slice(0, 1), 2**24),  # the squares are too small for it
        ("scores", slice(1, 2), -(2**90)),
        ("scores", slice(2, None), 2**90),  # each score lies beyond every level
        ("scores", slice(903, 904), 2**90),  # beyond one of 903 levels, and not beyond those before
        ("scores", slice(-902, -901), 2**90),
    ],
)
def test_pca_malicious_sums_end_the_round_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, places: slice, added: int
):
    agreement = Agreement(Parties(tmp_path), PCA)
    change_sums(monkeypatch, "north", kind, places, added)
    ended = agreement.run_all()
    assert isinstance(ended[CENTRE], BadInput)
    assert "cannot be that of records" in str(ended[CENTRE])
    sites = agreement.parties.sites
    assert not any(site in str(ended[CENTRE]) for site in sites)
    assert all(isinstance(ended[site], EndedByCentre) for site in sites)


def test_pca_masks_of_another_roll_do_not_cancel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A centre that shows different rolls to different sites learns nothing from the sum."""
    agreement = Agreement(Parties(tmp_path), PCA)
    add = site_fit.add_masks

    def bind_elsewhere(values: Any, own: str, secrets: Any, context: Any) -> list[int]:
        given = ("another roll", *context[1:]) if own == "east" else context
        return add(values, own, secrets, given)

    monkeypatch.setattr(site_fit, "add_masks", bind_elsewhere)
    assert "cannot be that of records" in str(agreement.run_all()[CENTRE])


def test_pca_masks_of_another_basis_do_not_cancel(tmp_path: Path):
    """A centre sends one site a single loading, and all others loadings that leave no rest.

    If the masks cancelled, the sum of all rests would be that of this site alone.
    """
    agreement = Agreement(Parties(tmp_path), PCA)
    victim, *others = agreement.parties.sites
    draft = centre_fit.find_basis(sum_moments(agreement.rows[victim]), SCHEMA, 5)
    narrow = Basis(loadings=draft.loadings[:, :1].tolist(), mean=draft.mean.tolist())
    complete = Basis(loadings=draft.loadings.tolist(), mean=draft.mean.tolist())

    def lead() -> list[int]:
        exchange, answers = agreement.open(CENTRE), []
        for site in agreement.parties.sites:
            exchange.receive(site, "moments", MaskedSums)
        for site in agreement.parties.sites:
            basis = narrow if site == victim else complete
            exchange.session.send(site, "basis", lambda basis=basis: basis)
        for site in agreement.parties.sites:
            sent = exchange.receive(site, "scores", MaskedSums).values
            answers.append(unpack_values(decode_bytes(sent))[:2])
        return sum_masked(answers)

    found: list[int] | None = None
    for _ in range(8):
        with suppress(StillWaiting):
            found = lead()
        for site in agreement.parties.sites:
            with suppress(StillWaiting):
                agreement.run_site(site)
    own = sum_scores(agreement.rows[victim], np.array(narrow.loadings), draft.mean)
    rest = sum_scores(agreement.rows[others[0]], np.array(complete.loadings), draft.mean)
    assert own.total > 0 and rest.total == 0  # so that the attack would succeed
    assert found is not None
    assert found[0] != own.total and found[1] != own.squares


def test_stray_file_ends_the_release_of_nobody(tmp_path: Path):
    agreement = Agreement(Parties(tmp_path), DCT)
    for name in (CENTRE, *agreement.parties.sites, CENTRE, *agreement.parties.sites):
        with suppress(StillWaiting):
            agreement.run_centre() if name == CENTRE else agreement.run_site(name)
    path = agreement.parties.find_file("000-north-centre.msg")
    path.unlink(missing_ok=True)
    path.write_bytes(b"{}")
    with pytest.raises(StrayFile, match="does not have the form of a message") as error:
        agreement.run_centre()
    assert "Remove the file" in str(error.value.remedy)
    path.unlink()
    ended = agreement.run_all()
    assert ended[CENTRE] is None and all("order" in ended[site] for site in agreement.parties.sites)


def test_pca_number_of_masked_values_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mask = site_fit.mask
    monkeypatch.setattr(
        site_fit,
        "mask",
        lambda exchange, kind, values, *answered: mask(exchange, kind, values[:-1], *answered),
    )
    ended = Agreement(Parties(tmp_path), PCA).run_all()
    assert "do not fit the columns of the roll" in str(ended[CENTRE])


def test_pca_fit_that_does_not_enclose_own_scores_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    share = centre_fit.share_basis

    def cheat(*given: Any) -> SharedFit:
        fit = share(*given)
        return fit.model_copy(update={"ranges": [(-1e-3, 1e-3)] * len(fit.ranges)})

    monkeypatch.setattr(centre_fit, "share_basis", cheat)
    agreement = Agreement(Parties(tmp_path), PCA)
    ended = agreement.run_all()
    assert all("does not follow" in str(ended[site]) for site in agreement.parties.sites)


BAD_BASES: dict[str, tuple[dict[str, Any], str]] = {
    "too long": ({"loadings": [[9.0]] * 5}, "not orthonormal"),
    "no length": ({"loadings": [[0.0]] * 5}, "not orthonormal"),
    "products overflow": (
        {"loadings": [[1e200, 1e200], [1e200, -1e200], *[[0.0, 0.0]] * 3]},
        "not orthonormal",
    ),
    "no component": ({"loadings": [[]] * 5}, "not orthonormal"),
    "another column": ({"loadings": [[1.0]] * 1}, "not orthonormal"),
    "far mean": ({"mean": [1e30] * 5}, "a mean outside the bounds"),
    "mean beyond one bound": ({"mean": [0.0, 0.0, 0.0, 0.0, -0.6]}, "a mean outside the bounds"),
    "mean of other columns": ({"mean": [0.0]}, "a mean outside the bounds"),
}


@pytest.mark.extended
@pytest.mark.parametrize("case", BAD_BASES)
def test_pca_bad_basis_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str):
    changes, words = BAD_BASES[case]
    basis = centre_fit.Basis
    monkeypatch.setattr(
        centre_fit, "Basis", lambda **given: basis.model_validate({**given, **changes})
    )
    agreement = Agreement(Parties(tmp_path), PCA)
    ended = agreement.run_all()
    assert all(words in str(ended[site]) for site in agreement.parties.sites)


def test_check_basis_mean_rounded_beyond_a_bound_accepted():
    """Records at the upper bound of a column, whose mean is rounded up to the next step."""
    schema = Schema((Numeric("x", 0.0, 0.9), Numeric("y", 0.0, 0.9)))
    X = np.array([[0.9, 0.9], [0.9, 0.9]])
    mean = sum_moments(ArrayRows(schema, X)).compute_mean(schema)
    assert (mean > 0.45).all()
    site_fit.check_basis(Basis(loadings=[[1.0], [0.0]], mean=mean.tolist()), schema)


def test_dct_bounds_of_other_columns_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bounds = site_fit.Bounds
    monkeypatch.setattr(site_fit, "Bounds", lambda low, high: bounds(low=low[:-1], high=high[:-1]))
    ended = Agreement(Parties(tmp_path), DCT).run_all()
    assert "do not fit the 5 columns" in str(ended[CENTRE])


@pytest.mark.extended
@pytest.mark.parametrize("kept", [[], [0, 0], [3, 1], [1, 7]])
def test_dct_impossible_selection_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: list[int]
):
    selection = centre_fit.Selection
    given = list(kept)
    monkeypatch.setattr(centre_fit, "Selection", lambda kept: selection(kept=given))
    agreement = Agreement(Parties(tmp_path), DCT)
    ended = agreement.run_all()
    assert all("do not exist" in str(ended[site]) for site in agreement.parties.sites)


def begin_again(parties: Parties, sites: tuple[str, ...]) -> Parties:
    """End the session at all parties, and join another one with these sites."""
    parties.enter(CENTRE).announce_next()
    for name in (CENTRE, *parties.sites):
        parties.enter(name).end({"outcome": "refused"})
    keys = {name: parties.keys[name] for name in (CENTRE, *sites) if name in parties.keys}
    return Parties(parties.folder, sites, keys=keys)


@pytest.mark.extended
def test_pca_second_round_refused_unless_waived(tmp_path: Path):
    parties = Parties(tmp_path)
    Agreement(parties, PCA).run_all()
    again = begin_again(parties, parties.sites)
    ended = Agreement(again, PCA).run_all(3)
    for site in parties.sites:
        assert "sent moments for a common basis before" in str(ended[site])
        assert "refit_waiver" in str(ended[site].remedy)


@pytest.mark.extended
def test_pca_waived_second_round_completes(tmp_path: Path):
    parties = Parties(tmp_path)
    first = Agreement(parties, PCA).run_all()
    again = begin_again(parties, parties.sites)
    second = Agreement(again, PCA, waived=True).run_all()
    assert second["east"] == first["east"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("east", "north", "south", "west"), ("east", "north", "south")),
        (("east", "north", "south"), ("east", "north", "south", "west")),
        (("east", "north", "south"), ("east", "north", "west")),
    ],
    ids=["fewer sites", "more sites", "another site"],
)
def test_pca_waived_round_with_other_sites_refused(
    tmp_path: Path, before: tuple[str, ...], after: tuple[str, ...]
):
    """The difference of two sums would be the moments of the site that is in one of them."""
    parties = Parties(tmp_path, before)
    Agreement(parties, PCA).run_all()
    ended = Agreement(begin_again(parties, after), PCA, waived=True).run_all(3)
    assert all("with other sites or keys" in str(ended[s]) for s in set(before) & set(after))


def test_pca_waived_round_with_another_key_of_a_site_refused(tmp_path: Path):
    """Somebody else takes the name of a site."""
    parties = Parties(tmp_path)
    Agreement(parties, PCA).run_all()
    parties.keys["south"] = Ed25519PrivateKey.generate()
    again = begin_again(parties, parties.sites)
    ended = Agreement(again, PCA, waived=True).run_all(3)
    assert all("with other sites or keys" in str(ended[site]) for site in ("east", "north"))


def test_pca_moments_recorded_without_keys_count_as_those_of_other_sites(tmp_path: Path):
    parties = Parties(tmp_path)
    Agreement(parties, PCA).run_all()
    again = begin_again(parties, parties.sites)
    path = parties.enter("east").folder.parent / "moments.json"
    (entry,) = json.loads(path.read_text())
    path.write_text(json.dumps([{**entry, "sites": list(entry["sites"])}]))
    ended = Agreement(again, PCA, waived=True).run_all(3)
    assert "with other sites or keys" in str(ended["east"])


def test_pca_too_few_set_aside_records_refused(tmp_path: Path):
    sizes = {"east": 40, "north": 5, "south": 40}
    ended = Agreement(Parties(tmp_path), PCA, sizes).run_all(3)
    assert set(ended) == {"north"}
    assert "needs more than 5 set-aside records" in str(ended["north"])


def test_dct_site_without_energy_refused(tmp_path: Path):
    agreement = Agreement(Parties(tmp_path), DCT)
    agreement.rows["north"] = ArrayRows(SCHEMA, np.zeros((9, 5)))
    assert "No record of this site has energy" in str(agreement.run_all(4)["north"])
