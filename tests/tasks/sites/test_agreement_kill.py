"""Parties that are killed at random points: a rerun completes, and no message is made twice."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import pytest

from ppdm_core.sanitizers import Sanitizer
from ppdm_core.sanitizers._basis import fit_basis
from tasks.sites.exchange import StillWaiting
from tests.support.agreements import DCT, PCA, Agreement, gather
from tests.support.parties import Parties
from warehouse import checkpoints
from warehouse.messages.roll import CENTRE

KILLS = 30
DONE, WAITING, FAILED = 0, 7, 9  # exit codes of a child


def run_child(agreement: Agreement, name: str, kill_at: int | None) -> int:
    """Run a party in a child process, killed at its n-th checkpoint; return how it ended."""
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)
    count = 0

    def listen(point: str) -> None:
        nonlocal count
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    code = FAILED
    try:
        checkpoints.LISTENERS.append(listen)
        found = agreement.run_centre() if name == CENTRE else agreement.run_site(name)
        (agreement.parties.folder / f"{name}.json").write_text(json.dumps(found))
        code = DONE
    except StillWaiting:
        code = WAITING
    finally:
        os._exit(code)


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", [PCA, DCT], ids=["pca_laplace", "dct_fuzzy"])
def test_agreement_killed_thirty_times_same_fit(tmp_path: Path, sanitizer: Sanitizer):
    parties = Parties(tmp_path)
    agreement = Agreement(parties, sanitizer)
    rng, killed, messages = random.Random(5), 0, {}
    names = [CENTRE, *parties.sites]
    for attempt in range(400):
        name = names[attempt % len(names)]
        kill_at = rng.randint(1, 3) if killed < KILLS else None
        code = run_child(agreement, name, kill_at)
        assert code in (DONE, WAITING, -signal.SIGKILL), code
        killed += code == -signal.SIGKILL
        for path in parties.shared.rglob("*.msg"):
            raw = path.read_bytes()
            assert messages.setdefault(path.name, raw) == raw  # never sent with another content
        done = [(tmp_path / f"{each}.json").exists() for each in names]
        if all(done) and killed >= KILLS:
            break
    assert killed >= KILLS and all(done)
    fits = [json.loads((tmp_path / f"{site}.json").read_text()) for site in parties.sites]
    if sanitizer is PCA:
        assert {json.dumps(fit) for fit in fits} == {
            json.dumps(fit_basis(gather(agreement.rows), 2))
        }
    else:
        assert len({json.dumps(fit["order"]) for fit in fits}) == 1
