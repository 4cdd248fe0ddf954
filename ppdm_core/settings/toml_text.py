"""Parse the bytes of a TOML file."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from ppdm_core.model.errors import BadInput


def parse_toml(content: bytes, kind: str) -> dict[str, Any]:
    """Return the content of a TOML file; a syntax error names the line, never its text.

    ``kind`` is how messages name the file.
    """
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"The {kind} is not UTF-8: see line {line}.",
            remedy="Save it with UTF-8 encoding.",
        ) from None
    except tomllib.TOMLDecodeError as error:
        line_found = re.search(r"\(at line (\d+), column \d+\)$", str(error))
        where = f"in line {line_found[1]}" if line_found else "at its end"
        raise BadInput(
            f"The {kind} is not valid TOML: syntax error {where}.",
            remedy="Correct that line.",
        ) from None
