"""Every library that the product imports is named in pyproject.toml."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("ppdm", "flows", "tasks", "warehouse", "ppdm_core")


def list_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_imported_library_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    given = [*project["dependencies"], *project["optional-dependencies"]["cluster"]]
    declared = {normalize(re.split(r"[\s<>=!~\[;]", each)[0]) for each in given}
    known = packages_distributions()
    missing = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for name in {each.partition(".")[0] for each in list_imports(path)}:
                if name in sys.stdlib_module_names or name in (*PACKAGES, "studies"):
                    continue
                if not declared & {normalize(each) for each in known.get(name, [name])}:
                    missing[name] = str(path.relative_to(ROOT))
    assert missing == {}
