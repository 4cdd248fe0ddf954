"""Parties with other columns that are killed at random points, each in processes of its own."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.sites.column_parts import order_columns
from tasks.sites.exchange import StillWaiting
from tests.support.column_parties import THREE, TWO, Columns
from warehouse import checkpoints
from warehouse.messages.roll import CENTRE

KILLS = 30
DONE, WAITING, FAILED = 0, 7, 9  # exit codes of a child


def run_child(columns: Columns, name: str, kill_at: int | None) -> int:
    """Run a party in a child process, killed at its n-th checkpoint; return how it ended."""
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)
    folder, count, code = columns.parties.folder, 0, FAILED

    def listen(point: str) -> None:
        nonlocal count
        count += 1
        with (folder / f"{name}.log").open("a") as log:
            log.write(f"{point}\n")
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        checkpoints.LISTENERS.append(listen)
        found: dict[str, Any]
        if name == CENTRE:
            rows = columns.run_centre()
            found = {"Y": rows.Y.tolist(), "loss": rows.loss, "losses": rows.losses}
        else:
            kept = columns.run_site(name)
            aligned = columns.aligned[name]
            found = {"kept": kept, "places": aligned.places, "key": aligned.key.hex()}
        (folder / f"{name}.json").write_text(json.dumps(found))
        code = DONE
    except StillWaiting:
        code = WAITING
    finally:
        os._exit(code)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("split", "alignment"),
    [(TWO, "shared_id"), (TWO, "intersection"), (THREE, "shared_id")],
    ids=["ids", "intersection", "three parties"],
)
def test_column_parties_killed_thirty_times_same_sums(tmp_path: Path, split: Any, alignment: str):
    columns = Columns(tmp_path, split, alignment=alignment)
    rng, killed, messages = random.Random(8), 0, {}
    names = [CENTRE, *split]
    for attempt in range(400):
        name = names[attempt % len(names)]
        code = run_child(columns, name, rng.randint(1, 3) if killed < KILLS else None)
        assert code in (DONE, WAITING, -signal.SIGKILL), code
        killed += code == -signal.SIGKILL
        for path in columns.parties.shared.rglob("*.msg"):
            raw = path.read_bytes()
            assert messages.setdefault(path.name, raw) == raw  # never sent with another content
        done = [(tmp_path / f"{each}.json").exists() for each in names]
        if all(done) and killed >= KILLS:
            break
    assert killed >= KILLS and all(done)
    for name in names:  # accepted once each, over all processes of a party
        points = (tmp_path / f"{name}.log").read_text().splitlines()
        to_it = [each for each in messages if each.endswith(f"-{name}.msg")]
        assert points.count("message accepted") == len(to_it), name
    found = {name: json.loads((tmp_path / f"{name}.json").read_text()) for name in names}
    one = found["census"]
    people = [columns.ids["census"][place] for place in one["places"]]
    X = np.array([columns.X[each] for each in people])
    part = columns.make_part(CENTRE)
    order = order_columns(bytes.fromhex(one["key"]), one["kept"])
    C = part.transform.compute_coefficients(X)[:, order]
    assert np.abs(np.array(found[CENTRE]["Y"]) - C).max() <= part.unit * (len(split) + 1) / 2
