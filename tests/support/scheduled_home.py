"""A home with its own servers and a release that ticks every minute."""

from __future__ import annotations

import json
import shutil
import signal
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.forkserver import Command, Result, run_cli, start_cli
from tests.support.small_release import Small

ROOT = Path(__file__).resolve().parents[2]
TICK_LIMIT = 240  # seconds: a minute until it is due, the imports of a new process, a release


class Schedule:
    """``up`` and ``serve`` on a small table, and what its ticks leave in Prefect and MLflow."""

    def __init__(self, release: Small) -> None:
        # Everything as a steward has it: nothing of the tests' own server or folders.
        own = ("PREFECT_API_URL", "PREFECT_HOME", "TMPDIR", "MPLCONFIGDIR")
        self.release = release
        self.env = {**release.env, **dict.fromkeys(own)}
        self.pages: dict[str, str] = {}
        self.runner: Command | None = None

    def run(self, *args: str) -> Result:
        return run_cli([*args, "--home", str(self.release.home)], env=self.env, timeout=300)

    def up(self) -> None:
        result = self.run("up", "--json")
        assert result.exit_code == 0, result
        self.pages = json.loads(result.stdout)["pages"]

    def serve(self) -> None:
        runner = self.runner = start_cli(["serve", str(self.release.file)], env=self.env)
        wait_until(lambda: "serving" in runner.output()[1], limit=120)

    def stop_serving(self) -> Result:
        assert self.runner is not None
        runner, self.runner = self.runner, None
        runner.send(signal.SIGTERM)
        return runner.wait(60)

    def close(self) -> None:
        if self.runner is not None:
            self.stop_serving()
        self.run("down", "--now")

    def prefect(self, path: str, body: Any = None) -> Any:
        return ask(f"{self.pages['prefect']}/api/{path}", body)

    def releases(self) -> list[dict[str, Any]]:
        """Ended runs of the flow ``release``, the oldest first."""
        body = {
            "flows": {"name": {"any_": ["release"]}},
            "flow_runs": {"state": {"type": {"any_": ["COMPLETED", "FAILED", "CANCELLED"]}}},
            "sort": "START_TIME_ASC",
        }
        return list(self.prefect("flow_runs/filter", body))

    def wait_for(self, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + TICK_LIMIT
        while time.monotonic() < deadline:
            for run in self.releases():
                if is_wanted(run):
                    return run
            assert self.runner is None or self.runner.is_running, self.runner.output()
            time.sleep(1)
        raise AssertionError([(run["name"], run["state"]["message"]) for run in self.releases()])

    def artifacts(self, run: dict[str, Any]) -> dict[str, dict[str, Any]]:
        body = {"artifacts": {"flow_run_id": {"any_": [run["id"]]}}}
        return {each["key"]: each for each in self.prefect("artifacts/filter", body)}

    def events(self) -> list[dict[str, Any]]:
        body = {"filter": {"event": {"prefix": ["ppdm."]}}, "limit": 50}
        return list(self.prefect("events/filter", body)["events"])

    def deployment(self) -> dict[str, Any]:
        return dict(self.prefect(f"deployments/name/release/{self.release.name}"))


def wait_until(is_so: Callable[[], bool], limit: float = 60) -> None:
    """The server writes events down, and automations act, a few seconds later."""
    deadline = time.monotonic() + limit
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.5)


def ask(address: str, body: Any = None) -> Any:
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, content, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def chromium() -> str | None:
    """The system's own browser; Playwright's downloads are not used."""
    return shutil.which("chromium") or shutil.which("chromium-browser")
