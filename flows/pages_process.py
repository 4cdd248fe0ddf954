"""The MLflow pages of a home as a process of ours.

Run as ``python -m flows.pages_process PORT SOCKET RECORD HOME``.
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from flows.processes import record_self

MODULE = "flows.pages_process"
HEALTH = "/health"


def main(port: int, descriptor: int, record: Path, home: Path) -> None:
    record_self(record, port, MODULE, HEALTH)
    from tasks.tracking import serve_pages

    serve_pages(home, socket.socket(fileno=descriptor))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
