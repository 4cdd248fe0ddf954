from __future__ import annotations

import pytest

from ppdm_core.gates import GATES, decide
from tests.contract import cases, checks_gates
from tests.contract.checks import check_named_alike
from tests.contract.evidence import BROKEN

each_key = pytest.mark.parametrize("key", GATES)


def test_every_gate_has_a_case():
    assert set(cases.GATES) == set(GATES)


def test_every_broken_evidence_belongs_to_a_gate():
    assert {name for names in cases.GATES.values() for name in names} == set(BROKEN)


@each_key
def test_named_alike(key: str):
    check_named_alike(type(GATES[key]), key, cases.GATES)


@each_key
def test_passes_good_evidence(key: str):
    checks_gates.check_passes_good_evidence(GATES[key])


@pytest.mark.parametrize(
    ("key", "broken"), [(key, name) for key, names in cases.GATES.items() for name in names]
)
def test_refuses(key: str, broken: str):
    checks_gates.check_refuses(GATES[key], broken)


@each_key
def test_findings_explain_themselves(key: str):
    checks_gates.check_findings_explain_themselves(GATES[key])


@each_key
def test_worse_score_never_helps(key: str):
    checks_gates.check_worse_score_never_helps(GATES[key])


@each_key
def test_weaker_promise_never_helps(key: str):
    checks_gates.check_weaker_promise_never_helps(GATES[key])


def test_fails_closed():
    checks_gates.check_fails_closed(decide)
