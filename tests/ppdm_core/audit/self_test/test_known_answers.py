from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from ppdm_core.attacks import ATTACKS
from ppdm_core.audit.self_test import known_answers
from ppdm_core.audit.self_test.known_answers import KnownAnswers, notices, prove, suited
from ppdm_core.audit.self_test.leaks import PLANTS, SUITED
from ppdm_core.audit.self_test.must_catch import MUST_CATCH, plants_for, proven_names, relied_on
from ppdm_core.gates.self_test import SelfTest, unproven
from ppdm_core.metrics import METRICS
from ppdm_core.model.attacker import Attack, AttackerView, Estimate
from ppdm_core.model.errors import Defect
from ppdm_core.model.self_test import NOISE, Proof, SelfTestResult
from tests.contract.evidence import good, with_self_test
from tests.support.proofs import ATTACKS as SHARED
from tests.support.proofs import proven

CELLS = [(plant, name) for plant, names in MUST_CATCH.items() for name in names]
TRIED_HERE = [(plant, name) for plant, name in CELLS if name not in (*SHARED, "door_scan")]


def test_the_matrix_is_the_promised_one():
    """Whoever weakens it changes two places."""
    every = "transform_inverse correlation_filter shrinkage known_pairs known_records trilateration"
    every += " record_linkage membership attribute_inference singling_out linkability"
    promised = {
        "identity": every,
        "slight noise": "correlation_filter shrinkage known_pairs record_linkage membership",
        "rotation": "known_pairs known_records trilateration known_sample_pca known_sample_ica",
        "verbatim rows": "record_linkage closest_record door_scan",
        "shuffled cosines": "column_order",
        "projection": "norm_bounds",
        "kernels": "source_record kernel_support",
        "twenty releases": "release_averaging",
        "arrivals": "release_differencing",
        "float Laplace": "low_bits",
    }
    assert {plant: " ".join(names) for plant, names in MUST_CATCH.items()} == promised
    assert set(MUST_CATCH) == set(PLANTS)


def test_every_attack_has_a_leak_to_notice():
    assert set(ATTACKS) <= set(proven_names())
    assert set(proven_names()) <= {*ATTACKS, *METRICS, "door_scan"}


def test_verbatim_rows_are_as_many_as_promised():
    plant = suited("record_linkage", "verbatim rows", np.random.default_rng(0))
    assert plant.X.shape == (500, 8)
    assert (plant.Y == plant.X).all(axis=1).sum() == 5
    assert (plant.Y != plant.X).all(axis=1).sum() == 495


def test_leaks_are_what_they_are_called():
    rng = np.random.default_rng(0)
    same = PLANTS["identity"](rng)
    assert np.array_equal(same.X, same.Y)
    turned = SUITED["rotation", "known_sample_ica"](rng)
    gaps = [np.linalg.norm(A[:, None] - A[None], axis=2) for A in (turned.X, turned.Y)]
    assert np.allclose(*gaps) and not np.allclose(turned.X, turned.Y)
    noise = PLANTS["slight noise"](rng)
    assert 0.005 < np.abs(noise.Y - noise.X).mean() < 0.02
    assert PLANTS["kernels"](rng).X.shape[1] == 8
    assert len(PLANTS["twenty releases"](rng).earlier) == 19
    half = suited("membership", "identity", rng)
    assert half.members is not None
    assert 2 * len(half.members) == len(half.X)


@pytest.mark.parametrize("name", SHARED)
def test_the_commonest_attacks_notice_every_leak(name: str):
    found = {attack: proofs for (_, _, attack), proofs in proven().items()}
    assert unproven(SelfTestResult("c", "p", found[name]), name) is None  # type: ignore[arg-type]
    assert [proof.plant for proof in found[name]] == [*plants_for(name), NOISE]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("plant", "name"), TRIED_HERE)
def test_a_leak_is_noticed(plant: str, name: str):
    """All 20 repetitions are tried by the slow test below."""
    assert all(notices(name, plant, repetition) for repetition in range(2))
    if plant == plants_for(name)[0]:
        assert not notices(name, plant, 0, NOISE)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for _, name in CELLS} - {"door_scan"}))
def test_every_leak_is_noticed_and_noise_is_not(name: str):
    assert unproven(SelfTestResult("c", "p", tuple(prove(name))), name) is None


def test_the_same_code_counts_the_same():
    first, second = (KnownAnswers("correlation_filter").answer() for _ in range(2))
    assert first == second
    assert [proof.repetitions for proof in first] == [20, 20, 20]
    assert known_answers.derived("a", 1).random() != known_answers.derived("a", 2).random()


@dataclass(frozen=True)
class Ignorant:
    """Answers as somebody would who has never seen the release."""

    attacked: Attack
    story: ClassVar[str] = "Somebody guesses."

    def __getattr__(self, name: str) -> Any:
        return getattr(self.attacked, name)

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        assert view.targets is not None
        (m, _), d, t = view.Y.shape, len(view.schema.numeric), view.targets.n
        guess = {
            "reconstruct": np.full((m, d), 0.5),
            "norms": np.full(m, 1.0),
            "link": rng.integers(0, m, t),
            "source": rng.integers(0, t, (m, 1)),
            "member": rng.random(t),
            "infer": np.full((t, d), 0.5),
            "pair": rng.permutation(t),
            "single_out": np.tile([-9.0, 9.0], (10, d + 1, 1)),
        }[self.attacked.goal]
        return Estimate({"guess": guess}, {"guess": np.full((m, 1), 0.5)})


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_that_ignores_the_release_is_found_out(
    name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(ATTACKS, name, Ignorant(ATTACKS[name]))  # type: ignore[arg-type]
    monkeypatch.setattr(known_answers, "REPETITIONS", 4)  # enough: no leak may be noticed
    found = tuple(prove(name))
    noticed = {proof.plant: proof.noticed for proof in found if proof.plant != NOISE}
    assert noticed == dict.fromkeys(plants_for(name), 0)
    as_if = tuple(replace(proof, repetitions=20) for proof in found)
    why = unproven(SelfTestResult("c", "p", as_if), name)
    assert why is not None
    assert name in why and f"'{plants_for(name)[0]}'" in why and "0 times in 20" in why


@dataclass(frozen=True)
class Nonsense:
    attacked: Attack
    factor: float

    def __getattr__(self, name: str) -> Any:
        return getattr(self.attacked, name)

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        estimate = self.attacked.attack(view, rng)
        return Estimate({name: self.factor * each for name, each in estimate.candidates.items()})


def test_answers_that_are_no_numbers_are_an_error(monkeypatch: pytest.MonkeyPatch):
    name = "transform_inverse"
    monkeypatch.setitem(ATTACKS, name, Nonsense(ATTACKS[name], float("nan")))  # type: ignore[arg-type]
    with pytest.raises(Defect):
        KnownAnswers(name).answer()


def test_an_attack_that_cries_wolf_is_found_out(monkeypatch: pytest.MonkeyPatch):
    """One that is always right about people whom it cannot know is no attack on the release."""
    monkeypatch.setattr(known_answers, "silenced", lambda plant, rng: plant)
    found = tuple(prove("transform_inverse"))
    assert found[-1] == Proof("transform_inverse", NOISE, 20, 20)
    why = unproven(SelfTestResult("c", "p", found), "transform_inverse")
    assert why is not None
    assert "took noise for a leak 20 times" in why


def test_what_a_verdict_stands_on():
    names = relied_on(good().policy)
    assert names == ("known_pairs", "record_linkage", "membership", "door_scan")


def test_an_attack_without_a_leak_cannot_be_relied_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(ATTACKS, "new_one", ATTACKS["known_pairs"])
    evidence = with_self_test()
    policy = replace(evidence.policy, required=(*evidence.policy.required, "new_one"))
    result = replace(evidence.report.self_test, policy_digest=policy.digest)  # type: ignore[type-var]
    report = replace(evidence.report, self_test=result)
    findings = list(SelfTest().check(replace(evidence, policy=policy, report=report)))
    assert [each.outcome for each in findings] == ["FAIL", "PASS"]
    assert "No leak is planted for new_one" in findings[0].why
