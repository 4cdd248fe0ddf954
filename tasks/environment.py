"""Environment variables that the libraries read. Imports no large library."""

from __future__ import annotations

import os
from pathlib import Path


def choose_home(given: Path | None) -> Path:
    """Return the home that a command works on when no release file names one."""
    return (given or Path(os.environ.get("PPDM_HOME") or ".ppdm")).absolute()


def set_library_defaults(home: Path) -> None:
    """Keep every library inside the home, off the network and off the console.

    Only defaults: what the user has set stays. Call it before the libraries are imported.
    """
    views = home.absolute() / "views"
    prefect_home = views / "prefect"
    temporary = home.absolute() / "private" / "tmp"
    for folder in (prefect_home, temporary):
        folder.mkdir(parents=True, exist_ok=True)
    defaults = {
        "PREFECT_HOME": str(prefect_home),
        "TMPDIR": str(temporary),  # MLflow and Great Expectations leave files there
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        # Both go to stderr; the run's log in the Prefect view stays complete.
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_HANDLERS_DEBUG_LEVEL": "CRITICAL",
        "PREFECT_LOGGING_EXTRA_LOGGERS": "ppdm",  # our progress, in the run's log too
        "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",  # some of it belongs to no run
        "DO_NOT_TRACK": "1",
        "GX_ANALYTICS_ENABLED": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MPLCONFIGDIR": str(views / "matplotlib"),
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def bypass_proxies() -> None:
    """Connect to servers on this machine without a proxy."""
    given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY", "")
    if "127.0.0.1" not in given.split(","):
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = f"127.0.0.1,{given}".rstrip(",")
