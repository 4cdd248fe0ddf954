"""The wheel, installed in a new environment and used from another folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).with_name("uv")
TRACKED = ("ppdm", "flows", "tasks", "warehouse", "ppdm_core", "examples")
USE = """
import sys
import ppdm

folder = sys.argv[1]
assert ppdm.verify(folder, "steward.pem").is_checked
release = ppdm.load(folder, "steward.pem")
release.make_miner("naive_bayes").fit(release.rows, release.labels)
report = ppdm.audit("x/wdbc.csv", "x/wdbc.csv", label="diagnosis", policy="quick.toml")
assert report.verdict == "FAIL"
assert not {"flows", "tasks", "warehouse", "prefect", "mlflow"} & set(sys.modules)
print(ppdm.__file__)
"""
QUICK = """
[audit]
required = ["record_linkage"]
effort = "quick"
[limits]
"record_linkage.rate" = { value = 0.2, set_by = "DPO", reason = "a test" }
"""


def run(*command: str | Path, cwd: Path) -> str:
    env = {name: os.environ[name] for name in os.environ if not name.startswith("PREFECT_")}
    env.pop("PYTHONPATH", None)
    if "PIP_INDEX_URL" in env:  # uv does not read the settings of pip
        env.setdefault("UV_DEFAULT_INDEX", env["PIP_INDEX_URL"])
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from the tracked files, and install it with the locked versions."""
    if not UV.exists():
        pytest.skip("uv is not installed next to Python")
    root = tmp_path_factory.mktemp("wheel")
    for name in TRACKED:
        ignored = shutil.ignore_patterns("__pycache__", "*.csv", ".ppdm")
        shutil.copytree(ROOT / name, root / "source" / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, root / "source")
    run(UV, "build", "-q", "--wheel", "--out-dir", root / "dist", root / "source", cwd=root)
    run(UV, "venv", "-q", "--python", sys.executable, root / "venv", cwd=root)
    install = (UV, "pip", "install", "-q", "--python", root / "venv" / "bin" / "python")
    run(*install, "--require-hashes", "-r", ROOT / "requirements.lock", cwd=root)
    (wheel,) = (root / "dist").glob("*.whl")
    run(*install, "--no-deps", wheel, cwd=root)
    return root / "venv"


@pytest.mark.slow
def test_wheel_installed_used_from_another_folder(environment: Path, tmp_path: Path) -> None:
    ppdm, python = environment / "bin" / "ppdm", environment / "bin" / "python"
    assert "examples" in run(ppdm, "--help", cwd=tmp_path)
    run(ppdm, "examples", "x", cwd=tmp_path)
    assert "are fine" in run(ppdm, "check", "x/wdbc_pca_laplace.toml", cwd=tmp_path)
    assert "are fine" in run(ppdm, "check", "x/pipeline.toml", cwd=tmp_path)
    printed = run(ppdm, "release", "x/wdbc_pca_laplace.toml", "--json", cwd=tmp_path)
    folder = json.loads(printed)["release"]["published"]
    run(ppdm, "key", "public", "--out", "steward.pem", "--home", "x/.ppdm", cwd=tmp_path)
    (tmp_path / "quick.toml").write_text(QUICK)
    (tmp_path / "use.py").write_text(USE)
    place = run(python, "use.py", folder, cwd=tmp_path).strip()
    assert Path(place).is_relative_to(environment)
