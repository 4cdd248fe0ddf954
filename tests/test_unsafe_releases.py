"""The generator of unsafe and safe releases: its promises, and the proofs that it carries."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from ppdm_core.model.arrays import Floats
from tests.support.audit_tables import TABLES, Sample
from tests.support.release_kinds.kinds import Kind, make_rng
from tests.support.release_kinds.proofs import (
    collect_evidence,
    measure_membership,
    measure_recovery,
)
from tests.support.slow_cases import mark_exhaustive, take_in_turn
from tests.support.unsafe_releases import EARLIER, LATER, NOT_TRIED, SAFE, UNSAFE

PROVED_ON = ("incomes", "mixture")  # every kind counts on these, and on the five below
SHARED_TABLES = ("wdbc", "pima", "svmguide1", "ionosphere", "waveform")
LATER_TABLES = ("wdbc", "pima", "magic", "pendigits", "waveform")  # of at least eight columns
RECORDS = 300
KINDS = {**UNSAFE, **SAFE}
SEARCHES = {"listed generators and seeds"}  # models whose attackers take more than a second
IDENTICAL = ("copy",)
WITH_EMPTY_CELLS = ("empty cells", "four cells of ten empty")


@cache
def draw(table: str) -> Sample:
    return TABLES[table].draw(min(RECORDS, TABLES[table].max_records), seed=7)


def release(kind: Kind, table: str) -> Floats:
    sample = draw(table)
    return kind.release(sample.X, make_rng("test", table, kind.name), sample.label)


def check_proof(kind: Kind, table: str) -> None:
    sample = draw(table)
    evidence = kind.prove(sample.X, release(kind, table), sample.others, make_rng("proof", table))
    assert evidence.is_unsafe, evidence


def list_families(kinds: dict[str, Kind]) -> dict[str, int]:
    families = [kind.family for kind in kinds.values()]
    return {family: families.count(family) for family in families}


def test_kinds_enough_in_each_family() -> None:
    assert len(UNSAFE) >= 45 and len(SAFE) >= 8 and not {*UNSAFE} & {*SAFE}
    assert len(LATER) >= 24 and not {*EARLIER} & {*LATER}
    for kinds, least in ((EARLIER, 8), (LATER, 3)):
        assert len(list_families(kinds)) == 7 and min(list_families(kinds).values()) >= least
    assert all(kind.proof is not None for kind in UNSAFE.values())
    assert all(kind.proof is None for kind in SAFE.values())
    assert not {*NOT_TRIED} & {*KINDS}


@pytest.mark.parametrize("name", KINDS)
def test_release_table_contract(name: str) -> None:
    kind, sample = KINDS[name], draw("incomes")
    before = sample.X.copy()
    Y, again = release(kind, "incomes"), release(kind, "incomes")
    assert np.array_equal(sample.X, before), "changes the original"
    assert Y.dtype == np.float64 and Y.ndim == 2 and not np.isinf(Y).any()
    assert np.isnan(Y).any() == (name in WITH_EMPTY_CELLS)
    assert np.array_equal(Y, again, equal_nan=True), "differs with the same generator"
    assert not kind.aligned or len(Y) == len(sample.X)
    assert kind.columns == "own" or Y.shape[1] == sample.X.shape[1]
    if name not in IDENTICAL:
        assert Y.shape != sample.X.shape or not np.array_equal(Y, sample.X)


@pytest.mark.parametrize("name", SAFE)
def test_safe_release_other_generator_other_rows(name: str) -> None:
    X = draw("incomes").X
    first, second = (SAFE[name].make(X, make_rng(name, seed)) for seed in (1, 2))
    assert name == "column means" or np.mean(first == second) < 0.2  # of rounded values


def test_make_rng_names_decide() -> None:
    first, again, other = (make_rng(*names).random() for names in (("a", 1), ("a", 1), ("a", 2)))
    assert first == again != other
    assert make_rng("a").bit_generator.seed_seq.entropy >= 2**64


@pytest.mark.parametrize("table", PROVED_ON)
@pytest.mark.parametrize("name", [n for n, k in UNSAFE.items() if k.proof.model not in SEARCHES])
def test_proof_generated_table_reaches_twice_the_limit(name: str, table: str) -> None:
    check_proof(UNSAFE[name], table)


SEARCHED = [name for name, kind in UNSAFE.items() if kind.proof.model in SEARCHES]


@pytest.mark.parametrize("name", SEARCHED)
def test_proof_few_seeds_reaches_twice_the_limit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.release_kinds.seeded_noise.SEEDS", 300)
    check_proof(UNSAFE[name], PROVED_ON[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "table"),
    mark_exhaustive(product(SEARCHED, PROVED_ON), take_in_turn(SEARCHED, PROVED_ON)),
)
def test_proof_all_seeds_reaches_twice_the_limit(name: str, table: str) -> None:
    check_proof(UNSAFE[name], table)


# Slow: every kind on one table, so that all tables are used in turn; the others are a sweep.
ALL_TABLES = [*product(EARLIER, SHARED_TABLES), *product(LATER, LATER_TABLES)]
ONE_TABLE = [*take_in_turn(EARLIER, SHARED_TABLES), *take_in_turn(LATER, LATER_TABLES)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "table"), mark_exhaustive(ALL_TABLES, ONE_TABLE))
def test_proof_shared_table_reaches_twice_the_limit(
    name: str, table: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPDM_DATA", str(shared_data))
    check_proof(UNSAFE[name], table)


@pytest.mark.parametrize("name", UNSAFE)
def test_proof_noise_in_place_of_release_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.release_kinds.seeded_noise.SEEDS", 300)
    kind, sample = UNSAFE[name], draw("incomes")
    Y = release(kind, "incomes")
    rng = make_rng("noise", name)
    noise = rng.standard_normal(Y.shape) * np.nanstd(Y, axis=0) + np.nanmean(Y, axis=0)
    noise[rng.permuted(np.isnan(Y), axis=0)] = np.nan
    if name in ("exponential map", "softmax", "logistic map", "logistic map, own columns"):
        noise = np.clip(np.abs(noise), 1e-6, 1 - 1e-6)  # the attacker takes logarithms
    assert kind.proof is not None
    source = np.arange(len(noise))
    if kind.find_source is not None:  # and no order of the rows
        source = make_rng("order").permutation(source)
    evidence = collect_evidence(
        kind.proof, sample.X, noise, sample.others, make_rng("proof"), source
    )
    assert not evidence.is_unsafe, evidence


def test_measure_recovery_by_hand() -> None:
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 1.0], [1.0, 0.5]])
    X_hat = X + np.array([[0.09, 0.0], [0.11, 0.0], [0.1, 0.0], [0.2, 0.0]])
    value, baseline = measure_recovery(X, X_hat, np.arange(4))
    assert value == 0.5 and baseline == 0.0


def test_measure_membership_by_hand() -> None:
    is_member = np.arange(600) < 100
    score = np.where(is_member, np.arange(600) < 40, 0).astype(float)
    value, allowed = measure_membership(score, is_member)
    assert allowed == 0.01 and value == pytest.approx(0.4 + 0.6 * 0.01)
