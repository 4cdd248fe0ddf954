"""The MLflow pages of a home as a separate process.

Run as ``python -m ppdm.services.mlflow_server SOCKET HOME``.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from ppdm.services.processes import write_own_record
from warehouse.home import Home

MODULE = "ppdm.services.mlflow_server"
HEALTH_PATH = "/health"


def main(listener: socket.socket, home: Path) -> None:
    """Serve the pages on a bound socket until the process is stopped."""
    write_own_record(Home(home).up_record("mlflow"), listener.getsockname()[1], HEALTH_PATH)
    from tasks.notify.mlflow_log import serve_pages

    serve_pages(home, listener)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2]))
