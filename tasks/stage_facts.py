"""What the stages leave behind, as plain JSON and back. Infinity travels as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from ppdm_core.model.release import Guarantee, Public
from ppdm_core.model.schema import Numeric, Schema
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.self_test import result_from_dict
from ppdm_core.published import ARRAYS, categorical, public_from_dict

__all__ = [
    "guarantee_from_dict",
    "guarantee_to_dict",
    "public_from_dict",
    "public_to_dict",
    "report_from_dict",
    "report_to_dict",
    "schema_from_dict",
]


def schema_from_dict(data: Mapping[str, Any]) -> Schema:
    label = data["label"]
    return Schema(
        numeric=tuple(Numeric(**column) for column in data["numeric"]),
        categorical=tuple(categorical(column) for column in data["categorical"]),
        label=categorical(label) if label else None,
    )


def public_to_dict(public: Public) -> dict[str, Any]:
    found = {field.name: getattr(public, field.name) for field in fields(public)}
    for name in ARRAYS:
        found[name] = None if found[name] is None else found[name].tolist()
    return {
        **found,
        "columns": list(public.columns),
        "whole": list(public.whole),
        "responses": [asdict(response) for response in public.responses],
        "facts": dict(public.facts),
    }


def guarantee_to_dict(guarantee: Guarantee) -> dict[str, Any]:
    data = asdict(guarantee)
    return {
        name: repr(value) if isinstance(value, float) else value for name, value in data.items()
    }


def guarantee_from_dict(data: Mapping[str, Any]) -> Guarantee:
    figures: dict[str, Any] = {
        name: float(data[name]) for name in ("ln_component", "ln_attribute", "ln_record")
    }
    names = {name: tuple(data.get(name, ())) for name in ("assumptions", "without_bound")}
    return Guarantee(kind=data["kind"], **{**figures, **names})


def report_to_dict(report: AuditReport) -> dict[str, Any]:
    return asdict(report)


def report_from_dict(data: Mapping[str, Any]) -> AuditReport:
    return AuditReport(
        scores=tuple(Score(**score) for score in data["scores"]),
        skipped=dict(data["skipped"]),
        failed=dict(data["failed"]),
        not_run=tuple(data.get("not_run", ())),
        self_test=result_from_dict(data.get("self_test")),
    )
