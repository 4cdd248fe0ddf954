"""The measurements behind the pictures of docs/attacks.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from studies import attack_sweeps, draw_attack_sweeps, public_table_audit


def read_figures(method: str) -> dict[str, Any]:
    with Image.open(draw_attack_sweeps.PICTURE_FOLDER / f"{method}.png") as picture:
        picture.load()
        return dict(json.loads(picture.text["Figures"]))


@pytest.mark.slow
def test_audit_release_swept_setting_matches_picture(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPDM_DATA", str(shared_data))
    sweep, shown = attack_sweeps.SWEEPS["randomized_response"], read_figures("randomized_response")
    found = public_table_audit.audit_release(
        sweep.make_release(sweep.values[2]), ["record_linkage"]
    )
    now = attack_sweeps.make_point(found["record_linkage.rate"])
    assert now is not None
    assert now[0] == pytest.approx(shown["record_linkage.rate"][2][0], abs=0.03)
