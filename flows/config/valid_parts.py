"""Checks of the valid parts of a release file that has errors, so that all are found at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from flows.config.columns import ColumnSpec, check_each_column, check_record_id
from flows.config.name_checks import (
    check_limited,
    check_required,
    check_section_names,
    check_waivers,
    read_registered_names,
)
from flows.config.sections import AuditSpec, SanitizerSpec
from ppdm_core.model.errors import ErrorList
from ppdm_core.settings.limits import check_limit, check_limit_name
from ppdm_core.settings.sections import LimitSpec, Section, build_limits

S = TypeVar("S", bound=Section)


def check_valid_parts(content: Mapping[str, Any]) -> None:
    """Raise BadInput with every error of the parts that are valid by themselves.

    What depends on a part with errors is not checked.
    """
    errors, known = ErrorList(), read_registered_names()
    sanitizer = find_valid(content.get("sanitizer"), SanitizerSpec)
    audit = find_valid(content.get("audit"), AuditSpec)
    if content.get("policy"):
        audit = None  # the policy may require more attacks than the file names
    limits = select_valid(content.get("limits"), LimitSpec)
    columns = select_valid(content.get("columns"), ColumnSpec)
    with errors.collect():
        check_each_column(columns)
    with errors.collect():
        check_given_record_id(content, columns)
    with errors.collect():
        check_section_names(sanitizer, audit, known)
    if audit is not None:
        with errors.collect():
            check_required(audit)
    if sanitizer is not None and sanitizer.method in known.methods:
        with errors.collect():
            check_parameters(sanitizer)
    for name, limit in build_limits(limits).items():
        with errors.collect():
            check_limit_name(name, limit.waive)
            check_waivers(name, limits[name], known)
            check_limited(name, audit, known)
            check_limit(name, limit)
    errors.raise_all()


def check_given_record_id(content: Mapping[str, Any], columns: Mapping[str, ColumnSpec]) -> None:
    """Raise BadInput if the record id is wrong; a column with errors may still be the right one."""
    dataset, declared = content.get("dataset"), content.get("columns")
    name = dataset.get("record_id") if isinstance(dataset, Mapping) else None
    has_errors = isinstance(declared, Mapping) and name in declared and name not in columns
    if isinstance(name, str) and columns and not has_errors:
        check_record_id(name, columns)


def check_parameters(sanitizer: SanitizerSpec) -> None:
    """Raise BadInput with every wrong parameter of the method."""
    from ppdm_core.sanitizers import make_sanitizer

    make_sanitizer(sanitizer.method, sanitizer.model_extra or {})


def find_valid(value: Any, section: type[S]) -> S | None:
    """Return a section, or None if it is missing or has errors."""
    try:
        return section.model_validate(value)
    except ValidationError:
        return None


def select_valid(table: Any, section: type[S]) -> dict[str, S]:
    """Return the entries of a table of sections that have no errors."""
    found = {
        name: find_valid(value, section)
        for name, value in (table.items() if isinstance(table, Mapping) else ())
    }
    return {name: value for name, value in found.items() if value is not None}
