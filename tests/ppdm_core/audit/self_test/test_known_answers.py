from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from ppdm_core.attacks import ATTACKS, Attack
from ppdm_core.audit.self_test import known_answers
from ppdm_core.audit.self_test.known_answers import (
    KnownAnswersQuestion,
    is_leak_noticed,
    plant_leak_for,
    run_leak_tests,
)
from ppdm_core.audit.self_test.leaks import LEAKS, VARIANTS
from ppdm_core.audit.self_test.matrix import (
    LEAK_SCAN,
    find_leaks,
    list_tested,
)
from ppdm_core.gates.self_test import explain_unproven
from ppdm_core.model.attacker import AttackerView, Estimate
from ppdm_core.model.errors import Defect
from ppdm_core.model.self_test import NOISE, LeakTest, SelfTestResult
from tests.support.leak_tests import ATTACKS as SHARED
from tests.support.leak_tests import run_shared_leak_tests

CELLS = [(leak, name) for name in list_tested() for leak in find_leaks(name)]
TRIED_HERE = [(leak, name) for leak, name in CELLS if name not in (*SHARED, LEAK_SCAN)]


def test_leak_verbatim_rows_five_of_500():
    plant = plant_leak_for("record_linkage", "verbatim rows", np.random.default_rng(0))
    assert plant.X.shape == (500, 8)
    assert (plant.Y == plant.X).all(axis=1).sum() == 5
    assert (plant.Y != plant.X).all(axis=1).sum() == 495


def test_leaks_match_their_names():
    rng = np.random.default_rng(0)
    same = LEAKS["identity"](rng)
    assert np.array_equal(same.X, same.Y)
    turned = VARIANTS["rotation", "skewed columns and sample"](rng)
    gaps = [np.linalg.norm(A[:, None] - A[None], axis=2) for A in (turned.X, turned.Y)]
    assert np.allclose(*gaps) and not np.allclose(turned.X, turned.Y)
    noise = LEAKS["slight noise"](rng)
    assert 0.005 < np.abs(noise.Y - noise.X).mean() < 0.02
    assert LEAKS["kernels"](rng).X.shape[1] == 8
    assert len(LEAKS["twenty releases"](rng).earlier) == 19
    half = plant_leak_for("membership", "identity", rng)
    assert half.members is not None
    assert 2 * len(half.members) == len(half.X)


@pytest.mark.parametrize("name", SHARED)
def test_run_leak_tests_common_attacks_notice_every_leak(name: str):
    found = {attack: proofs for (_, _, attack), proofs in run_shared_leak_tests().items()}
    assert explain_unproven(SelfTestResult("c", "p", found[name]), name) is None  # type: ignore[arg-type]
    assert [proof.leak for proof in found[name]] == [*find_leaks(name), NOISE]  # type: ignore[attr-defined]


@pytest.mark.parametrize(("plant", "name"), TRIED_HERE)
def test_notices_planted_leak_true_and_noise_false(plant: str, name: str):
    """The slow test below tries all 20 repetitions."""
    assert is_leak_noticed(name, plant, 0)
    if plant == next(iter(find_leaks(name))):
        assert not is_leak_noticed(name, plant, 0, NOISE)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for _, name in CELLS} - {LEAK_SCAN}))
def test_run_leak_tests_every_attack_proven(name: str):
    assert explain_unproven(SelfTestResult("c", "p", tuple(run_leak_tests(name))), name) is None


@pytest.mark.extended
def test_known_answers_question_repeated_same_counts():
    first, second = (KnownAnswersQuestion("correlation_filter").answer() for _ in range(2))
    assert first == second
    assert [proof.repetitions for proof in first] == [20, 20, 20]
    assert known_answers.make_rng("a", 1).random() != known_answers.make_rng("a", 2).random()


@dataclass(frozen=True)
class Ignorant:
    """Guesses without reading the release."""

    attacked: Attack
    story: ClassVar[str] = "An attacker guesses."

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


@pytest.mark.extended
@pytest.mark.parametrize("name", ATTACKS)
def test_run_leak_tests_blind_attack_unproven(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(ATTACKS, name, Ignorant(ATTACKS[name]))  # type: ignore[arg-type]
    monkeypatch.setattr(known_answers, "REPETITIONS", 4)  # enough: no leak may be noticed
    found = tuple(run_leak_tests(name))
    noticed = {proof.leak: proof.noticed for proof in found if proof.leak != NOISE}
    assert noticed == dict.fromkeys(find_leaks(name), 0)
    as_if = tuple(replace(proof, repetitions=20) for proof in found)
    why = explain_unproven(SelfTestResult("c", "p", as_if), name)
    assert why is not None
    assert name in why and f"'{next(iter(find_leaks(name)))}'" in why and "0 times in 20" in why


@dataclass(frozen=True)
class Nonsense:
    attacked: Attack
    factor: float

    def __getattr__(self, name: str) -> Any:
        return getattr(self.attacked, name)

    def attack(self, view: AttackerView, rng: np.random.Generator) -> Estimate:
        estimate = self.attacked.attack(view, rng)
        return Estimate({name: self.factor * each for name, each in estimate.candidates.items()})


def test_known_answers_question_nan_estimates_defect(monkeypatch: pytest.MonkeyPatch):
    name = "transform_inverse"
    monkeypatch.setitem(ATTACKS, name, Nonsense(ATTACKS[name], float("nan")))  # type: ignore[arg-type]
    with pytest.raises(Defect):
        KnownAnswersQuestion(name).answer()


def test_run_leak_tests_alarm_on_noise_unproven(monkeypatch: pytest.MonkeyPatch):
    """An attack that succeeds without the release measures something else."""
    monkeypatch.setattr(known_answers, "replace_by_noise", lambda plant, rng: plant)
    found = tuple(run_leak_tests("transform_inverse"))
    assert found[-1] == LeakTest("transform_inverse", NOISE, 20, 20)
    why = explain_unproven(SelfTestResult("c", "p", found), "transform_inverse")
    assert why is not None
    assert "took noise for a leak 20 times" in why
