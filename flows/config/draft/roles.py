"""Guesses at the roles of columns that nobody has described yet.

Whatever may name a person is kept back, and what no method takes is left out with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.column_summary import Sketch, follows_the_rows, holders, is_unique
from warehouse.columns import Column

if TYPE_CHECKING:
    import duckdb

FEWEST_HOLDERS = 10  # a category of fewer records is not written into any file
MOST_CLASSES = 30
MOST_CODES = 10  # whole numbers that are not named like a class
MOST_CATEGORIES = 100  # text with more different values is no category
MOST_DROPPED = 0.1  # share of the rows that a label may cost
LONGEST_CATEGORY = 60
LONGEST_ID = 64
LARGEST, SMALLEST = 1e100, 1e-100  # beyond them squares leave the range of a float

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
    column: Column
    why: str  # for people

    @property
    def name(self) -> str:
        return self.column.name


def words_of(name: str) -> list[str]:
    """patientID, patient_id and "Patient ID" are the same two words."""
    return [word.lower() for word in WORDS.findall(name)] or [""]


def find_identifiers(
    db: duckdb.DuckDBPyConnection, table: str, sketches: Sequence[Sketch]
) -> tuple[dict[str, Drafted], str | None]:
    """Columns that name a record, and the one that seems to do so stably."""
    found: dict[str, Drafted] = {}
    stable: list[tuple[bool, str]] = []
    for position, each in enumerate(sketches):
        if each.kind in ("date", "other") or each.filled == 0:
            continue
        words = words_of(each.name)
        is_named = words[-1] in ID_WORDS or words[0] == "id"
        about_people = bool(PERSON_WORDS & set(words)) and not is_category(each)
        is_own = may_be_unique(each) and is_unique(db, table, each.name)
        if is_named or about_people:
            why = "named like an identifier" if is_named else "named like personal data"
        elif is_own and (is_code(each) or is_serial(each, words, position)):
            why = "every value is different"
        else:
            continue
        found[each.name] = Drafted(Column(each.name, "identifier"), why)
        is_exact = each.kind != "float" and (each.is_whole or not each.is_numeric)
        is_stable = is_named or not follows_the_rows(db, table, each.name)
        if is_own and is_exact and is_stable and not about_people:
            stable.append((not is_named, each.name))
    return found, min(stable, default=(False, None), key=lambda each: each[0])[1]


def may_be_unique(each: Sketch) -> bool:
    return each.filled == each.rows and each.distinct > 0.8 * each.rows


def is_code(each: Sketch) -> bool:
    """Short text without spaces; prose and dates are different in every row, too."""
    if each.kind != "text" or each.is_numeric or is_date(each):
        return False
    is_short = each.spaced == 0 and each.longest <= LONGEST_ID
    return is_short and 2 * each.like_numbers < each.filled


def is_serial(each: Sketch, words: Sequence[str], position: int) -> bool:
    """Whole numbers that are too dense to differ by chance, or stand where ids stand."""
    if not each.is_whole or is_date(each):
        return False
    span = each.most - each.least
    many = each.rows >= 100
    return (
        span == each.rows - 1
        or words[-1] in WEAK_ID_WORDS
        or (many and (span < 10 * each.rows or position == 0))
    )


def is_date(each: Sketch) -> bool:
    if each.kind == "date":
        return True
    return each.dates >= (each.filled if each.is_numeric else max(1, each.filled / 2))


def is_category(each: Sketch) -> bool:
    few = each.distinct <= min(MOST_CATEGORIES, each.rows / 2)
    return each.kind == "text" and not each.is_numeric and few and each.longest <= LONGEST_CATEGORY


def find_label(
    db: duckdb.DuckDBPyConnection, table: str, sketches: Sequence[Sketch]
) -> dict[str, Drafted]:
    """The column that looks most like a class, if there is one."""
    for each, why in label_candidates(sketches):
        records = holders(db, table, each.name, MOST_CLASSES)
        classes = tuple(name for name, count in records.items() if count >= FEWEST_HOLDERS)
        covered = sum(records[name] for name in classes)
        is_plain = all(name.strip() and name.isprintable() for name in classes)
        if len(classes) < 2 or not is_plain or covered < (1 - MOST_DROPPED) * each.rows:
            continue
        column = Column(
            each.name,
            "label",
            "categorical",
            categories=classes,
            outside="drop_row" if len(classes) < len(records) else "reject",
            missing="drop_row" if each.filled < each.rows else "reject",
        )
        return {each.name: Drafted(column, why)}
    return {}


def label_candidates(sketches: Sequence[Sketch]) -> Iterator[tuple[Sketch, str]]:
    fit = [each for each in sketches if may_be_label(each)]
    for word in LABEL_WORDS:
        for each in reversed(fit):
            if words_of(each.name)[-1] == word:
                yield each, "named like a class"
    for place, ends in (("last", sketches[-1:]), ("first", sketches[:1])):
        for each in ends:
            if each in fit and (not each.is_numeric or each.distinct <= MOST_CODES):
                yield each, f"the {place} column, with few different values"


def may_be_label(each: Sketch) -> bool:
    is_class = is_category(each) or each.is_whole or each.kind == "boolean"
    return is_class and not is_date(each) and 2 <= each.distinct <= 1.2 * MOST_CLASSES


def value_column(each: Sketch) -> Drafted:
    """A feature, or the reason why it cannot be one."""
    why = obstacle(each)
    if why:
        return Drafted(Column(each.name, "exclude"), why)
    column = Column(each.name, "feature", "numeric", "from_data", "from_data")
    if each.filled < each.rows:
        return Drafted(replace(column, missing="median"), "numbers, some cells are empty")
    return Drafted(column, "numbers")


def obstacle(each: Sketch) -> str | None:
    if each.kind == "other":
        return "nested or binary values"
    if each.filled == 0:
        return "empty"
    if is_date(each):
        return "a date or time: derive an age, a duration or a year in the source"
    if each.is_constant:
        return "the same value in every row"
    return number_obstacle(each) if each.is_numeric else text_obstacle(each)


def number_obstacle(each: Sketch) -> str | None:
    extremes = [abs(value) for value in (each.least, each.most) if value]
    if each.leading_zeros:
        return "codes with leading zeros, not numbers"
    if 2 * each.filled < each.rows:
        return "more than half of its cells are empty"
    if max(extremes) > LARGEST or min(extremes) < SMALLEST:
        return "numbers too large or too small to compute with"
    return None


def text_obstacle(each: Sketch) -> str:
    if each.kind == "boolean":
        return f"true or false, {categories_are_for()}: write 0 and 1 in the source"
    if each.not_finite and each.numbers + each.not_finite == each.filled:
        return "numbers with NaN or infinity among them: leave such cells empty in the source"
    if each.numbers and each.numbers + each.spelled_missing >= each.filled:
        return "numbers with words for missing ones: leave such cells empty in the source"
    if 2 * each.like_numbers >= each.filled:
        return "numbers with units, separators or words: write plain numbers in the source"
    if is_category(each):
        return f"categories, {categories_are_for()}: derive numbers in the source"
    return "free text"


def categories_are_for() -> str:
    from ppdm_core.sanitizers import SANITIZERS

    takers = [name for name, method in SANITIZERS.items() if "categorical" in method.accepts]
    return f"which only {' and '.join(takers)} can take" if takers else "which no method takes yet"
