"""Reports of releases that ended in every way: written by the command, published, logged."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ppdm_core.audit.disclosure_rounding import ENDS
from tests.e2e.test_leak import find_private
from tests.support.history import History
from tests.support.small_release import Small
from tests.support.svg_values import list_figures, read_shares

ENDINGS = {
    "history-0001": "PUBLISHED",
    "history-0002": "DRY RUN PASSED",
    "history-0003": "PUBLISHED",
    "history-0004": "REFUSED",
    "history-0005": "WAITS FOR REVIEW",
}
NOW = {**ENDINGS, "history-0005": "ABANDONED"}  # a later run of another file ended the waiting


@pytest.fixture(scope="module")
def pages(history: History, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The steward's edition of every release of the history."""
    folder = tmp_path_factory.mktemp("reports")
    found = {}
    for release_id in ENDINGS:
        out = folder / f"{release_id}.html"
        result = history.release.ask("report", release_id, "--out", str(out), "--json")
        assert result.exit_code == 0, result
        assert json.loads(result.stdout)["report"] == str(out)
        found[release_id] = out.read_text()
    return found


@pytest.mark.extended
def test_report_every_ending_names_its_outcome(pages: dict[str, str]) -> None:
    for release_id, outcome in NOW.items():
        assert f"<title>{release_id}: {outcome}</title>" in pages[release_id]
        assert len(pages[release_id].encode()) < 400_000
        for other in ENDINGS:  # all releases of the dataset are listed, also refused ones
            assert other in pages[release_id]


def test_report_all_editions_nothing_private(history: History, pages: dict[str, str]) -> None:
    published = [path.read_text() for path in history.release.published.glob("0*/report.html")]
    assert len(published) == 2
    for page in (*pages.values(), *published):
        assert find_private(page.encode(), history) == []


def test_report_published_edition_names_no_other_release(history: History) -> None:
    for path in history.release.published.glob("0*/report.html"):
        page = path.read_text()
        named = set(re.findall(r"history-\d{4}", page))
        assert named == {f"history-{path.parent.name}"}
        for figure in list_figures(page):
            for style, shares in read_shares(figure).items():
                if style != "limit":
                    assert all(min(abs(x - end) for end in ENDS) < 1e-4 for x in shares), style


def test_report_logged_to_mlflow_for_every_release(history: History) -> None:
    logged = (history.release.home / "views" / "mlflow").rglob("report.html")
    titles = {re.findall("<title>(.*?)</title>", path.read_text())[0] for path in logged}
    assert titles == {f"{release_id}: {outcome}" for release_id, outcome in ENDINGS.items()}


def test_report_without_out_written_to_private_folder(history: History) -> None:
    result = history.release.ask("report", "history-0001", "--json")
    path = Path(json.loads(result.stdout)["report"])
    assert path == history.release.private / "reports" / "history-0001.html"
    assert path.is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("history-0099",), "There is no release"),
        (("history-0001", "--out", "report.pdf"), "ends in .html"),
        (("history-0001", "--out", "no_folder/report.html"), "does not exist"),
    ],
)
def test_report_bad_input_one_sentence(
    history: History, arguments: tuple[str, ...], words: str
) -> None:
    result = history.release.ask("report", *arguments)
    assert result.exit_code == 2 and words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_report_latest_is_that_of_the_newest_release(history: History) -> None:
    result = history.release.ask("report", "latest", "--json")
    assert json.loads(result.stdout)["release_id"] > max(ENDINGS)  # the run of another file


@pytest.mark.slow
def test_report_columns_on_request_measured_on_the_same_draws(
    waiting: Small, tmp_path: Path
) -> None:
    """A quick audit leaves it out; the records of a release that waits are stored."""
    pages = []
    for number, options in enumerate([(), ("--columns",), ("--columns",)]):
        out = tmp_path / f"{number}.html"
        result = waiting.ask("report", "latest", "--out", str(out), "--json", *options)
        assert result.exit_code == 0, result
        pages.append(out.read_text())
    assert "--columns</code>" in pages[0] and "found without it" not in pages[0]
    assert "--columns</code>" not in pages[1] and "found without it" in pages[1]
    assert pages[1] == pages[2]


def test_report_columns_records_not_stored_one_sentence(history: History) -> None:
    result = history.release.ask("report", "history-0001", "--columns")
    assert result.exit_code == 2 and "its records are not stored" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
