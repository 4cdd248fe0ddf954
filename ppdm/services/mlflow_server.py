"""The MLflow pages of a home as a separate process.

Run as ``python -m ppdm.services.mlflow_server PORT SOCKET RECORD HOME``.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from ppdm.services.processes import write_own_record

MODULE = "ppdm.services.mlflow_server"
HEALTH_PATH = "/health"


def main(port: int, descriptor: int, record: Path, home: Path) -> None:
    """Serve the pages on an inherited socket until the process is stopped."""
    write_own_record(record, port, MODULE, HEALTH_PATH)
    from tasks.notify.mlflow_log import serve_pages

    serve_pages(home, socket.socket(fileno=descriptor))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
