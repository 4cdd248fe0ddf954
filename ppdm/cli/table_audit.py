"""The audit of a release in files: no release file, no warehouse, nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ppdm.csv_spelling import note_spelling
from ppdm.policies import SYNTHETIC_POLICY, load_policy
from ppdm_core.model.errors import BadInput
from ppdm_core.model.policy import Policy
from ppdm_core.model.score import AuditReport
from ppdm_core.two_tables.comparison import TableComparison, compare_tables
from ppdm_core.two_tables.runner import (
    SEED,
    TableAuditor,
    add_comparison,
    choose_table_audits,
    inform_attacker,
)
from ppdm_core.two_tables.tables import Table
from tasks.audit.attack_process import run_attacks
from tasks.audit.attack_worker import AttackJob
from tasks.progress import Step, start_step

if TYPE_CHECKING:
    from ppdm_core.audit.auditor import Auditor

TABLE_SEPARATOR = "::"  # between a DuckDB file and its table


@dataclass(frozen=True)
class AuditedFiles:
    """The files of an audit.

    A number for ``known`` or ``sample`` is how many records of the original the attacker gets.
    """

    original: str
    released: str
    control: str | None = None
    known: str | float | None = None
    sample: str | float | None = None
    aligned: bool | None = None  # None: aligned if the numbers of rows are equal
    label: str | None = None


@dataclass(frozen=True, eq=False)
class TablesJob(AttackJob):
    """A job that carries its tables in the message itself, so that no file holds them."""

    comparison: TableComparison

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.comparison.truth.X.shape
        return n, d

    @property
    def draws(self) -> int:
        return 1 if self.comparison.all_persons is None else 2

    def make_auditor(self) -> Auditor:
        return TableAuditor(self.comparison, self.policy, self.seed)


def audit_files(
    files: AuditedFiles, policy_file: Path | None
) -> tuple[TableComparison, Policy, AuditReport]:
    """Read the files and run every attack that they allow.

    Return the comparison, the policy and the report. Without a policy file, the default one is
    taken, or the one for synthetic data if the numbers of rows differ.
    """
    policy = load_policy(policy_file)
    start_step(Step.READ)
    comparison = read_comparison(files)
    if policy_file is None and not comparison.aligned:
        policy = load_policy(SYNTHETIC_POLICY)
    known = files.known if isinstance(files.known, float) else None
    sample = files.sample if isinstance(files.sample, float) else None
    policy = replace(policy, attacker=inform_attacker(policy.attacker, comparison, known, sample))
    names, not_run = choose_table_audits(comparison, policy)
    job = TablesJob(policy, SEED, comparison)
    report = run_attacks(job, names, lambda share: None)
    return comparison, policy, add_comparison(report, comparison, not_run)


def read_comparison(files: AuditedFiles) -> TableComparison:
    """Return the comparison of the original with the released table."""

    def read_optional(path: str | float | None) -> Table | None:
        return read_table(path, files.label) if isinstance(path, str) else None

    return compare_tables(
        read_table(files.original, files.label),
        note_spelling(read_table(files.released, files.label), Path(files.released)),
        control=read_optional(files.control),
        known=read_optional(files.known),
        sample=read_optional(files.sample),
        aligned=files.aligned,
        label=files.label,
    )


def read_table(path: str, label: str | None) -> Table:
    """Return the table in a file; ``FILE::TABLE`` names a table of a DuckDB file."""
    from warehouse.sources.guess import guess_source
    from warehouse.sources.table_reader import read_table_columns

    name, _, table = path.partition(TABLE_SEPARATOR)
    source = guess_source(name, table or None, f"as FILE{TABLE_SEPARATOR}TABLE")
    try:
        return Table(Path(name).name, read_table_columns(source, label))
    except BadInput as error:
        remedy = f"Give a table that can be read, in a file or as FILE{TABLE_SEPARATOR}TABLE."
        raise BadInput(
            error.message, file=error.file or name, column=error.column, remedy=remedy
        ) from None
