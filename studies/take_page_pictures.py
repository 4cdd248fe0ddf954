"""Take the pictures of Prefect's pages and of a report that README.md shows.

    python -m studies.take_page_pictures        # from the root of the project

Needs Chromium (Debian's package chromium). Runs the demo in a temporary folder, which takes about
a minute, then opens its pages.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PICTURE_FOLDER = ROOT / "docs" / "pictures"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
WAIT_MS = 300_000
SETTLE_MS = 4_000
PAGE_SIZE: Any = {"width": 1600, "height": 950}
REPORT_SIZE: Any = {"width": 1000, "height": 1400}


def run_ppdm(folder: Path, *arguments: str) -> dict[str, Any]:
    """Run a command in a folder and return its JSON object."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "ppdm.cli.app", *arguments, "--json"]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout))


def query(address: str, body: dict[str, Any]) -> Any:
    """Return the response of an HTTP server to a JSON object."""
    request = urllib.request.Request(
        address, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def list_prefect_pages(address: str) -> dict[str, tuple[str, str]]:
    """Return the pages of the refused run and of its verdict, with words that each shows."""
    refused = {"flow_runs": {"tags": {"all_": ["outcome:refused"]}}}
    (run,) = query(f"{address}/api/flow_runs/filter", refused)
    of_run = {"artifacts": {"flow_run_id": {"any_": [run["id"]]}, "type": {"any_": ["table"]}}}
    (verdict,) = query(f"{address}/api/artifacts/filter", of_run)
    return {
        "prefect_refused.png": (f"{address}/runs/flow-run/{run['id']}", "REFUSED"),
        "prefect_verdict.png": (
            f"{address}/artifacts/artifact/{verdict['id']}",
            "self_test.policy",
        ),
    }


def take_pictures(pages: dict[str, tuple[str, str]], folder: Path) -> None:
    """Take a picture of each page once it shows its words."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=QUIET)
        for name, (address, words) in pages.items():
            page = browser.new_page(viewport=REPORT_SIZE if name == "report.png" else PAGE_SIZE)
            page.goto(address)
            page.get_by_text(words).first.wait_for(timeout=WAIT_MS)
            page.wait_for_timeout(SETTLE_MS)
            page.screenshot(path=folder / name)
            print(folder / name)
        browser.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_ppdm(folder, "demo")
        home = str(folder / "demo" / ".ppdm")
        pages = run_ppdm(folder, "up", "--home", home)["pages"]
        try:
            report = Path(run_ppdm(folder, "report", "wdbc-0002", "--home", home)["report"])
            found = {"report.png": (report.as_uri(), "What to do now")}
            found |= list_prefect_pages(pages["prefect"])
            take_pictures(found, PICTURE_FOLDER)
        finally:
            run_ppdm(folder, "down", "--home", home)


if __name__ == "__main__":
    main()
