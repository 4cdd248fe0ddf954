"""The user of a process from the kernel, against every disguise that can be tried here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warehouse.process_user
from ppdm_core.model.errors import Refused
from tests.support.namespaces import (
    DISGUISE,
    PRINT_UID,
    ROOT,
    run_python,
    skip_without_namespaces,
)
from warehouse.process_user import FULL_MAP, read_process_uid

FAKE_LIBC = "int getuid(void) { return 12345; } int geteuid(void) { return 12345; }"
HIDDEN = "refused: It cannot be known who runs this command: a user namespace hides the real user."
MISSING = "refused: It cannot be known who runs this command: /proc/self/uid_map is missing"


def test_read_process_uid_plain_process_same_as_libc() -> None:
    assert read_process_uid() == os.getuid()


def test_read_process_uid_preloaded_library_kernel_id(tmp_path: Path) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, library = tmp_path / "fake.c", tmp_path / "fake.so"
    source.write_text(FAKE_LIBC)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    env = {"LD_PRELOAD": str(library)}
    assert run_python([], "import os; print(os.getuid())", env) == "12345"  # the control
    assert run_python([], PRINT_UID, env) == str(os.getuid())


@pytest.mark.parametrize("outer", [(), ("unshare", "--user", "--map-root-user")])
def test_read_process_uid_user_namespace_refused(outer: tuple[str, ...]) -> None:
    skip_without_namespaces()
    prefix = (*outer, *DISGUISE)
    assert run_python(prefix, "import os; print(os.getuid())") == "12345"  # the control
    found = run_python(prefix, PRINT_UID)
    assert found.startswith(HIDDEN) and "--userns=host" in found


def test_read_process_uid_namespace_that_maps_every_id_to_itself_accepted() -> None:
    skip_without_namespaces()
    if os.getuid() != 0:
        pytest.skip("only root can map every id")
    code = f"input()\n{PRINT_UID}"
    with subprocess.Popen(
        ["unshare", "-U", sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        ours = os.stat("/proc/self/ns/user").st_ino
        while os.stat(f"/proc/{child.pid}/ns/user").st_ino == ours:
            pass
        Path(f"/proc/{child.pid}/uid_map").write_text(FULL_MAP)
        found, _ = child.communicate("go on\n", timeout=60)
    assert found.strip() == "0"


MOUNTS = {
    "one file": "cp {folder}/full_map {folder}/map && mount --bind {folder}/map /proc/$$/uid_map",
    "another device": "mkdir {folder}/t && mount -t tmpfs t {folder}/t && : > {folder}/t/map && "
    "mount --bind {folder}/t/map /proc/$$/uid_map",
    "a process name": "printf '0 0 4294967295' > /proc/$$/comm && "
    "mount --bind /proc/$$/comm /proc/$$/uid_map",
    "all of proc": "mkdir {folder}/self && cp {folder}/full_map {folder}/self/uid_map && "
    "cp /proc/$$/status {folder}/self/status && mount --bind {folder} /proc",
}


@pytest.mark.extended
@pytest.mark.parametrize("what", MOUNTS)
def test_read_process_uid_mounted_over_proc_refused(what: str, tmp_path: Path) -> None:
    skip_without_namespaces()
    (tmp_path / "full_map").write_text(FULL_MAP)
    script = MOUNTS[what].format(folder=tmp_path) + ' && exec "$@"'
    prefix = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh")
    assert run_python(prefix, PRINT_UID).startswith((HIDDEN, MISSING))


@pytest.mark.parametrize("missing", ["status", "uid_map"])
def test_read_process_uid_without_proc_refused(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in {"status", "uid_map"} - {missing}:
        (tmp_path / name).symlink_to(f"/proc/self/{name}")
    monkeypatch.setattr(warehouse.process_user, "PROC", tmp_path)
    with pytest.raises(Refused, match="is missing, or not the kernel's"):
        read_process_uid()


def test_read_process_uid_status_without_ids_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"uid_map": FULL_MAP, "status": "Name:\tUid: 5\nGid:\t0\t0\t0\t0\n"}
    monkeypatch.setattr(warehouse.process_user, "read_kernel_file", lambda path: texts[path.name])
    with pytest.raises(Refused, match="status is missing"):
        read_process_uid()
    texts["status"] += "Uid:\t7\t8\t9\t9\n"
    assert read_process_uid() == 7  # the real one
