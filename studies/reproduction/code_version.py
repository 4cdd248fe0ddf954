"""The version of the code that a result depends on, so that other changes keep the result."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("ppdm_core", "studies")


@lru_cache
def compute_version(module: str, root: Path = ROOT) -> str:
    """Return a digest of a module and of all modules of the project that it needs."""
    digest = hashlib.sha256()
    for name in sorted(find_needed(module, root)):
        path = find_source(name, root)
        assert path is not None
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def find_needed(module: str, root: Path = ROOT) -> set[str]:
    """Return a module and the modules that it imports, directly or through others.

    A package counts only where something is imported from the package itself: the registry of
    attacks is not needed by an experiment that imports one of them from its own file.
    """
    needed: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += list_imports(name, root)
    return needed


@cache
def list_imports(module: str, root: Path) -> tuple[str, ...]:
    """Return the modules of the project that a module imports, also inside of functions."""
    path = find_source(module, root)
    assert path is not None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return tuple(dict.fromkeys(name for node in ast.walk(tree) for name in list_names(node, root)))


def list_names(node: ast.AST, root: Path) -> Iterator[str]:
    """Yield the modules of the project that an import statement names; none for other nodes."""
    if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
        whole = [f"{node.module}.{alias.name}" for alias in node.names]
        names = [name if find_source(name, root) else node.module for name in whole]
    elif isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        return
    yield from (name for name in names if find_source(name, root))


@cache
def find_source(module: str, root: Path) -> Path | None:
    """Return the file of a module of the project, or None if it is another module."""
    if module.split(".")[0] not in PACKAGES:
        return None
    path = root.joinpath(*module.split("."))
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None
