"""Guess the roles of the columns of a table.

A column that may identify a person becomes an identifier; one that no method accepts is excluded,
with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.column_summary import ColumnSummary, count_categories, is_row_counter, is_unique
from warehouse.columns import OTHER, Column

if TYPE_CHECKING:
    import duckdb

MIN_CATEGORY_RECORDS = 10  # a category of fewer records is not written to the file
MAX_CLASSES = 30
MAX_CODES = 10  # whole numbers in a column that is not named like a class
MAX_CATEGORIES = 100  # text with more different values is no category
MAX_DROPPED_SHARE = 0.1  # of the rows, for a label
MAX_CATEGORY_CHARACTERS = 60
MAX_ID_CHARACTERS = 64
MAX_NUMBER, MIN_NUMBER = 1e100, 1e-100  # beyond them squares leave the range of a float

NAMED_BY_STEWARD = "named by you"
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
ID_WORDS = {"id", "ids", "uid", "uuid", "guid", "key", "ssn", "mrn"}
WEAK_ID_WORDS = {"no", "nr", "number", "code", "index", "row"}  # only where all values differ
PERSON_WORDS = {
    *("name", "surname", "firstname", "lastname", "forename", "username", "email", "mail"),
    *("phone", "telephone", "fax", "address", "street", "passport", "iban"),
    *("zip", "zipcode", "postcode"),
}
LABEL_WORDS = (
    *("label", "class", "target", "y", "outcome", "diagnosis", "species", "survived", "churn"),
    *("income", "quality", "grade", "result", "category", "status", "type"),
)


@dataclass(frozen=True)
class Drafted:
    """A column with its guessed role."""

    column: Column
    why: str  # the reason for the role

    @property
    def name(self) -> str:
        return self.column.name


def split_words(name: str) -> list[str]:
    """Return the words of a name: patientID, patient_id and "Patient ID" have the same two."""
    return [word.lower() for word in WORDS.findall(name)] or [""]


def find_identifiers(
    db: duckdb.DuckDBPyConnection, table: str, summaries: Sequence[ColumnSummary]
) -> tuple[dict[str, Drafted], str | None]:
    """Return the columns that identify a record, and the one that seems stable over deliveries."""
    found: dict[str, Drafted] = {}
    stable: list[tuple[bool, str]] = []
    for position, summary in enumerate(summaries):
        if summary.kind in ("date", "other") or summary.filled == 0:
            continue
        words = split_words(summary.name)
        is_named = words[-1] in ID_WORDS or words[0] == "id"
        is_personal = bool(PERSON_WORDS & set(words)) and not is_category(summary)
        is_coded = is_code(summary) or is_serial(summary, words, position)
        if not (is_named or is_personal or is_coded):
            continue
        is_unique_value = can_be_unique(summary) and is_unique(db, table, summary.name)
        if is_named or is_personal:
            why = "named like an identifier" if is_named else "named like personal data"
        elif is_unique_value:
            why = "every value is different"
        else:
            continue
        found[summary.name] = Drafted(Column(summary.name, "identifier"), why)
        is_exact = summary.kind != "float" and (summary.is_whole or not summary.is_numeric)
        is_stable = is_named or not is_row_counter(db, table, summary.name)
        if is_unique_value and is_exact and is_stable and not is_personal:
            stable.append((not is_named, summary.name))
    return found, min(stable, default=(False, None), key=lambda pair: pair[0])[1]


def can_be_unique(summary: ColumnSummary) -> bool:
    """Return whether the values may be unique; the number of distinct values is an estimate."""
    return summary.filled == summary.rows and summary.distinct > 0.8 * summary.rows


def is_code(summary: ColumnSummary) -> bool:
    """Return whether the values are short texts without spaces, and no dates or numbers."""
    if summary.kind != "text" or summary.is_numeric or is_date(summary):
        return False
    is_short = summary.spaced == 0 and summary.longest <= MAX_ID_CHARACTERS
    return is_short and 2 * summary.like_numbers < summary.filled


def is_serial(summary: ColumnSummary, words: Sequence[str], position: int) -> bool:
    """Return whether whole numbers are too dense to be unique by chance, or placed like ids."""
    if not summary.is_whole or is_date(summary):
        return False
    span = summary.most - summary.least
    many = summary.rows >= 100
    return (
        span == summary.rows - 1
        or words[-1] in WEAK_ID_WORDS
        or (many and (span < 10 * summary.rows or position == 0))
    )


def is_date(summary: ColumnSummary) -> bool:
    """Return whether the values are dates or times: all numbers, or half of the texts."""
    if summary.kind == "date":
        return True
    return summary.dates >= (summary.filled if summary.is_numeric else max(1, summary.filled / 2))


def has_iso_dates(summary: ColumnSummary) -> bool:
    """Return whether every value is a date that columns can be derived from."""
    return is_date(summary) and summary.iso_dates == summary.filled > 0


def is_category(summary: ColumnSummary) -> bool:
    """Return whether the values are short texts, and few of them are different."""
    few = summary.distinct <= min(MAX_CATEGORIES, summary.rows / 2)
    return (
        summary.kind == "text"
        and not summary.is_numeric
        and few
        and summary.longest <= MAX_CATEGORY_CHARACTERS
    )


def find_label(
    db: duckdb.DuckDBPyConnection,
    table: str,
    summaries: Sequence[ColumnSummary],
    name: str = "",
) -> dict[str, Drafted]:
    """Return the column that is most likely the class, or nothing; ``name``: only this one."""
    named = [(each, NAMED_BY_STEWARD) for each in summaries if each.name == name]
    for summary, why in named or list_label_candidates(summaries):
        records = count_categories(db, table, summary.name, MAX_CLASSES)
        classes = tuple(name for name, count in records.items() if count >= MIN_CATEGORY_RECORDS)
        covered = sum(records[name] for name in classes)
        is_printable = all(name.strip() and name.isprintable() for name in classes)
        if len(classes) < 2 or not is_printable or covered < (1 - MAX_DROPPED_SHARE) * summary.rows:
            continue
        column = Column(
            summary.name,
            "label",
            "categorical",
            categories=classes,
            outside="drop_row" if len(classes) < len(records) else "reject",
            missing="drop_row" if summary.filled < summary.rows else "reject",
        )
        return {summary.name: Drafted(column, why)}
    return {}


def list_label_candidates(
    summaries: Sequence[ColumnSummary],
) -> Iterator[tuple[ColumnSummary, str]]:
    """Yield possible labels with the reason, the most likely first."""
    candidates = [summary for summary in summaries if can_be_label(summary)]
    for word in LABEL_WORDS:
        for summary in reversed(candidates):
            if split_words(summary.name)[-1] == word:
                yield summary, "named like a class"
    for place, ends in (("last", summaries[-1:]), ("first", summaries[:1])):
        for summary in ends:
            if summary in candidates and (not summary.is_numeric or summary.distinct <= MAX_CODES):
                yield summary, f"the {place} column, with few different values"


def can_be_label(summary: ColumnSummary) -> bool:
    """Return whether the values may be classes."""
    is_class = is_category(summary) or summary.is_whole or summary.kind == "boolean"
    return is_class and not is_date(summary) and 2 <= summary.distinct <= MAX_CLASSES


def is_extreme(summary: ColumnSummary) -> bool:
    """Return whether numbers are too large or too small to compute with."""
    ends = [abs(value) for value in (summary.least, summary.most) if value]
    return max(ends, default=1) > MAX_NUMBER or min(ends, default=1) < MIN_NUMBER


# The first that applies excludes a column.
OBSTACLES: dict[str, Callable[[ColumnSummary], bool]] = {
    "nested or binary values": lambda s: s.kind == "other",
    "empty": lambda s: s.filled == 0,
    "a date, which is not released itself": lambda s: has_iso_dates(s),
    "a date or time that is not written as YYYY-MM-DD, from which years could be derived": (
        lambda s: is_date(s)
    ),
    "the same value in every row": lambda s: s.is_constant,
    "codes with leading zeros, not numbers": lambda s: s.is_numeric and s.leading_zeros > 0,
    "more than half of its cells are empty": lambda s: s.is_numeric and 2 * s.filled < s.rows,
    "numbers too large or too small to compute with": lambda s: s.is_numeric and is_extreme(s),
    "numbers with NaN or infinity among them: leave such cells empty in the source": (
        lambda s: 0 < s.not_finite == s.filled - s.numbers
    ),
    "numbers with words for missing ones: leave such cells empty in the source": (
        lambda s: 0 < s.numbers < s.filled <= s.numbers + s.spelled_missing
    ),
    "numbers with units, separators or words: write plain numbers in the source": (
        lambda s: not s.is_numeric and 2 * s.like_numbers >= s.filled
    ),
    f"more than {MAX_CLASSES} categories: group them in the source": (
        lambda s: is_category(s) and s.distinct > MAX_CLASSES
    ),
    "categories, of which too few are shared by ten records: group them in the source": is_category,
    "free text": lambda s: not s.is_numeric,
}


def draft_value_column(
    db: duckdb.DuckDBPyConnection, table: str, summary: ColumnSummary
) -> Drafted:
    """Return the column as a feature, or excluded with the reason."""
    if can_be_category(summary):
        found = draft_category(db, table, summary)
        if found is not None:
            return found
    for why, applies in OBSTACLES.items():
        if applies(summary):
            return Drafted(Column(summary.name, "exclude"), why)
    column = Column(summary.name, "feature", "numeric", "from_data", "from_data")
    if summary.filled < summary.rows:
        return Drafted(replace(column, missing="median"), "numbers, some cells are empty")
    return Drafted(column, "numbers")


def can_be_category(summary: ColumnSummary) -> bool:
    """Return whether a value is a category: text, true or false, codes, or one of two numbers."""
    if is_date(summary) or summary.filled == 0 or summary.is_constant:
        return False
    is_text = is_category(summary) and 2 * summary.like_numbers < summary.filled
    is_coded = summary.is_numeric and summary.leading_zeros > 0
    is_flag = summary.is_whole and summary.distinct == 2
    return is_text or is_coded or is_flag or summary.kind == "boolean"


def draft_category(
    db: duckdb.DuckDBPyConnection, table: str, summary: ColumnSummary
) -> Drafted | None:
    """Return a categorical feature with the categories that enough records hold, if two do."""
    records = count_categories(db, table, summary.name, MAX_CATEGORIES)
    listed = tuple(name for name, count in records.items() if count >= MIN_CATEGORY_RECORDS)
    is_printable = all(name.strip() and name.isprintable() for name in listed)
    if not 2 <= len(listed) <= MAX_CLASSES or not is_printable:
        return None
    column = Column(
        summary.name,
        "feature",
        "categorical",
        categories=listed,
        outside=OTHER if len(listed) < len(records) else "reject",
        missing="keep" if summary.filled < summary.rows else "reject",
    )
    return Drafted(column, "categories")
