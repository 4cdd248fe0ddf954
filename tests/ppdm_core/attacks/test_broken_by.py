"""What a method says it is broken by does break it, on real tables."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ppdm.cli.docstrings import split_docstring
from ppdm_core.model.score import Score
from ppdm_core.sanitizers import SANITIZERS
from studies.attack_table import WEAK_SETTINGS, choose_tables, get_score_name, is_broken
from studies.public_table_audit import Release, audit_release
from tests.support.slow_cases import mark_exhaustive


def list_named_attacks(method: str) -> list[str]:
    return re.findall(r"``(\w+)``", split_docstring(SANITIZERS[method])["Broken by"])


def is_breaking(attack: str, scores: dict[str, Score]) -> bool:
    """With what it is assumed to know, or in one of its scenarios."""
    metric = get_score_name(attack).removeprefix(attack)
    found = [
        score
        for name, score in scores.items()
        if name.startswith(f"{attack}.") and name.endswith(metric)
    ]
    return any(map(is_broken, found))


def test_is_broken_score_near_baseline_false():
    score = Score("known_pairs.breach_rate", "privacy", "down", 0.5, 0.4, 0.6, 100, 0.3, 0.5)
    assert is_breaking("known_pairs", {score.name: score})
    assert not is_breaking("known_pairs", {score.name: replace(score, baseline=0.395)})
    assert not is_breaking("known_records", {score.name: score})
    assert is_breaking("known_pairs", {"known_pairs.leaked.breach_rate": score})


# Slow: every method on one of its tables: the first, the second, and so on in turn.
ALL_TABLES = [(method, choose_tables(method)) for method in WEAK_SETTINGS]
CASES = [(method, table) for method, tables in ALL_TABLES for table in tables]
ONE_TABLE = [(method, tables[i % len(tables)]) for i, (method, tables) in enumerate(ALL_TABLES)]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "table"), mark_exhaustive(CASES, slow=ONE_TABLE))
def test_broken_by_section_named_attack_breaks_method(shared_data: Path, method: str, table: str):
    attacks = list(dict.fromkeys(list_named_attacks(method)))
    release = Release(method, WEAK_SETTINGS[method], table, draws=1, splits=2, effort="quick")
    scores = audit_release(release, attacks, shared_data)
    assert [attack for attack in attacks if not is_breaking(attack, scores)] == []
