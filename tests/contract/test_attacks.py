from __future__ import annotations

import pytest

from ppdm_core.attacks import ATTACKS, Attack
from tests.contract import cases, checks_attacks
from tests.contract.checks import check_named_alike
from tests.contract.weak_releases import WEAK_RELEASES
from tests.support.leaks import LEAKS

each_key = pytest.mark.parametrize("key", ATTACKS)
PAIRS = [(ATTACKS[key], weak) for key, weak in cases.ATTACKS.items()]
each_attack = pytest.mark.parametrize(("attack", "weak"), PAIRS, ids=cases.ATTACKS)


def test_attacks_each_has_a_case():
    assert set(cases.ATTACKS) == set(ATTACKS)


def test_weak_releases_each_own_one_is_used():
    """Every leak that only the tests plant is there for a case."""
    assert set(LEAKS) <= set(cases.ATTACKS.values()) <= WEAK_RELEASES


@each_key
def test_attack_name_same_in_four_places(key: str):
    check_named_alike(type(ATTACKS[key]), key, cases.ATTACKS)


@each_key
def test_attack_has_story(key: str):
    checks_attacks.check_has_story(ATTACKS[key])


@each_key
def test_attack_declarations_well_typed(key: str):
    checks_attacks.check_declarations(ATTACKS[key])


@each_attack
def test_attack_weak_release_broken(attack: Attack, weak: str):
    checks_attacks.check_breaks_weak_release(attack, weak)


@each_attack
def test_attack_noise_no_better_than_baseline(attack: Attack, weak: str):
    checks_attacks.check_gets_nothing_from_noise(attack, weak)


@each_attack
def test_attack_missing_need_not_applicable(attack: Attack, weak: str):
    checks_attacks.check_needs_are_checked(attack, weak)


@each_attack
def test_attack_view_untouched(attack: Attack, weak: str):
    checks_attacks.check_view_untouched(attack, weak)


@each_attack
def test_attack_candidates_have_their_shape(attack: Attack, weak: str):
    checks_attacks.check_candidates_have_their_shape(attack, weak)


@each_attack
def test_attack_shuffled_rows_same_estimates(attack: Attack, weak: str):
    checks_attacks.check_row_order_does_not_matter(attack, weak)


@each_attack
def test_attack_same_generator_same_estimates(attack: Attack, weak: str):
    checks_attacks.check_repeats(attack, weak)
