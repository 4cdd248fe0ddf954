"""The audit of files that some other tool made: no release file, no warehouse, nothing written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Policy
from ppdm_core.model.score import AuditReport
from ppdm_core.two_tables.comparison import Case, make_case
from ppdm_core.two_tables.runner import SEED, TablesAuditor, informed, to_run
from ppdm_core.two_tables.tables import Table
from tasks.audit.attack_process import play
from tasks.audit.attack_worker import Job
from tasks.progress import log_progress

if TYPE_CHECKING:
    import duckdb

    from ppdm_core.audit.runner import Auditor

TABLE = "main.source"
CHOICE = "::"  # between a DuckDB file and its table


@dataclass(frozen=True)
class Files:
    """What somebody named. Numbers say how many records the attacker is given of the original."""

    original: str
    released: str
    control: str | None = None
    known: str | float | None = None
    sample: str | float | None = None
    aligned: bool = True
    label: str | None = None


@dataclass(frozen=True, eq=False)
class TablesJob(Job):
    """The evidence travels in the message itself, so that no file holds it."""

    case: Case | None = None

    def shape(self) -> tuple[int, ...]:
        assert self.case is not None
        return self.case.truth.X.shape

    def auditor(self) -> Auditor:
        assert self.case is not None
        return TablesAuditor(self.case, self.policy, self.seed)


def audit_files(files: Files, policy: Policy) -> tuple[Case, AuditReport]:
    log_progress("reading the files")
    case = read_case(files)
    known = files.known if isinstance(files.known, float) else None
    sample = files.sample if isinstance(files.sample, float) else None
    policy = replace(policy, attacker=informed(policy.attacker, case, known, sample))
    names, reasons = to_run(case, policy)
    job = TablesJob("", 1, 0 if case.everybody is None else 1, policy, SEED, case=case)
    report = play(job, names, lambda share: None)
    report = replace(report, unread=case.unread, copied=case.copied, doubts=case.doubts)
    return case, replace(report, not_run=tuple(reasons), reasons=reasons)


def read_case(files: Files) -> Case:
    def table(path: str | float | None) -> Table | None:
        return read_table(path, files.label) if isinstance(path, str) else None

    return make_case(
        read_table(files.original, files.label),
        read_table(files.released, files.label),
        control=table(files.control),
        known=table(files.known),
        sample=table(files.sample),
        aligned=files.aligned,
        label=files.label,
    )


def read_table(path: str, label: str | None) -> Table:
    from warehouse.database import scratch
    from warehouse.sources import SOURCES
    from warehouse.sources.guess import source_at

    name, _, chosen = path.partition(CHOICE)
    try:
        source = source_at(name, chosen or None)
        with scratch() as db:
            SOURCES[source.kind].load(db, source, TABLE)
            return Table(Path(name).name, read_columns(db, label))
    except BadInput as error:
        raise in_our_words(error, name) from None


def read_columns(db: duckdb.DuckDBPyConnection, label: str | None) -> dict[str, NDArray[Any]]:
    from warehouse.sql import ROW, column_types, number, quoted, text

    found: dict[str, NDArray[Any]] = {}
    for name, type_name in column_types(db, TABLE).items():
        cell = number(name, type_name)
        counts = f"select count({cell}), count({quoted(name)}) from {TABLE}"
        numbers, filled = db.execute(counts).fetchall()[0]
        # A column is one of numbers if most of its cells are; the others will be complained about.
        is_numeric = 2 * numbers > filled and name != label
        cell = f"coalesce({cell}, 'nan'::double)" if is_numeric else f"coalesce({text(name)}, '')"
        rows = db.execute(f"select {cell} as cell from {TABLE} order by {ROW}").fetchnumpy()
        found[name] = np.asarray(rows["cell"], dtype=np.float64 if is_numeric else object)
    return found


def in_our_words(error: BadInput, path: str) -> BadInput:
    """There is no [source] section to correct here."""
    remedy = (error.remedy or "").replace("with --table", f"as FILE{CHOICE}TABLE")
    if "[source]" in remedy or "--table" in remedy:
        remedy = f"Give a CSV, Parquet or DuckDB file (FILE{CHOICE}TABLE) with a header and rows."
    return BadInput(error.message, file=error.file or path, column=error.column, remedy=remedy)
