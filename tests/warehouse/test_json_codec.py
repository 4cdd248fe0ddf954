from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Literal

import numpy as np

from ppdm_core.model.arrays import Floats
from ppdm_core.model.reasons import Reason, Skip
from ppdm_core.model.release import PublicParameters
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.self_test import SelfTestResult
from tests.support.facts import make_sanitized_facts, make_validated_facts
from warehouse.json_codec import from_json, to_json
from warehouse.stage_facts import AuditedFacts, EndingFacts, SanitizedFacts, ValidatedFacts


class Colour(Enum):
    RED = "a sentence"


@dataclass(frozen=True)
class Inner:
    colour: Colour
    value: float | None = None


@dataclass(frozen=True, eq=False)
class Outer:
    kind: Literal["a", "b"]
    inner: tuple[Inner, ...]
    pair: tuple[int, str]
    named: Mapping[str, Inner]
    array: Floats
    either: Mapping[str, float | str]
    missing: Inner | None
    anything: Any


def send(value: Any) -> Any:
    """Return the value after a way through JSON text."""
    return from_json(type(value), json.loads(json.dumps(to_json(value), allow_nan=False)))


def test_codec_nested_values_round_trip() -> None:
    inner = Inner(Colour.RED, -math.inf)
    array = np.array([[0.1, math.inf], [1e-300, -0.0]])
    given = Outer(
        kind="a",
        inner=(inner, Inner(Colour.RED)),
        pair=(1, "x"),
        named={"n": inner},
        array=array,
        either={"text": "inf", "number": 0.5},
        missing=None,
        anything={"rows": [1, None]},
    )
    found = send(given)
    assert (found.kind, found.inner, found.pair) == (given.kind, given.inner, given.pair)
    assert (found.named, found.either, found.missing) == (given.named, given.either, None)
    assert found.anything == given.anything
    assert found.array.dtype == np.float64
    assert found.array.tobytes() == array.tobytes()


def test_codec_facts_round_trip() -> None:
    score = Score("a.rate", "privacy", "down", 0.1, 0.0, 0.2, 9, 0.05, 0.3, notes={"x": 1.0})
    skip = Skip(Reason.TOO_FEW_RECORDS, "Nine records.")
    report = AuditReport(
        (score,),
        skipped={"b": skip},
        failed={"c": "KeyError"},
        self_test=SelfTestResult("code", "policy"),
    )
    for facts in (
        make_validated_facts(clamped={"x": 2}),
        AuditedFacts(report),
        EndingFacts(rejected_by="ann"),
    ):
        assert send(facts) == facts


def test_codec_sanitized_facts_round_trip() -> None:
    public = PublicParameters("pca_laplace", "rotated", ("x",), loadings=np.eye(1))
    facts = make_sanitized_facts(public=public, counts={"clipped scores": 3})
    found = send(facts)
    assert found.guarantee == facts.guarantee and found.guarantee.ln_record == math.inf
    assert found.schema == facts.schema
    assert to_json(found) == to_json(facts)
    assert np.array_equal(found.public.loadings, np.eye(1))


def test_facts_kinds_differ() -> None:
    kinds = [ValidatedFacts, SanitizedFacts, AuditedFacts, EndingFacts]
    assert len({kind.KIND for kind in kinds}) == len(kinds)
    assert all("KIND" not in {field.name for field in fields(kind)} for kind in kinds)
