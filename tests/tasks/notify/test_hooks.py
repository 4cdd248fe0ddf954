"""Hooks: who may write them, what they get, and what a failure changes."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from ppdm_core.model.errors import BadInput
from tasks.notify import hooks
from tasks.notify.hooks import KEPT_VARIABLES, OtherOwner, check_hooks, read_hooks, run_hooks
from tests.support.sealed_home import begin, check, new_store
from warehouse.database import Store
from warehouse.stages import Stage

# Writes everything that a program can know of its start.
DUMP = """
import json, os, sys
seen = {"stdin": sys.stdin.read(), "argv": sys.argv[1:], "env": dict(os.environ),
        "cwd": os.getcwd(), "files": sorted(os.listdir("/proc/self/fd"))}
with open(sys.argv[1], "w") as file:
    json.dump(seen, file)
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = new_store(tmp_path / "home")
    begin(store)
    return store


def write_hooks(store: Store, *commands: list[str], mode: int = 0o600) -> Path:
    lines = [f"[[hook]]\ncommand = {json.dumps(command)}\n" for command in commands]
    return write_text(store, "".join(lines), mode)


def write_text(store: Store, text: str, mode: int = 0o600) -> Path:
    path = store.home.hooks
    path.write_text(text)
    path.chmod(mode)
    return path


def notify(store: Store) -> list[dict[str, Any]]:
    """Run the hooks, and return the details of the failures that the history records."""
    run_hooks(store, "wine", "wine-0001", Stage.PUBLISHED)
    check(store)
    with store.transaction("tests") as db:
        query = "select detail from meta.event where kind = ? order by number"
        return [json.loads(detail) for (detail,) in db.execute(query, [hooks.FAILED]).fetchall()]


def test_hooks_no_file_nothing_run(store: Store) -> None:
    assert read_hooks(store.home) == []
    assert notify(store) == []


def test_hook_payload_id_dataset_outcome_nothing_else(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPDM_HOME", str(store.home.root))
    monkeypatch.setenv("SECRET_TOKEN", "qzxcanary")
    seen = tmp_path / "seen.json"
    write_hooks(store, [sys.executable, "-I", "-c", DUMP, str(seen), "; $(id) *"])
    assert notify(store) == []
    found = json.loads(seen.read_text())
    payload = {"id": "wine-0001", "dataset": "wine", "outcome": "published"}
    assert json.loads(found["stdin"]) == payload
    assert found["argv"] == [str(seen), "; $(id) *"]  # no shell
    assert set(found["env"]) <= {*KEPT_VARIABLES, "LC_CTYPE"}  # Python itself sets the last one
    assert found["cwd"] == "/"
    assert found["files"] == ["0", "1", "2", "3"]  # the last one lists this folder
    assert "qzxcanary" not in seen.read_text()


@pytest.mark.extended
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o400, 0o700, 0o4600])
def test_hooks_other_mode_refused_not_run(store: Store, tmp_path: Path, mode: int) -> None:
    touched = tmp_path / "touched"
    path = write_hooks(store, ["/usr/bin/touch", str(touched)], mode=mode)
    with pytest.raises(BadInput, match=f"has mode {mode:o}, not 600") as error:
        check_hooks(store.home)
    assert error.value.remedy == f"Run: chmod 600 {path}"
    (failure,) = notify(store)
    assert failure["hook"] is None and "mode" in failure["why"]
    assert not touched.exists()


def test_hooks_link_refused(store: Store, tmp_path: Path) -> None:
    path = write_hooks(store, ["/usr/bin/true"])
    path.symlink_to(path.rename(tmp_path / "elsewhere.toml"))
    with pytest.raises(BadInput, match="is a link"):
        check_hooks(store.home)


def test_hooks_of_another_user_not_run_release_not_refused(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched = tmp_path / "touched"
    write_hooks(store, ["/usr/bin/touch", str(touched)])
    owner = store.home.hooks.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(OtherOwner):
        read_hooks(store.home)
    check_hooks(store.home)
    (failure,) = notify(store)
    assert "another user" in failure["why"] and not touched.exists()


@pytest.mark.extended
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[hook", "is not TOML"),
        ("", "does not hold a list of hooks alone"),
        ("[hook]\ncommand = ['/bin/true']", "does not hold a list of hooks alone"),
        ("x = 1\n[[hook]]\ncommand = ['/bin/true']", "does not hold a list of hooks alone"),
        ("[[hook]]\ncommand = '/bin/true'", "has no list of words as the command of hook 1"),
        ("[[hook]]\ncommand = []", "has no list of words as the command of hook 1"),
        ("[[hook]]\ncommand = ['/bin/true', 1]", "has no list of words as the command of hook 1"),
        ("[[hook]]\ncommand = ['/bin/true']\nshell = true", "has no list of words as the command"),
        ("[[hook]]\ncommand = ['true']", "program of hook 1 by its absolute path"),
    ],
)
def test_hooks_bad_content_one_sentence(store: Store, text: str, sentence: str) -> None:
    write_text(store, text)
    with pytest.raises(BadInput, match=sentence) as error:
        check_hooks(store.home)
    assert error.value.remedy and error.value.file == str(store.home.hooks)


def test_hooks_failed_events_of_the_history_others_run(store: Store, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    missing = str(tmp_path / "missing")
    write_hooks(
        store,
        [missing, "secret argument"],
        ["/bin/sh", "-c", "exit 7"],
        ["/usr/bin/touch", str(touched)],
    )
    assert notify(store) == [
        {"hook": 1, "why": "It cannot be started: No such file or directory."},
        {"hook": 2, "why": "It ended with exit code 7."},
    ]
    assert touched.exists()


def test_hook_too_slow_killed_with_its_children(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hooks.TIME_LIMIT_SECONDS == 10
    monkeypatch.setattr(hooks, "TIME_LIMIT_SECONDS", 1.0)
    pids = tmp_path / "pids"
    script = f"sleep 60 & echo $$ $! > {shlex.quote(str(pids))}; wait"
    write_hooks(store, ["/bin/sh", "-c", script])
    start = time.monotonic()
    assert notify(store) == [{"hook": 1, "why": "It was killed after 1 s."}]
    assert time.monotonic() - start < 30
    for pid in map(int, pids.read_text().split()):
        assert not is_running(pid)


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
