from __future__ import annotations

import pytest

from ppdm_core.gates import GATES, decide
from tests.contract import cases, checks_gates
from tests.contract.checks import check_named_alike
from tests.contract.gate_inputs import BROKEN_INPUTS

each_key = pytest.mark.parametrize("key", GATES)


def test_gates_each_has_a_case():
    assert set(cases.GATES) == set(GATES)


def test_broken_inputs_each_has_a_gate_that_refuses_it():
    assert {name for names in cases.GATES.values() for name in names} == set(BROKEN_INPUTS)


@each_key
def test_gate_name_same_in_four_places(key: str):
    check_named_alike(type(GATES[key]), key, cases.GATES)


@each_key
def test_gate_good_input_passes(key: str):
    checks_gates.check_passes_good_input(GATES[key])


@pytest.mark.parametrize(
    ("key", "broken"), [(key, name) for key, names in cases.GATES.items() for name in names]
)
def test_gate_broken_input_refused(key: str, broken: str):
    checks_gates.check_refuses(GATES[key], broken)


@each_key
def test_gate_findings_have_reasons(key: str):
    checks_gates.check_findings_have_reasons(GATES[key])


@each_key
def test_gate_worse_score_never_helps(key: str):
    checks_gates.check_worse_score_never_helps(GATES[key])


@each_key
def test_gate_weaker_guarantee_never_helps(key: str):
    checks_gates.check_weaker_guarantee_never_helps(GATES[key])


def test_decide_broken_input_fails_closed():
    checks_gates.check_fails_closed(decide)
