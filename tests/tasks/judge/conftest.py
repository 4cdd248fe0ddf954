from __future__ import annotations

from pathlib import Path

import pytest

from ppdm_core.model.verdict import Review
from tests.support.signed_homes import SignedOffice
from tests.support.waiting_runs import staffed


@pytest.fixture(scope="session")
def signed_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a home with keys, in which Sam's release awaits two approvals."""
    folder = tmp_path_factory.mktemp("signed")
    made = SignedOffice(folder, Review(approvals=2))
    with staffed(made):
        made.await_review()
    return folder
