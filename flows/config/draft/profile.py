"""What a table looks like to somebody who must write a release file for it.

Looks at every column, guesses its role, and makes sure that the guesses get through validation.
Nothing of the cells is passed on but names of categories that enough records hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flows.config.draft.basis import choose_basis
from flows.config.draft.roles import Drafted, find_identifiers, find_label, value_column
from ppdm_core.model.errors import BadInput, Defect
from tasks.ingest.expectations import checks_of
from tasks.progress import log_progress
from warehouse.column_summary import Sketch, sketch
from warehouse.columns import Column, Source
from warehouse.database import scratch
from warehouse.raw_profile import profile
from warehouse.sources import SOURCES

if TYPE_CHECKING:
    import duckdb

TABLE = "main.source"
METHOD = "pca_laplace"


@dataclass(frozen=True)
class Draft:
    columns: tuple[Drafted, ...]  # in the order of the source
    record_id: str | None
    basis: str
    components: int

    def of(self, role: str) -> tuple[Drafted, ...]:
        return tuple(each for each in self.columns if each.column.role == role)

    @property
    def label(self) -> Drafted | None:
        return next(iter(self.of("label")), None)


def draft_source(source: Source) -> Draft:
    """Reads the source into memory, drafts roles for its columns, and keeps nothing."""
    log_progress("reading the source")
    with scratch() as db:
        SOURCES[source.kind].load(db, source, TABLE)
        log_progress("looking at its columns")
        sketches = sketch(db, TABLE)
        if source.kind == "csv":
            check_header_line(sketches, source)
        found, record_id = find_identifiers(db, TABLE, sketches)
        found |= find_label(db, TABLE, [each for each in sketches if each.name not in found])
        columns = [found.get(each.name) or value_column(each) for each in sketches]
        columns = settled(db, columns, record_id)
        if all(each.column.role != "feature" for each in columns):
            raise nothing_to_release(source)
        declared = tuple(each.column for each in columns)
        basis, components = choose_basis(db, TABLE, declared, record_id)
    return Draft(tuple(columns), record_id, basis, components)


def check_header_line(sketches: Sequence[Sketch], source: Source) -> None:
    """Without a header the first record would be taken for names, and written down."""
    cells = [each for each in sketches if is_number(each.name) or each.own_name]
    if 2 * len(cells) > len(sketches):
        raise BadInput(
            f"The source {Path(source.path).name} looks as if it had no header.",
            file=source.path,
            remedy="Give every column a name in the first line, one that is not a number.",
        )


def is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def settled(
    db: duckdb.DuckDBPyConnection, columns: list[Drafted], record_id: str | None
) -> list[Drafted]:
    """The columns without those that validation would refuse.

    Rows that a label drops may leave a feature constant.
    """
    for _ in range(len(columns) + 1):
        declared = tuple(each.column for each in columns)
        counts = profile(db, TABLE, declared, record_id)
        checks = checks_of(counts, declared, record_id, "")
        failed = {check.column for check in checks if not check.holds(counts)}
        if not failed:
            return columns
        columns = [without(each) if each.name in failed else each for each in columns]
    raise Defect("A drafted release does not get through validation.")


def without(drafted: Drafted) -> Drafted:
    return Drafted(Column(drafted.name, "exclude"), "constant in the rows that are kept")


def nothing_to_release(source: Source) -> BadInput:
    from ppdm_core.sanitizers import SANITIZERS

    takes = " or ".join(sorted(SANITIZERS[METHOD].accepts))
    return BadInput(
        f"No column of {Path(source.path).name} can be released: method '{METHOD}' takes {takes} "
        "columns, and none has numbers that vary.",
        file=source.path,
        remedy="Add numbers to the source: ages, amounts, counts, or 0 and 1 for yes and no.",
    )
