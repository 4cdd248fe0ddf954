from __future__ import annotations

import pytest

from ppdm_core.attacks import ATTACKS
from ppdm_core.model.attacker import Attack
from tests.contract import cases, checks_attacks
from tests.contract.checks import check_named_alike

each_key = pytest.mark.parametrize("key", ATTACKS)
PAIRS = [(ATTACKS[key], weak) for key, weak in cases.ATTACKS.items()]
each_attack = pytest.mark.parametrize(("attack", "weak"), PAIRS, ids=cases.ATTACKS)


def test_every_attack_has_a_case():
    assert set(cases.ATTACKS) == set(ATTACKS)


@each_key
def test_named_alike(key: str):
    check_named_alike(type(ATTACKS[key]), key, cases.ATTACKS)


@each_key
def test_tells_its_story(key: str):
    checks_attacks.check_tells_its_story(ATTACKS[key])


@each_attack
def test_breaks_weak_release(attack: Attack, weak: str):
    checks_attacks.check_breaks_weak_release(attack, weak)


@each_attack
def test_gets_nothing_from_noise(attack: Attack, weak: str):
    checks_attacks.check_gets_nothing_from_noise(attack, weak)


@each_attack
def test_needs_are_checked(attack: Attack, weak: str):
    checks_attacks.check_needs_are_checked(attack, weak)


@each_attack
def test_view_untouched(attack: Attack, weak: str):
    checks_attacks.check_view_untouched(attack, weak)


@each_attack
def test_answers_have_their_shape(attack: Attack, weak: str):
    checks_attacks.check_answers_have_their_shape(attack, weak)


@each_attack
def test_row_order_tells_nothing(attack: Attack, weak: str):
    checks_attacks.check_row_order_tells_nothing(attack, weak)


@each_attack
def test_repeats(attack: Attack, weak: str):
    checks_attacks.check_repeats(attack, weak)
