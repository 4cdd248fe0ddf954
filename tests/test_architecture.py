"""Imports point one way: ppdm -> flows -> tasks -> warehouse -> ppdm_core."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("ppdm", "flows", "tasks", "warehouse", "ppdm_core")  # each may import those to its right
# All that the warehouse knows of the core.
SHARED_WORDS = {"model", "numerics.rounding"}
ONLY_IN = {
    "mlflow": "tasks/notify/mlflow_log.py",
    "great_expectations": "tasks/ingest/expectations.py",
    "prefect.artifacts": "tasks/notify/prefect_artifacts.py",
}
NOT_IN_CORE = {"pandas", "prefect", "mlflow", "great_expectations", "duckdb", "pyarrow", "typer"}
BLIND = {"Exception", "BaseException"}
MAY_CATCH_ALL = "tasks/audit/attack_worker.py"
# Constructors of generators that somebody hands on; all other names are the hidden global one.
GENERATORS = {"Generator", "PCG64", "SeedSequence", "default_rng", "BitGenerator"}


@dataclass(frozen=True)
class Module:
    path: str  # below the root, with slashes
    tree: ast.Module

    @property
    def layer(self) -> str:
        return self.path.split("/")[0]

    def imports(self) -> Iterator[str]:
        """Every imported name in full, wherever in the file it is imported."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.path}: relative import"
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules(root: Path) -> list[Module]:
    paths = sorted(path for layer in LAYERS for path in (root / layer).rglob("*.py"))
    return [Module(str(p.relative_to(root)), ast.parse(p.read_text())) for p in paths]


def complaints(root: Path) -> list[str]:
    checks = (against_the_layers, outside_its_place, catching_all, global_random, dynamic_import)
    return [line for module in modules(root) for check in checks for line in check(module)]


def against_the_layers(module: Module) -> Iterator[str]:
    below = LAYERS[LAYERS.index(module.layer) :]
    for name in module.imports():
        top, *rest = name.split(".")
        if top in LAYERS and top not in below:
            yield f"{module.path}: {module.layer} imports {name}"
        if top == "tests":
            yield f"{module.path}: imports {name}"
        is_private = top == "ppdm_core" and not any(
            f"{'.'.join(rest)}.".startswith(f"{each}.") for each in SHARED_WORDS
        )
        if module.layer == "warehouse" and is_private:
            yield f"{module.path}: the warehouse imports {name}"
        if module.layer == "ppdm_core" and top in NOT_IN_CORE:
            yield f"{module.path}: the core imports {name}"


def outside_its_place(module: Module) -> Iterator[str]:
    for name in module.imports():
        for package, place in ONLY_IN.items():
            if f"{name}.".startswith(f"{package}.") and module.path != place:
                yield f"{module.path}: only {place} may import {package}"


def catching_all(module: Module) -> Iterator[str]:
    if module.path == MAY_CATCH_ALL:
        return
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler) and is_blind(node) and not raises_again(node):
            yield f"{module.path}:{node.lineno}: catches everything"
        if isinstance(node, ast.Call) and name_of(node.func).endswith("suppress"):
            blind = {name_of(argument) for argument in node.args} & BLIND
            yield from (f"{module.path}:{node.lineno}: suppresses everything" for _ in blind)


def is_blind(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(name_of(each) in BLIND for each in caught)


def raises_again(handler: ast.ExceptHandler) -> bool:
    """Such as a rollback: nothing is swallowed."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def global_random(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        owner, _, name = (name_of(node) if isinstance(node, ast.Attribute) else "").rpartition(".")
        if owner in ("np.random", "numpy.random") and name not in GENERATORS:
            yield f"{module.path}:{node.lineno}: uses numpy's global generator ({name})"
    for name in module.imports():
        if name.split(".")[0] == "random":
            yield f"{module.path}: uses Python's global generator"
        if name.startswith("numpy.random") and name.split(".")[-1] not in GENERATORS | {"random"}:
            yield f"{module.path}: imports {name}"


def dynamic_import(module: Module) -> Iterator[str]:
    """Imports that this test could not read."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and name_of(node.func) in (
            "importlib.import_module",
            "import_module",
            "__import__",
        ):
            yield f"{module.path}:{node.lineno}: imports by a computed name"


def name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return ""


def test_the_tree_keeps_the_rules():
    assert len(modules(ROOT)) > 60
    assert complaints(ROOT) == []


def test_the_layers_are_all_there():
    assert {module.layer for module in modules(ROOT)} == set(LAYERS)
    for place in (*ONLY_IN.values(), MAY_CATCH_ALL):
        assert (ROOT / place).is_file(), f"{place} is named by a rule and is not there"


# A rollback swallows nothing.
ALLOWED = "try:\n    pass\nexcept BaseException:\n    x = 1\n    raise\n"
PLANTED = {
    "ppdm_core/numerics/noise.py": [
        ("import warehouse.database", "ppdm_core imports warehouse.database"),
        ("from tasks import keys", "ppdm_core imports tasks.keys"),
        ("import pandas as pd", "the core imports pandas"),
        ("def f():\n    import duckdb", "the core imports duckdb"),
        ("x = np.random.normal(0, 1)", "numpy's global generator (normal)"),
        ("np.random.seed(1)", "numpy's global generator (seed)"),
        ("from numpy.random import rand", "imports numpy.random.rand"),
        ("import random", "Python's global generator"),
    ],
    "warehouse/database.py": [
        (
            "from ppdm_core.numerics.noise import Noise",
            "the warehouse imports ppdm_core.numerics.noise.Noise",
        ),
        ("from ppdm_core import sanitizers", "the warehouse imports ppdm_core.sanitizers"),
        ("if 1:\n    from tasks.context import Plan", "warehouse imports tasks.context.Plan"),
        ("try:\n    pass\nexcept Exception:\n    pass", "catches everything"),
        ("try:\n    pass\nexcept:\n    pass", "catches everything"),
        ("try:\n    pass\nexcept (OSError, BaseException):\n    x = 1", "catches everything"),
        ("with suppress(Exception):\n    pass", "suppresses everything"),
    ],
    "tasks/judge/task.py": [
        (
            "from flows.config.release_file import ReleaseFile",
            "tasks imports flows.config.release_file.ReleaseFile",
        ),
        ("import mlflow.entities", "only tasks/notify/mlflow_log.py may import mlflow"),
        ("import great_expectations as gx", "only tasks/ingest/expectations.py may import"),
        (
            "from prefect.artifacts import x",
            "only tasks/notify/prefect_artifacts.py may import prefect.artifacts",
        ),
        (
            "from prefect import artifacts",
            "only tasks/notify/prefect_artifacts.py may import prefect.artifacts",
        ),
        ("__import__('ppdm.cli.app')", "imports by a computed name"),
        ("import tests.support.forkserver", "imports tests.support.forkserver"),
    ],
    "flows/release.py": [
        ("from mlflow import MlflowClient", "only tasks/notify/mlflow_log.py may import mlflow"),
        ("import importlib\nimportlib.import_module('mlflow')", "imports by a computed name"),
    ],
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What is found in a copy of the tree with every forbidden line planted."""
    root = tmp_path_factory.mktemp("copy")
    for layer in LAYERS:
        shutil.copytree(ROOT / layer, root / layer, ignore=shutil.ignore_patterns("__pycache__"))
    for path, plants in PLANTED.items():
        lines = [line for line, _ in plants]
        (root / path).write_text("\n".join([(ROOT / path).read_text(), *lines, ALLOWED]))
    return complaints(root)


@pytest.mark.parametrize(
    ("path", "line", "words"),
    [(path, line, words) for path, plants in PLANTED.items() for line, words in plants],
)
def test_a_planted_line_is_found(found: list[str], path: str, line: str, words: str):
    assert any(path in one and words in one for one in found), line


def test_nothing_else_is_found(found: list[str]):
    assert len(found) == sum(len(plants) for plants in PLANTED.values())


def test_the_cli_starts_without_the_heavy_packages():
    code = (
        "import sys, ppdm.cli.app\n"
        "heavy = {'prefect', 'mlflow', 'great_expectations', 'sklearn', 'pandas', 'scipy', "
        "'duckdb', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_the_core_needs_nothing_but_numbers():
    code = (
        "import sys, ppdm_core.audit.runner, ppdm_core.gates, ppdm_core.sanitizers\n"
        f"print(sorted({NOT_IN_CORE!r} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
