"""A year of weekly releases of one table, of which a twentieth changes every week."""

from __future__ import annotations

import csv
import math
import random
from pathlib import Path
from typing import Any

import pytest

from ppdm_core.model.errors import BadInput
from tests.support.stewards import Row, Steward
from warehouse.clock import now
from warehouse.columns import Column
from warehouse.integrity.events import append_event
from warehouse.ledger.entries import check_ledger

WEEKS, CHANGED = 52, 9  # 5 % of 178
PRIVATE = {"components": 2, "b": 0.5, "basis": "private"}
REFITTED = {**PRIVATE, "components": 3}


def wine(folder: Path) -> tuple[tuple[Column, ...], dict[str, Row]]:
    with (folder / "wine.csv").open() as file:
        lines = [{k: v for k, v in line.items() if k != "label"} for line in csv.DictReader(file)]
    columns = [Column("id", "identifier")]
    for name in lines[0]:
        values = [float(line[name]) for line in lines]
        low, high = math.floor(min(values)), math.ceil(max(values))
        columns.append(Column(name, "feature", "numeric", low=float(low), high=float(high)))
    rows = {f"wine {i}": tuple(map(float, line.values())) for i, line in enumerate(lines)}
    return tuple(columns), rows


class Year:
    """The releases, and an independent recount: the values and components drawn for each record."""

    def __init__(self, steward: Steward) -> None:
        self.steward, self.rng = steward, random.Random(52)
        self.versions: dict[str, set[tuple[Row, int]]] = {name: set() for name in steward.rows}

    def week(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Release; check that only records never drawn with these values are charged."""
        drawn = {name: (row, parameters["components"]) for name, row in self.steward.rows.items()}
        entry = self.steward.release(parameters=parameters)
        assert entry["records"] == sum(
            one not in self.versions[name] for name, one in drawn.items()
        )
        for name, one in drawn.items():
            self.versions[name].add(one)
        self.publish(entry["release_id"])
        return entry

    def publish(self, release_id: str) -> None:
        number = int(release_id.rpartition("-")[2])
        with self.steward.store.transaction() as db:
            db.execute(
                "insert into published.version values ('people', ?, ?, 'd', 'm', ?)",
                [number, release_id, now()],
            )
            db.execute("update meta.run set stage = 'published' where release_id = ?", [release_id])
            append_event(db, "people", release_id, "published", {"data": "d", "manifest": "m"})

    def change(self) -> None:
        """Some records change, and one of all goes back to what it was once."""
        rows = self.steward.rows
        for name in self.rng.sample(sorted(rows), CHANGED):
            rows[name] = (round(11 + 3 * self.rng.random(), 2), *rows[name][1:])
        again = self.rng.choice(sorted(rows))
        rows[again] = self.rng.choice(sorted(row for row, _ in self.versions[again]))


@pytest.mark.exhaustive
def test_ledger_year_of_releases_equals_recount(tmp_path: Path, shared_data: Path) -> None:
    columns, rows = wine(shared_data)
    year = Year(Steward(tmp_path, rows, columns, "pca_laplace", PRIVATE))
    first = year.week(PRIVATE)
    for _ in range(19):
        year.change()
        year.week(PRIVATE)
    with pytest.raises(BadInput, match="a second time"):
        year.week(REFITTED)
    waived = year.week({**REFITTED, "refit_waiver": "the DPO"})
    assert (first["records"], waived["records"]) == (178, 178)
    for _ in range(WEEKS - 21):
        year.change()
        last = year.week({**REFITTED, "refit_waiver": "the DPO"})
    figure = {PRIVATE["components"]: first["asked"], REFITTED["components"]: waived["asked"]}
    recount = {
        name: math.fsum(figure[components] for _, components in found)
        for name, found in year.versions.items()
    }
    assert year.steward.accounts() == pytest.approx(recount, rel=1e-12)
    assert last["total"] == pytest.approx(max(recount.values()), rel=1e-12)
    with year.steward.store.transaction() as db:
        check_ledger(db, [])
        assert db.execute("select count(*) from ledger.entry").fetchall() == [(WEEKS,)]
