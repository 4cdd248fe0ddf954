"""Cells of a CSV file that are written in several ways, which no attack on values reads.

`3.1`, `3.10`, `"3.1"` and ` 3.1` are the same number. Which of them a cell holds can say something
about the original, as the order of rows can.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ppdm.table_files import CSV_ENDINGS, find_delimiter
from ppdm_core.model.arrays import Bools, Floats, Ints
from ppdm_core.two_tables.tables import Table

LINES = "line ends"  # of the file, as doubts name them
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
PADDED = r"\.(\d*[1-9])?0+($|[eE])"  # digits after the point that end with a zero
WHOLE = r"^[+-]?\d+$"
ONE_ZERO = r"^[+-]?\d+\.0$"
NO_DIGIT = r"^[+-]?\d+\.($|[eE])"
DATE = r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}"


def note_spelling(table: Table, path: Path) -> Table:
    """Return a table with the columns that its file, if it is one, writes in several ways."""
    if not path.is_file():  # a folder, or a table in a file
        return table
    return replace(table, varied_text=find_varied_columns(path, list(table.columns), table.n))


def find_varied_columns(path: Path, names: Sequence[str], rows: int) -> tuple[str, ...]:
    """Return the columns of a CSV file whose cells are written in ways that values do not explain.

    ``names`` are those of its columns, in order. Lines of several kinds count as one more column;
    a file in another format has none.
    """
    if not rows or not path.name.lower().endswith(CSV_ENDINGS):
        return ()
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        content = file.read()
    delimiter = find_delimiter(path)
    columns = list(split_cells(content, delimiter, len(names)))
    found = [
        name
        for name, cells in zip(names, columns, strict=True)
        if is_varied_text(cells, delimiter) or is_varied_number(cells)
    ]
    if has_varied_lines(content, len(names)) or any(len(cells) != rows for cells in columns):
        found.append(LINES)
    return tuple(found)


def has_varied_lines(content: bytes, columns: int) -> bool:
    """Return whether lines end in several ways, or some are empty."""
    lines = content.removesuffix(b"\n").split(b"\n")
    ends = {line.endswith(b"\r") for line in lines[:-1]}
    return len(ends) > 1 or (columns > 1 and any(not line.strip() for line in lines))


def split_cells(content: bytes, delimiter: str, count: int) -> Iterator[Any]:
    """Yield the cells of each column as they stand in the file, with quotes and spaces."""
    import pyarrow as pa
    from pyarrow import csv

    names = [str(j) for j in range(count)]
    raw = csv.ParseOptions(delimiter=delimiter, quote_char=False, ignore_empty_lines=True)
    text = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
    )
    reading = csv.ReadOptions(column_names=names, skip_rows=1)
    try:
        table = csv.read_csv(pa.BufferReader(content), reading, raw, text)
    except pa.ArrowInvalid:  # some quotes hold a delimiter or a line end
        table = pa.table(split_quoted_cells(content, delimiter, names))
    for name in names:
        yield table[name].combine_chunks()


def split_quoted_cells(content: bytes, delimiter: str, names: Sequence[str]) -> dict[str, Any]:
    """Return the cells of each column of a file with delimiters or line ends in quotes."""
    mark = re.escape(delimiter)
    field = re.compile(rf'([ \t]*"(?:[^"]|"")*"[ \t]*|[^{mark}\n]*)({mark}|\n|$)')
    rows: list[list[str]] = [[]]
    for cell, end in field.findall(content.decode("utf-8", "replace").replace("\r\n", "\n")):
        rows[-1].append(cell)
        if end != delimiter:
            rows.append([])
    whole = [row for row in rows[1:] if len(row) == len(names)]
    return {name: [row[j] for row in whole] for j, name in enumerate(names)}


def is_varied_text(cells: Any, delimiter: str) -> bool:
    """Return whether some cells have quotes or spaces, or the empty ones are of several kinds."""
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(cells)
    quoted = matches(trimmed, r'^"')
    plain = pc.replace_substring_regex(trimmed, r'^"((?s).*)"$', r"\1")
    needs = matches(plain, rf'[{re.escape(delimiter)}"\n]')
    is_empty = pc.equal(pc.utf8_trim_whitespace(plain), "").to_numpy(zero_copy_only=False)
    if is_both(quoted[~needs & ~is_empty]) or len(pc.unique(cells.filter(is_empty))) > 1:
        return True
    filled = cells.filter(~is_empty)
    has_spaces = matches(filled, r"^\s|\s$")
    if not has_spaces.any() or is_aligned(pc.utf8_length(filled).to_numpy(), has_spaces):
        return False
    around = pc.replace_substring_regex(filled, r"^(\s*)((?s).*?)(\s*)$", r"\1.\3")
    return len(pc.unique(around)) > 1


def is_aligned(lengths: Ints, has_spaces: Bools) -> bool:
    """Return whether spaces fill cells up to one width, which no other cell is shorter than."""
    width = lengths[has_spaces]
    return bool((width == width[0]).all() and (lengths >= width[0]).all())


def is_varied_number(cells: Any) -> bool:
    """Return whether numbers or dates of equal kind are written in several ways."""
    import pyarrow.compute as pc

    plain = pc.utf8_trim(pc.utf8_trim_whitespace(cells), characters='"')
    filled = plain.filter(pc.not_equal(plain, ""))
    is_number = matches(filled, NUMBER)
    if 2 * is_number.sum() <= len(filled):
        return is_varied_date(filled)
    others = filled.filter(~is_number)
    if len(pc.unique(others)) > 1:  # words that all count as empty
        return True
    numbers = filled.filter(is_number)
    return not has_plain_digits(numbers) or is_varied_exponent(numbers)


def has_plain_digits(numbers: Any) -> bool:
    """Return whether digits follow from the values: as few as needed, or always as many."""
    import pyarrow.compute as pc

    is_negative, has_plus = matches(numbers, r"^-"), matches(numbers, r"^\+")
    if is_both(has_plus[~is_negative]):
        return False
    if is_both(matches(numbers, r"^[+-]?\.")[matches(numbers, r"^[+-]?0?\.")]):
        return False
    has_zeros = matches(numbers, r"^[+-]?0\d")  # in front, as in 007
    if has_zeros.any() and len(pc.unique(pc.utf8_length(numbers))) > 1:
        return False
    if len(pc.unique(count_decimals(numbers))) == 1 or is_significant(numbers):
        return True
    is_padded = matches(numbers, PADDED) & ~matches(numbers, ONE_ZERO)
    kinds = [matches(numbers, each).any() for each in (WHOLE, ONE_ZERO, NO_DIGIT)]
    return not is_padded.any() and int(sum(kinds)) <= 1


def count_decimals(numbers: Any) -> Any:
    """Return how many digits follow the point of each number; -1 without a point."""
    import pyarrow.compute as pc

    tail = pc.replace_substring_regex(numbers, r"[eE].*$", "")
    point = pc.find_substring(tail, ".")
    length = pc.subtract(pc.utf8_length(tail), pc.add(point, 1))
    return pc.if_else(pc.less(point, 0), -1, length)


def is_significant(numbers: Any) -> bool:
    """Return whether all numbers other than zero have equally many significant digits."""
    import pyarrow.compute as pc

    digits = pc.replace_substring_regex(numbers, r"[eE].*$|[^0-9eE]", "")
    digits = pc.replace_substring_regex(digits, r"^0+", "")
    lengths = pc.utf8_length(digits.filter(pc.not_equal(digits, "")))
    return len(pc.unique(lengths)) <= 1


def is_varied_exponent(numbers: Any) -> bool:
    """Return whether numbers of equal size are written with an exponent and without one."""
    has_exponent = matches(numbers, r"[eE]")
    if is_both(matches(numbers, "E")[has_exponent]):
        return True
    if not is_both(has_exponent):
        return False
    size = np.abs(np.array(numbers.to_pylist(), dtype=np.float64))
    if is_shorter_form(numbers, size, has_exponent):
        return False
    large, other = size >= 1, size > 0
    inside = [
        (size[has_exponent & large], size[~has_exponent & large], 1),
        (size[has_exponent & ~large & other], size[~has_exponent & ~large & other], -1),
    ]
    return any(
        len(ours) and len(theirs) and (sign * ours).min() <= (sign * theirs).max()
        for ours, theirs, sign in inside
    )


def is_shorter_form(numbers: Any, size: Floats, has_exponent: Bools) -> bool:
    """Return whether exponents are just where they make numbers shorter, as R writes them."""
    import pyarrow.compute as pc

    digits = pc.replace_substring_regex(numbers, r"[eE].*$|[^0-9eE]", "")
    digits = pc.replace_substring_regex(digits, r"^0+|0+$", "")
    count = np.maximum(pc.utf8_length(digits).to_numpy(), 1)
    power = np.floor(np.log10(np.where(size > 0, size, 1.0)) + 1e-12)
    point = count > np.maximum(power, 0) + 1
    plain = np.where(power < 0, 1 - power + count, np.maximum(power + 1, count + point))
    with_exponent = count + (count > 1) + np.where(np.abs(power) < 100, 4, 5)
    return bool((has_exponent == (with_exponent < plain)).all())


def is_varied_date(cells: Any) -> bool:
    """Return whether dates have several forms, or some a zero before a digit and others none."""
    import pyarrow.compute as pc

    is_date = matches(cells, DATE)
    if 2 * is_date.sum() <= len(cells):
        return False
    dates = cells.filter(is_date)
    shapes = pc.unique(pc.replace_substring_regex(dates, r"\d+", "9"))
    is_short = matches(dates, r"(^|\D)[1-9](\D|$)")
    return len(shapes) > 1 or bool(is_short.any() and matches(dates, r"(^|\D)0\d").any())


def matches(cells: Any, pattern: str) -> Bools:
    """Return which cells match a regular expression."""
    import pyarrow.compute as pc

    found = pc.match_substring_regex(cells, pattern)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


def is_both(found: Bools) -> bool:
    """Return whether some are true and some are not."""
    return bool(found.any() and not found.all())
