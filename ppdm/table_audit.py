"""Audit a release that any tool made, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ppdm_core.model.policy import Policy
from ppdm_core.model.score import AuditReport, Score
from ppdm_core.model.verdict import Finding, Outcome

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    # A path to a CSV or Parquet file, a data frame, an array, or a dict of columns.
    TableLike: TypeAlias = str | Path | pd.DataFrame | ArrayLike | Mapping[str, ArrayLike]


@dataclass(frozen=True)
class Report:
    """What the attacks achieved, and the verdict of the policy."""

    verdict: Outcome  # "PASS", "REVIEW" or "FAIL"
    findings: tuple[Finding, ...]  # of each check of the policy
    scores: tuple[Score, ...]
    skipped: Mapping[str, str]  # attack or metric that does not apply: why
    not_run: Mapping[str, str]  # attack or metric that was not tried: why
    failed: Mapping[str, str]  # attack or metric: the type of its error

    def find_score(self, name: str) -> Score | None:
        """Return a score by its name, such as "record_linkage.rate", or None."""
        return next((score for score in self.scores if score.name == name), None)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each score: value, interval, baseline and number of records."""
        import pandas as pd

        figures = ("value", "low", "high", "baseline", "n", "sentence")
        rows = [{each: getattr(score, each) for each in figures} for score in self.scores]
        return pd.DataFrame(rows, index=[score.name for score in self.scores], columns=figures)


def audit(
    original: TableLike,
    released: TableLike,
    *,
    control: TableLike | None = None,
    known_records: TableLike | int | None = None,
    sample: TableLike | float | None = None,
    aligned: bool | None = None,
    label: str | None = None,
    policy: str | Path | Policy | None = None,
) -> Report:
    """Attack a released table, knowing the original one, and judge it by a policy.

    Tables are paths to CSV or Parquet files, data frames, arrays, or dicts of columns.

    ``control``: records that are not in the release; without them the default policy gives REVIEW
    at best. ``known_records``: how many records the attacker knows, or a table of them.
    ``sample``: a sample of the population, as a number, a share below 1, or a table. ``aligned``:
    row i of one table is row i of the other; None: it is, if both have equally many rows.
    ``label``: the column that holds the class. ``policy``: a policy file; the default one is
    ``ppdm/default_policy.toml``, or ``ppdm/synthetic_policy.toml`` if the numbers of rows differ.

    The attacks run in this process, so that the time limit of the policy does not stop one that
    takes too long. `ppdm audit` runs them in another process, which is killed at the limit.

    >>> report = ppdm.audit(original, original + 0.001, policy="quick.toml")
    >>> report.verdict
    'FAIL'
    >>> report.find_score("record_linkage.rate").value
    1.0
    """
    from ppdm.csv_spelling import note_spelling
    from ppdm.policies import SYNTHETIC_POLICY, load_policy
    from ppdm_core.settings.policy_text import check_policy
    from ppdm_core.two_tables.judge import judge_tables
    from ppdm_core.two_tables.runner import audit_tables
    from ppdm_core.two_tables.tables import as_table

    tables = [read_if_path(each, label) for each in (original, released)]
    if isinstance(released, str | Path):
        tables[1] = note_spelling(tables[1], Path(released))
    if isinstance(policy, Policy):
        check_policy(policy)
    else:
        n, m = (as_table("table", each).n for each in tables)
        default = None if n == m else SYNTHETIC_POLICY
        policy = load_policy(default if policy is None else Path(policy))
    found = audit_tables(
        *tables,
        control=read_if_path(control, label),
        known_records=read_if_path(known_records, label),
        sample=read_if_path(sample, label),
        aligned=aligned,
        label=label,
        policy=policy,
    )
    return build_report(found, *judge_tables(found, policy))


def build_report(found: AuditReport, verdict: Outcome, findings: tuple[Finding, ...]) -> Report:
    """Return the report of an audit, with reasons as sentences."""
    return Report(
        verdict=verdict,
        findings=findings,
        scores=found.scores,
        skipped={name: skip.sentence for name, skip in found.skipped.items()},
        not_run={name: skip.sentence for name, skip in found.not_run.items()},
        failed=found.failed,
    )


def read_if_path(given: Any, label: str | None) -> Any:
    """Return the table in a file if a path is given, and anything else as it is."""
    from ppdm.table_files import read_table

    return read_table(Path(given), label) if isinstance(given, str | Path) else given
