"""Which attack must notice which leak, and what a policy may rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import pytest

from ppdm_core.attacks import ATTACKS
from ppdm_core.attacks.known_pairs import KnownPairs
from ppdm_core.audit.self_test.leaks import LEAKS
from ppdm_core.audit.self_test.matrix import (
    LEAK_SCAN,
    check_provable,
    count_needed,
    find_leaks,
    list_relied_on,
    list_tested,
)
from ppdm_core.gates.self_test import SelfTest
from ppdm_core.metrics import METRICS
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Policy
from tests.contract.gate_inputs import change_self_test, make_good_input, make_limit

EVERY = "transform_inverse correlation_filter shrinkage known_pairs known_records trilateration"
EVERY += " record_linkage membership attribute_inference singling_out linkability"
# The promise of the documentation: to weaken it, change the attack and this table.
PROMISED = {
    "identity": EVERY,
    "slight noise": "correlation_filter shrinkage known_pairs record_linkage membership",
    "rotation": "known_pairs known_records trilateration known_sample_pca known_sample_ica",
    "verbatim rows": "record_linkage copied_records closest_record leak_scan",
    "shuffled cosines": "column_order",
    "projection": "norm_bounds",
    "kernels": "source_record kernel_support",
    "twenty releases": "release_averaging",
    "arrivals": "release_differencing",
    "float Laplace": "low_bits",
    "noise with a hole": "learned_linkage",
    "rearranged values": "learned_linkage",
    "curved map": "learned_linkage",
    "few sizes of noise": "repeated_noise",
    "recurrent noise": "predictable_noise",
    "hidden digits": "hidden_digits",
    "guessable seed": "recomputed_noise",
    "pooled rows": "colluding_sites",
    "pooled moments": "pooled_moments",
    "part of a sum": "other_party",
    "related columns": "related_party",
}
PROMISED_SHARE = 0.85  # 17 of 20 trials


class Unproven(KnownPairs):
    """An attack that declares no leak."""

    name: ClassVar[str] = "new_one"
    must_notice: ClassVar[Mapping[str, float]] = {}


@pytest.fixture
def unproven(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(ATTACKS, Unproven.name, Unproven())
    return Unproven.name


def test_matrix_promised_leaks_declared_in_full():
    for leak, names in PROMISED.items():
        for name in names.split():
            assert find_leaks(name)[leak] >= PROMISED_SHARE, f"{name} on {leak}"


def test_matrix_declared_leaks_exist_and_each_is_noticed():
    declared = {leak for name in list_tested() for leak in find_leaks(name)}
    assert declared == set(PROMISED) == set(LEAKS)


def test_matrix_every_attack_declares_a_leak():
    assert set(ATTACKS) <= set(list_tested())
    assert set(list_tested()) <= {*ATTACKS, *METRICS, LEAK_SCAN}


@pytest.mark.parametrize(("share", "needed"), [(0.85, 17), (0.86, 18), (1.0, 20), (0.01, 1)])
def test_count_needed_share_rounded_up(share: float, needed: int):
    assert count_needed(share) == needed


def test_list_relied_on_required_and_limited_attacks_and_leak_scan():
    names = list_relied_on(make_good_input().policy)
    assert names == ("known_pairs", "record_linkage", "membership", LEAK_SCAN)


def test_check_provable_registered_attacks_accepted():
    check_provable(make_good_input().policy)
    check_provable(Policy(required=tuple(ATTACKS), limits={}))


@pytest.mark.parametrize(
    ("required", "limited"), [(("new_one",), ()), ((), ("new_one.breach_rate",))]
)
def test_check_provable_attack_without_leak_refused(
    unproven: str, required: tuple[str, ...], limited: tuple[str, ...]
):
    policy = Policy(required=required, limits=dict.fromkeys(limited, make_limit(0.1)))
    with pytest.raises(BadInput) as error:
        check_provable(policy)
    assert error.value.message == (
        f"The attack {unproven} cannot be required or limited: it declares no planted leak that it "
        "must notice."
    )
    assert error.value.remedy


def test_check_provable_attack_without_leak_not_relied_on_accepted(unproven: str):
    check_provable(make_good_input().policy)


def test_self_test_gate_attack_without_leak_fails(unproven: str):
    gate_input = change_self_test()
    policy = replace(gate_input.policy, required=(*gate_input.policy.required, unproven))
    result = replace(gate_input.report.self_test, policy_digest=policy.digest)  # type: ignore[type-var]
    report = replace(gate_input.report, self_test=result)
    findings = list(SelfTest().check(replace(gate_input, policy=policy, report=report)))
    assert [each.outcome for each in findings] == ["FAIL", "PASS"]
    assert "No leak is planted for new_one" in findings[0].why
