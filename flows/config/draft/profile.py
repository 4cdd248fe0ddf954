"""The draft of a release file from the columns of a table.

Guesses the role of every column and checks that the guesses pass validation. Of the cells, only
names of categories that enough records hold are passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flows.config.draft.basis import choose_basis
from flows.config.draft.choices import NO_CHOICES, Choices
from flows.config.draft.dates import add_years
from flows.config.draft.method import MethodDraft, check_method_name, draft_method
from flows.config.draft.roles import (
    MAX_CLASSES,
    MIN_CATEGORY_RECORDS,
    NAMED_BY_STEWARD,
    Drafted,
    draft_value_column,
    find_identifiers,
    find_label,
)
from ppdm_core.model.errors import BadInput, Defect
from ppdm_core.settings.errors import suggest_name
from tasks.ingest.checks import list_checks
from tasks.progress import Step, start_step
from warehouse.clock import now
from warehouse.column_summary import ColumnSummary, is_unique
from warehouse.columns import Column, Source
from warehouse.derived_columns import add_derived_columns
from warehouse.raw_profile import profile
from warehouse.scratch import open_scratch_database
from warehouse.sources import SOURCES
from warehouse.sources.missing_words import load_and_summarize

if TYPE_CHECKING:
    import duckdb

TABLE = "main.source"
CONSTANT = "constant in the rows that are not dropped"


@dataclass(frozen=True)
class Draft:
    """The drafted columns, and the settings of the method that depend on the table."""

    source: Source  # with the words for missing numbers, if it has such words
    columns: tuple[Drafted, ...]  # in the order of the source; derived ones follow their source
    record_id: str | None
    basis: str  # "" without numbers
    components: int
    method: MethodDraft

    def select(self, role: str) -> tuple[Drafted, ...]:
        """Return the columns of a role."""
        return tuple(each for each in self.columns if each.column.role == role)

    @property
    def label(self) -> Drafted | None:
        return next(iter(self.select("label")), None)

    @property
    def has_numbers(self) -> bool:
        """Whether a feature is numeric."""
        return any(each.column.type == "numeric" for each in self.select("feature"))

    @property
    def has_categories(self) -> bool:
        """Whether a feature is categorical."""
        return any(each.column.type == "categorical" for each in self.select("feature"))

    @property
    def has_derived(self) -> bool:
        """Whether a feature is derived."""
        return any(each.column.derivation for each in self.columns)

    @property
    def has_empty_cells(self) -> bool:
        """Whether empty cells of a feature are filled."""
        return any(each.column.missing == "median" for each in self.columns)


def draft_source(source: Source, choices: Choices = NO_CHOICES) -> Draft:
    """Read the source and draft roles for its columns; store nothing."""
    check_method_name(choices.method)
    start_step(Step.READ)
    with open_scratch_database() as db:
        source, summaries = load_and_summarize(db, source, TABLE)
        start_step(Step.SUMMARIZE)
        if SOURCES[source.kind].has_header_line:
            check_header_line(summaries, source)
        roles, record_id = draft_roles(db, summaries, choices, source)
        columns = add_years(roles, summaries, now().date().replace(month=1, day=1).isoformat())
        add_derived_columns(db, TABLE, [each.column for each in columns], source.name)
        columns = exclude_invalid_columns(db, columns, record_id)
        if all(each.column.role != "feature" for each in columns):
            raise build_no_feature_error(source)
        declared = tuple(each.column for each in columns)
        has_numbers = any(column.type == "numeric" for column in declared)
        basis, components = choose_basis(db, TABLE, declared, record_id) if has_numbers else ("", 0)
    method = draft_method(choices.method, declared, source)
    return Draft(source, tuple(columns), record_id, basis, components, method)


def draft_roles(
    db: duckdb.DuckDBPyConnection,
    summaries: Sequence[ColumnSummary],
    choices: Choices,
    source: Source,
) -> tuple[list[Drafted], str | None]:
    """Return every column of the source with its role, and the column of the record id."""
    label = choices.label
    for name in filter(None, (label, choices.record_id)):
        check_column_name(name, summaries, source)
    others = [each for each in summaries if each.name != label]
    found, record_id = find_identifiers(db, TABLE, others)
    if choices.record_id:
        found[choices.record_id] = draft_record_id(db, choices.record_id, summaries, source)
    if choices.record_id != "":
        record_id = choices.record_id
    if label is not None:
        candidates = [each for each in summaries if each.name not in found]
        found |= find_label(db, TABLE, candidates, label)
    if label and (label not in found or label == record_id):
        raise build_label_error(label, source)
    roles = [found.get(each.name) or draft_value_column(db, TABLE, each) for each in summaries]
    return roles, record_id


def draft_record_id(
    db: duckdb.DuckDBPyConnection, name: str, summaries: Sequence[ColumnSummary], source: Source
) -> Drafted:
    """Return the column of the record id that the steward named."""
    summary = next(each for each in summaries if each.name == name)
    if summary.filled < summary.rows or not is_unique(db, TABLE, name):
        raise BadInput(
            "The column cannot be the record id: it has empty or repeated cells.",
            file=source.path,
            column=name,
            remedy="Name a column that identifies every record, or none.",
        )
    return Drafted(Column(name, "identifier"), NAMED_BY_STEWARD)


def check_column_name(name: str, summaries: Sequence[ColumnSummary], source: Source) -> None:
    """Raise BadInput if there is no such column."""
    names = [each.name for each in summaries]
    if name not in names:
        raise BadInput(
            f"{source.name} has no column '{name}'.",
            file=source.path,
            remedy=suggest_name(name, names),
        )


def build_label_error(label: str, source: Source) -> BadInput:
    """Return the error for a column that cannot be the class."""
    return BadInput(
        f"The column cannot be the label: it needs 2 to {MAX_CLASSES} classes of "
        f"{MIN_CATEGORY_RECORDS} records or more, in most rows.",
        file=source.path,
        column=label,
        remedy="Merge rare classes in the source, or name another column with --label.",
    )


def check_header_line(summaries: Sequence[ColumnSummary], source: Source) -> None:
    """Raise BadInput without a header: the first record would be written as column names."""
    cells = [each for each in summaries if is_number_text(each.name) or each.own_name]
    if 2 * len(cells) > len(summaries):
        raise BadInput(
            f"The source {source.name} seems to have no header.",
            file=source.path,
            remedy="Give every column a name in the first line, one that is not a number.",
        )


def is_number_text(name: str) -> bool:
    """Return whether a column name reads as a number."""
    try:
        float(name)
    except ValueError:
        return False
    return True


def exclude_invalid_columns(
    db: duckdb.DuckDBPyConnection, columns: list[Drafted], record_id: str | None
) -> list[Drafted]:
    """Return the columns; those that validation would refuse are excluded, or not derived.

    Rows that a label drops may leave a feature constant.
    """
    for _ in range(len(columns) + 1):
        declared = tuple(each.column for each in columns)
        counts = profile(db, TABLE, declared, record_id)
        checks = list_checks(counts, declared, record_id, "")
        failed = {each.column for each in checks if not each.low <= counts[each.key] <= each.high}
        if not failed:
            return columns
        columns = [
            Drafted(Column(each.name, "exclude"), CONSTANT) if each.name in failed else each
            for each in columns
            if each.column.derivation is None or each.name not in failed
        ]
    raise Defect("A drafted release does not pass validation.")


def build_no_feature_error(source: Source) -> BadInput:
    """Return the error for a table without a column that can be released."""
    return BadInput(
        f"No column of {source.name} can be released: none has numbers that vary, or categories "
        "that ten records share.",
        file=source.path,
        remedy="Add numbers to the source: ages, amounts, counts, or 0 and 1 for yes and no.",
    )
