"""What earlier tables of the home say about a release: findings beside those of the gates."""

from __future__ import annotations

from collections.abc import Sequence

from ppdm_core.model.verdict import Finding
from warehouse.audit_results import find_id_counts, find_open_refusals, find_rejections
from warehouse.database import Run
from warehouse.transaction import Transaction
from warehouse.tunes import Records, count_tried_settings

# Names of checks.
EARLIER_REFUSALS, RECORD_IDS, TUNES = "earlier_refusals", "record_ids", "tunes"
MAX_NAMES = 3  # of releases in a sentence
MIN_RENUMBERED = 3  # records; fewer may be coincidences
MIN_RENUMBERED_SHARE = 0.5  # of the records with unknown ids


def judge_earlier_refusals(db: Transaction, run: Run, data: str) -> tuple[Finding, ...]:
    """Return a finding if the last verdict on the same data was not a PASS.

    Settings must not be tried until they pass, whichever method, file, code or name of the dataset
    is used: a reviewer decides. A release that a person rejected stays rejected. ``data`` is the
    digest of the records.
    """
    rejected = find_rejections(db, run, data)
    if rejected:
        why = f"A person rejected the same release of the same data ({list_names(rejected)})."
        return (Finding(EARLIER_REFUSALS, "FAIL", why, observed=f"{len(rejected)} rejected"),)
    refused = find_open_refusals(db, run)
    if not refused:
        return ()
    why = (
        f"The same data did not pass before ({list_names(refused)}), and no release of them was "
        "approved since. A reviewer decides."
    )
    observed = f"{len(refused)} did not pass"
    return (Finding(EARLIER_REFUSALS, "REVIEW", why, observed=observed),)


def judge_record_ids(db: Transaction, run: Run) -> tuple[Finding, ...]:
    """Return a finding if records come again with other ids, so that the ledger begins anew."""
    found = find_id_counts(db, run.release_id)
    if found.renumbered < max(MIN_RENUMBERED, MIN_RENUMBERED_SHARE * found.unknown):
        return ()
    share = f"{100 * found.renumbered / found.unknown:.0f} %"
    why = (
        f"Of the records with new ids, {share} have the values of records of earlier releases "
        "whose ids are gone. The ledger takes them for other records and does not add up what was "
        "released of them. Give every record the id that it had; otherwise a reviewer decides."
    )
    return (Finding(RECORD_IDS, "REVIEW", why, observed=f"{share} renumbered"),)


def judge_tunes(db: Transaction, run: Run, data: str, may_tune: bool) -> tuple[Finding, ...]:
    """Return a finding if settings were tried on the data and the policy forbids that."""
    records = Records(data, run.source_digest)
    tried = 0 if may_tune else count_tried_settings(db, run.dataset, records)
    if not tried:
        return ()
    why = (
        f"The policy forbids to choose settings on the data, and a tune tried {tried} of them. A "
        "reviewer decides."
    )
    return (Finding(TUNES, "REVIEW", why, observed=f"{tried} tried", limit="no tune"),)


def list_names(names: Sequence[str]) -> str:
    """Return the last names of a list, and how many there are before."""
    more = len(names) - MAX_NAMES
    last = ", ".join(names[-MAX_NAMES:])
    return f"{last} and {more} earlier" if more > 0 else last
