"""The name of every table of the warehouse.

    meta        runs, events, facts of each step, authors, reviewers' keys, the key of the home
    raw         one table for each run: the source as it was read
    validated   one table for each run: checked numbers and codes
    sanitized   two tables for each run: the candidate, and what it draws of which record
    audit       scores, verdicts, decisions, tunes, digests of the records of earlier tables
    ledger      what was drawn of which record
    published   versions, and the released rows by record key

The tables of a run in `raw`, `validated` and `sanitized` are dropped when the run is old or ends
without a release. `TABLE_SUFFIX` must match every suffix that is used below.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warehouse.database import Run

DATASETS = "meta.dataset"
RUNS = "meta.run"
EVENTS = "meta.event"
FACTS = "meta.fact"
FITS = "meta.fitted"
AUTHORS = "meta.author"
REVIEWERS = "meta.reviewer"
HOME_KEYS = "meta.home_key"
MIGRATIONS = "meta.migration"
SCORES = "audit.score"
VERDICTS = "audit.verdict"
DECISIONS = "audit.decision"
PENDING_FILES = "audit.waiting"  # release files of what awaits a decision
SELF_TESTS = "audit.self_test"
TUNES = "audit.tune"
SKETCHES = "audit.sketch"
STORED_RECORDS = "audit.record"
STORED_VALUES = "audit.record_value"
VERSIONS = "published.version"
LEDGER_ENTRIES = "ledger.entry"
LEDGER_CHARGES = "ledger.charge"

RUN_SCHEMAS = ("raw", "validated", "sanitized")  # of tables that are dropped with their run
# The name of a run ends in four digits. The suffix is exact, because the names of two datasets may
# start with each other, such as "a" and "a_0001".
TABLE_SUFFIX = re.compile(r"(_draws|_candidate)$")


def raw_table(run: Run) -> str:
    """Return the raw table of a run."""
    return f'raw."{run.table}"'


def validated_table(run: Run) -> str:
    """Return the validated table of a run."""
    return f'validated."{run.table}"'


def candidate_table(run: Run) -> str:
    """Return the table of a run's candidate."""
    return f'sanitized."{run.table}_candidate"'


def draws_table(run: Run) -> str:
    """Return the table of what the candidate draws of which record, for the ledger."""
    return f'sanitized."{run.table}_draws"'


def published_rows_table(run: Run) -> str:
    """Return the table of the released rows by record key; it is never dropped."""
    return f'published."{run.table}"'


def is_table_of(name: str, runs: set[str]) -> bool:
    """Return whether a table of ``RUN_SCHEMAS`` belongs to one of the runs, given by name."""
    return TABLE_SUFFIX.sub("", name) in runs
