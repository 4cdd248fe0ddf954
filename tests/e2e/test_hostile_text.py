"""A release whose names and reasons try to be more than text, wherever a person reads them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.conftest import Maker
from tests.support.hostile_text import is_safe_line, list_structure
from tests.support.small_release import Small

PASS = "\n\n# PASS\n\n| a |\n| --- |\n<script>x</script> [y](javascript:z) `*\x1b[31m\u202e"
NAME = PASS.replace("\n", " ")  # no reader of CSV files takes several lines as a header


def make_hostile(release: Small) -> Small:
    """Put the text into owner, audience, reasons, and names of a feature and of the label."""
    content = release.content
    content["dataset"] |= {"owner": f"Dora{PASS}", "audience": f"partners{PASS}"}
    for limit in content["limits"].values():
        limit |= {"set_by": f"DPO{PASS}", "reason": f"a line{PASS}"}
    for name in ("height", "mood"):
        renamed = f"{name}{NAME}"
        content["columns"][renamed] = content["columns"].pop(name)
        release.rows = [
            {renamed if key == name else key: cell for key, cell in row.items()}
            for row in release.rows
        ]
    return release.write()


def read_notes(home: Path) -> list[str]:
    with closing(sqlite3.connect(home / "views" / "mlflow" / "mlflow.db")) as db:
        rows = db.execute("select value from tags where key = 'mlflow.note.content'").fetchall()
    return [note for (note,) in rows]


@pytest.mark.slow
def test_release_hostile_names_shown_as_text_everywhere(small: Maker, prefect_api: str) -> None:
    from prefect.client.orchestration import get_client

    plain = small("plain").write()
    assert plain.run("release").exit_code == 0
    release = make_hostile(small("hostile"))
    result = release.run("release")
    assert result.exit_code == 0, result
    shown = release.ask("show", "hostile-0001", "--all")
    listed = release.ask("ledger", "hostile")
    for text in (result.stdout, result.stderr, shown.stdout, listed.stdout):
        assert all(map(is_safe_line, text.split("\n")))
        assert not any(line.startswith("# PASS") for line in text.splitlines())
    cards = [(one.published / "latest" / "card.md").read_text() for one in (release, plain)]
    assert list_structure(cards[0]) == list_structure(cards[1])
    assert all(map(is_safe_line, cards[0].split("\n")))
    page = (release.published / "latest" / "report.html").read_text()
    assert "# PASS" in page  # the name of a column, as text
    assert "<script" not in page and all(map(is_safe_line, page.split("\n")))
    manifest = json.loads((release.published / "latest" / "manifest.json").read_text())
    assert manifest["owner"] == f"Dora{PASS}" and manifest["label"] == f"mood{NAME}"
    notes = read_notes(release.home)
    assert len(notes) >= 2 and all(list_structure(note) == list_structure("x") for note in notes)
    with get_client(sync_client=True) as client:
        artifacts = client.read_artifacts()
    ours = {str(one.key): one for one in artifacts}
    table = json.loads(str(ours["hostile-verdict"].data))
    for text in (cell for row in table for cell in row.values() if cell):
        assert is_safe_line(text)
        assert list_structure(f"x {text}") == list_structure("x y")
    both = [str(ours[f"{name}-verdict"].description) for name in ("hostile", "plain")]
    assert list_structure(both[0]) == list_structure(both[1])
    assert all(map(is_safe_line, both[0].split("\n")))
    assert list_structure(str(ours["hostile-card"].data)) == list_structure(cards[1])
