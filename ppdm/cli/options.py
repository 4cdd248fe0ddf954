"""Options that several commands have, and the exit codes that every help text lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXIT_CODES = """\b
Exit codes:
  0    published, no change, or successful
  1    a defect of ppdm
  2    bad input; the message names file, column and remedy
  3    refused
  4    a person must decide
  5    a problem of the machine (lock, disk, server); try again
  130  interrupted by Ctrl-C
"""

Json = Annotated[
    bool,
    typer.Option("--json", help="One JSON object on standard output; `ppdm schema` describes it."),
]
File = Annotated[  # not readable=True: the error for a file without permission names a remedy
    Path, typer.Argument(help="A release file.", metavar="FILE", readable=False)
]
HomeOption = Annotated[
    Path | None, typer.Option("--home", help="PPDM_HOME; default: $PPDM_HOME or ./.ppdm.")
]
ReleaseId = Annotated[
    str,
    typer.Argument(
        help="For example wdbc-0003; `latest` is the newest run, `wdbc/latest` that of a dataset.",
        metavar="ID",
    ),
]
