"""The ledger against a plain model of it, against an independent recount, and under tampering."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ppdm_core.model.errors import Refused
from ppdm_core.model.ledger import LedgerBalance
from warehouse.clock import now
from warehouse.database import Change, Run, Store
from warehouse.home import Home
from warehouse.ledger.balance import ALL_RECORDS, LedgerScope, compute_balance
from warehouse.ledger.entries import check_ledger, store_draws, store_entry
from warehouse.stages import Stage
from warehouse.transaction import Transaction

Line = tuple[int, int, float]  # record, draw, ln gamma
ENTRY = count(1)
LN_2, LN_3 = math.log(2.0), math.log(3.0)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    home = Home(tmp_path_factory.mktemp("ledger") / "home")
    home.create()
    return Store(home)


@pytest.fixture
def db(store: Store) -> Iterator[Transaction]:
    """One transaction, which is rolled back."""

    class Undo(Exception):
        pass

    try:
        with store.transaction() as connection:
            yield connection
            raise Undo
    except Undo:
        pass


def release(
    db: Transaction, lines: Iterable[Line], terms: LedgerScope, released: int | None = None
) -> tuple[LedgerBalance, str]:
    """A release that draws this: its account, and whether it was charged."""
    run = next_run(terms.dataset)
    records, draws, figures = (list(column) for column in zip(*lines, strict=True))
    table = pa.table(
        {
            "record": np.array(records, dtype=np.uint64),
            "draw_high": np.array(draws, dtype=np.uint64),
            "draw_low": np.array(draws, dtype=np.uint64) + np.uint64(7),
            "ln_gamma": np.array(figures, dtype=np.float64),
        }
    )
    store_draws(db, run, table)
    account = compute_balance(db, run, terms, len(set(records)) if released is None else released)
    assert account is not None
    is_over = account.after > terms.ln_limit or account.draws_after > terms.draw_limit
    kind = "refused" if is_over else "charged"
    store_entry(Change(db, {}, Stage.REFUSED), run, terms, account, kind)
    return account, kind


def next_run(dataset: str) -> Run:
    number = next(ENTRY)
    name = f"{dataset}-{number:04d}"
    return Run(name, dataset, number, "s", "f", "c", Stage.AUDITED, 1, None, now())


def figures(account: LedgerBalance) -> tuple[float, float, float, int]:
    return account.spent, account.asked, account.after, account.records


TERMS = LedgerScope("wine", "partners", "pca_laplace")


def test_balance_repeat_free_changed_record_charged_once(db) -> None:
    first, _ = release(db, [(1, 11, LN_2), (2, 21, LN_2)], TERMS)
    again, _ = release(db, [(1, 11, LN_2), (2, 21, LN_2)], TERMS)
    changed, _ = release(db, [(1, 11, LN_2), (2, 22, LN_2)], TERMS)
    back, _ = release(db, [(1, 11, LN_2), (2, 21, LN_2)], TERMS)
    assert figures(first) == (0.0, LN_2, LN_2, 2)
    assert figures(again) == (LN_2, 0.0, LN_2, 0)
    assert figures(changed) == (LN_2, LN_2, pytest.approx(2 * LN_2), 1)
    assert figures(back) == (pytest.approx(2 * LN_2), 0.0, pytest.approx(2 * LN_2), 0)
    assert charges(db) == [(1, 11), (2, 21), (2, 22)]


def charges(db: Transaction) -> list[tuple[int, int]]:
    query = "select record, draw_high from ledger.charge order by all"
    return [(record, draw) for record, draw in db.execute(query).fetchall()]


def test_balance_most_exposed_record_not_in_release(db) -> None:
    release(db, [(1, 11, LN_3)], TERMS)
    release(db, [(1, 12, LN_3), (2, 21, LN_3)], TERMS)
    account, _ = release(db, [(2, 22, LN_2)], TERMS)
    assert figures(account) == (pytest.approx(2 * LN_3), LN_2, pytest.approx(2 * LN_3), 1)


def test_store_entry_refused_no_charges(db) -> None:
    strict = LedgerScope("wine", "partners", "pca_laplace", ln_limit=math.log(4.5))
    assert release(db, [(1, 11, LN_2), (2, 21, LN_2)], strict)[1] == "charged"
    assert release(db, [(1, 12, LN_2)], strict)[1] == "charged"
    account, kind = release(db, [(1, 13, LN_2), (2, 22, LN_2)], strict)
    assert (kind, account.over, account.records) == ("refused", 1, 2)
    assert charges(db) == [(1, 11), (1, 12), (2, 21)]
    assert release(db, [(2, 22, LN_2)], strict)[1] == "charged"


def test_balance_without_ids_all_records_charged(db) -> None:
    alone, _ = release(db, [(ALL_RECORDS, 1, LN_2)], TERMS, released=50)
    assert figures(alone) == (0.0, LN_2, LN_2, 50)
    fresh, _ = release(db, [(ALL_RECORDS, 2, LN_2)], TERMS, released=60)
    assert figures(fresh) == (LN_2, LN_2, pytest.approx(2 * LN_2), 60)
    with_ids, _ = release(db, [(7, 71, LN_3), (8, 81, LN_3)], TERMS)
    assert with_ids.after == pytest.approx(math.log(2 * 2 * 3))
    at_last, _ = release(db, [(ALL_RECORDS, 3, LN_2)], TERMS, released=60)
    assert at_last.after == pytest.approx(math.log(2 * 2 * 3 * 2))


def test_balance_unbounded_draws_infinite_unless_waived(db) -> None:
    rotation = LedgerScope("wine", "partners", "random_rotation")
    account, _ = release(db, [(1, 11, math.inf), (2, 21, math.inf)], rotation)
    assert (account.after, account.draws_after) == (math.inf, 1)
    assert account.unbounded == ("random_rotation",)
    later, _ = release(db, [(1, 12, LN_2)], TERMS)
    assert (later.spent, later.after, later.asked) == (math.inf, math.inf, LN_2)
    waived = LedgerScope("wine", "partners", "pca_laplace", waived=("random_rotation",))
    account, _ = release(db, [(1, 13, LN_3)], waived)
    assert figures(account)[:3] == (LN_2, LN_3, pytest.approx(LN_2 + LN_3))
    assert (account.draws_after, account.unbounded) == (1, ())
    other = LedgerScope("wine", "partners", "pca_laplace", waived=("kde_resample",))
    assert release(db, [(1, 14, LN_3)], other)[0].spent == math.inf


def test_balance_unbounded_draws_counted_individually(db) -> None:
    terms = LedgerScope("wine", "all", "kde_resample", waived=("kde_resample",), draw_limit=3)
    account, kind = release(db, [(1, 11, math.inf), (1, 12, math.inf), (2, 21, math.inf)], terms)
    assert (account.draws_spent, account.draws_after, kind) == (0, 2, "charged")
    account, kind = release(db, [(1, 11, math.inf), (1, 13, math.inf)], terms)
    assert (account.draws_spent, account.draws_after, kind) == (2, 3, "charged")
    account, kind = release(db, [(1, 14, math.inf), (2, 22, math.inf)], terms)
    assert (account.draws_after, account.draws_over, kind) == (4, 1, "refused")


def test_balance_audiences_share_total_unless_waived(db) -> None:
    one, two = (LedgerScope("wine", name, "pca_laplace") for name in ("one", "two"))
    separate = LedgerScope("wine", "two", "pca_laplace", is_shared=False)
    release(db, [(1, 11, LN_2)], one)
    assert figures(release(db, [(1, 11, LN_2)], two)[0]) == (LN_2, 0.0, LN_2, 0)
    # The second audience got it, too: alone it has paid as much, and nothing more.
    assert figures(release(db, [(1, 12, LN_3)], separate)[0])[:2] == (LN_2, LN_3)
    assert release(db, [(1, 13, LN_3)], one)[0].spent == pytest.approx(LN_2 + LN_3)
    assert release(db, [(1, 14, LN_3)], separate)[0].spent == pytest.approx(LN_2 + LN_3)


def test_balance_other_dataset_not_charged(db) -> None:
    release(db, [(1, 11, LN_2)], TERMS)
    assert release(db, [(1, 12, LN_2)], LedgerScope("iris", "all", "pca_laplace"))[0].spent == 0.0


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [(1, 11, math.nan)],
        [(1, 11, -0.5)],
        [(1, 11, LN_2), (2, 11, LN_2)],  # one draw of two people
        [(ALL_RECORDS, 1, LN_2), (1, 11, LN_2)],
        [(1, 11, LN_2)],  # of one record, where two are released
    ],
)
def test_balance_incomplete_draws_none(db, lines: list[Line]) -> None:
    run = next_run("wine")
    assert compute_balance(db, run, TERMS, 2) is None  # no draws at all
    columns = list(zip(*lines, strict=True)) or [(), (), ()]
    kinds = (np.uint64, np.uint64, np.float64)
    record, draw, ln_gamma = (np.array(c, dtype=k) for c, k in zip(columns, kinds, strict=True))
    names = {"record": record, "draw_high": draw, "draw_low": draw, "ln_gamma": ln_gamma}
    store_draws(db, run, pa.table(names))
    assert compute_balance(db, run, TERMS, 2) is None


@dataclass
class Model:
    """The rules of the ledger over plain dictionaries."""

    seen: dict[str, dict[tuple[int, int], float]] = field(default_factory=dict)

    def counted(self, audience: str | None) -> dict[tuple[int, int], float]:
        found: dict[tuple[int, int], float] = {}
        for name, lines in self.seen.items():
            if audience in (None, name):
                found.update(lines)
        return found

    def expected(self, lines: list[Line], audience: str | None) -> tuple[float, float, float, int]:
        before = self.counted(audience)
        fresh = {(r, d): ln for r, d, ln in lines if (r, d) not in before}
        records = {0} | {r for r, _ in (before | fresh)}

        def total(found: dict[tuple[int, int], float], record: int) -> float:
            return math.fsum(ln for (r, _), ln in found.items() if r in (record, ALL_RECORDS))

        return (
            max(total(before, record) for record in records),
            max(total(fresh, record) for record in records),
            max(total(before | fresh, record) for record in records),
            len({r for r, _ in fresh}),
        )

    def store_entry(self, lines: list[Line], audience: str) -> None:
        own = self.seen.setdefault(audience, {})
        for record, draw, ln in lines:
            own.setdefault((record, draw), ln)


FIGURES = {1: 0.25, 2: LN_2, 3: 7.5, 4: math.inf}  # a version of a record has one figure


@st.composite
def releases(draw: st.DrawFn) -> tuple[list[Line], str, bool]:
    if draw(st.integers(0, 9)) == 0:
        version = draw(st.integers(1, 3))
        # Fresh each time: no two releases without ids share a draw.
        lines = [(ALL_RECORDS, 10_000 + next(ENTRY), FIGURES[version])]
    else:
        versions = draw(st.dictionaries(st.integers(1, 5), st.integers(1, 4), min_size=1))
        lines = [(record, 10 * record + v, FIGURES[v]) for record, v in versions.items()]
    return lines, draw(st.sampled_from(["one", "two"])), draw(st.booleans())


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    history=st.lists(releases(), min_size=1, max_size=7),
    line=st.sampled_from([3.0, 20.0, math.inf]),
)
def test_ledger_random_history_equals_model(db, history, line: float) -> None:
    dataset, model = f"d{next(ENTRY)}", Model()
    for lines, audience, is_shared in history:
        terms = LedgerScope(dataset, audience, "any", is_shared=is_shared, ln_limit=line)
        expected = model.expected(lines, None if is_shared else audience)
        account, kind = release(db, lines, terms)
        assert figures(account)[:3] == pytest.approx(expected[:3], abs=1e-12)
        assert account.records == expected[3]
        assert kind == ("refused" if expected[2] > line else "charged")
        if kind == "charged":
            model.store_entry(lines, audience)
    stored = db.execute(
        "select e.audience, c.record, c.draw_high, c.ln_gamma from ledger.charge c "
        "join ledger.entry e on e.number = c.entry where e.dataset = ?",
        [dataset],
    ).fetchall()
    modelled = {(a, r, d): ln for a, own in model.seen.items() for (r, d), ln in own.items()}
    assert len(stored) == len(modelled)  # no charge is there twice
    assert {(a, r, d): ln for a, r, d, ln in stored} == modelled


TAMPERED = {
    "a charge is gone": "delete from ledger.charge where draw_high = 11",
    "a charge is smaller": "update ledger.charge set ln_gamma = 0.1 where draw_high = 11",
    "a charge is of another record": "update ledger.charge set record = 9 where draw_high = 11",
    "a draw has another name": "update ledger.charge set draw_low = 1 where draw_high = 11",
    "a charge does not count": "update ledger.charge set is_first = false where draw_high = 11",
    "a charge is of another entry": "update ledger.charge set entry = entry + 1",
    "a charge is there twice": "insert into ledger.charge from ledger.charge",
    "an entry is gone": "delete from ledger.entry",
    "an entry asks for less": "update ledger.entry set asked = 0",
    "an entry is of another dataset": "update ledger.entry set dataset = 'iris'",
}


@pytest.mark.extended
@pytest.mark.parametrize("how", TAMPERED)
def test_check_ledger_edited_refused(db, how: str) -> None:
    release(db, [(1, 11, LN_2), (2, 21, LN_3)], TERMS)
    db.execute(
        "insert into audit.verdict select release_id, 'PASS', 'd', 'p', 'c', '[]', happened, 'mac' "
        "from ledger.entry"
    )
    check_ledger(db, [])
    db.execute(TAMPERED[how])
    with pytest.raises(Refused):
        check_ledger(db, [])


def test_check_ledger_verdict_without_entry_refused(db) -> None:
    check_ledger(db, [])
    db.execute(
        "insert into audit.verdict values ('x-0001', 'PASS', 'd', 'p', 'c', '[]', now(), 'm')"
    )
    with pytest.raises(Refused, match="no entry in the ledger"):
        check_ledger(db, [])


def test_ledger_holds_no_id_and_no_value(store: Store, tmp_path: Path) -> None:
    with store.transaction() as connection:
        kinds = connection.execute(
            "select column_name, data_type from information_schema.columns "
            "where table_schema = 'ledger' and table_name = 'charge' order by ordinal_position"
        ).fetchall()
    assert dict(kinds) == {
        "entry": "INTEGER",
        "record": "UBIGINT",
        "draw_high": "UBIGINT",
        "draw_low": "UBIGINT",
        "ln_gamma": "DOUBLE",
        "is_first": "BOOLEAN",
    }
