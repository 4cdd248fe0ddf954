"""What the home holds of a dataset, as the next release will read it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ppdm_core.numerics.noise import Noise
from tasks.audit.self_test import name_version, read_leak_tests
from tasks.context import ReleaseContext
from tasks.ingest.record_ids import check_record_id
from tasks.ingest.stored_bounds import apply_published_bounds
from warehouse.code_version import compute_code_version
from warehouse.columns import Column
from warehouse.database import list_runs
from warehouse.home import Home
from warehouse.integrity.dataset_key import get_key_file
from warehouse.integrity.home_key import find_home_fingerprint
from warehouse.ledger.drawn_records import DrawnRecords, read_drawn_records
from warehouse.stage_facts import SanitizedFacts, read_published_facts
from warehouse.stored_fits import Fit, read_fits
from warehouse.transaction import Transaction

NO_RECORDS = DrawnRecords(np.zeros(0, dtype=np.uint64))
KEY_BYTES = 32


@dataclass(frozen=True, eq=False)
class HomeState:
    """What the next release of a dataset starts from."""

    columns: tuple[Column, ...]  # with the bounds that earlier releases published
    noise: Noise  # of the dataset; of a random key if it has none yet
    number: int = 1  # of the next run
    is_new: bool = True  # no release was made in this home
    has_key: bool = False  # else nothing of the dataset was drawn yet
    published: tuple[SanitizedFacts, ...] = ()
    fits: tuple[Fit, ...] = ()
    drawn: DrawnRecords = NO_RECORDS
    tested: frozenset[str] = frozenset()  # attacks that this code was tested with in this home


def read_home_state(context: ReleaseContext) -> HomeState:
    """Return what the home holds; nothing is written, and a new home is not made."""
    empty = HomeState(context.columns, Noise(secrets.token_bytes(KEY_BYTES)))
    if not Home(Path(context.home)).database.exists():
        return empty
    with context.open_store().transaction(f"{context.dataset} check") as db:
        if find_home_fingerprint(db) is None:  # reading sealed rows would make the key
            return empty
        return read_dataset_state(db, context, empty)


def read_dataset_state(db: Transaction, context: ReleaseContext, empty: HomeState) -> HomeState:
    """Return what a home with a key holds of the dataset."""
    check_record_id(db, context)
    key = get_key_file(db, context.dataset)
    return HomeState(
        columns=apply_published_bounds(db, context.dataset, context.columns),
        noise=empty.noise if key.known is None else Noise(key.read()),
        number=1 + max((run.number for run in list_runs(db, context.dataset)), default=0),
        is_new=False,
        has_key=key.known is not None,
        published=tuple(read_published_facts(db, context.dataset, SanitizedFacts)),
        fits=tuple(read_fits(db, context.dataset)),
        drawn=read_drawn_records(db, context.dataset),
        tested=frozenset(read_leak_tests(db, name_version(compute_code_version()))),
    )
