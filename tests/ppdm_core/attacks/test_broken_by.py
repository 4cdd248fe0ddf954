"""What a method says it is broken by does break it, on real tables."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ppdm.cli.methods import split_docstring
from ppdm_core.attacks import ATTACKS
from ppdm_core.model.score import Score
from ppdm_core.sanitizers import SANITIZERS
from studies.attack_table import WEAK, is_broken, key_of, tables_for
from studies.public_table_audit import Release, audited


def named(method: str) -> list[str]:
    return re.findall(r"``(\w+)``", split_docstring(SANITIZERS[method])["Broken by"])


def breaks(attack: str, scores: dict[str, Score]) -> bool:
    """With what it is assumed to know, or in one of its scenarios."""
    metric = key_of(attack).removeprefix(attack)
    found = [
        score
        for name, score in scores.items()
        if name.startswith(f"{attack}.") and name.endswith(metric)
    ]
    return any(map(is_broken, found))


@pytest.mark.parametrize("method", SANITIZERS)
def test_every_attack_that_is_named_exists(method: str):
    attacks = named(method)
    assert attacks and set(attacks) <= set(ATTACKS)
    assert method in WEAK and len(set(tables_for(method))) >= 3


def test_a_score_near_its_baseline_breaks_nothing():
    score = Score("known_pairs.breach_rate", "privacy", "down", 0.5, 0.4, 0.6, 100, 0.3, 0.5)
    assert breaks("known_pairs", {score.name: score})
    assert not breaks("known_pairs", {score.name: replace(score, baseline=0.395)})
    assert not breaks("known_records", {score.name: score})
    assert breaks("known_pairs", {"known_pairs.leaked.breach_rate": score})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "table"), [(method, table) for method in WEAK for table in tables_for(method)]
)
def test_what_a_method_is_broken_by_breaks_it(shared_data: Path, method: str, table: str):
    attacks = list(dict.fromkeys(named(method)))
    release = Release(method, WEAK[method], table, draws=1, splits=2, effort="quick")
    found = audited(release, attacks, shared_data)
    assert [attack for attack in attacks if not breaks(attack, found.scores)] == []
