"""Plain text: lists of edges, and matrices of weights."""

from __future__ import annotations

import ast
import io
import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from p2psim.decimals import BeyondFloatError, refuse_beyond
from p2psim.errors import MeaningError
from p2psim.network.graph_files.contents import KEY, FileGraph, file_graph, text_of, whole_or_real
from p2psim.network.links import Links, digits, from_edges, refusal, unlike
from p2psim.text_tables import matrix_of, number, rows_of, shown


def read_edges(place: Path) -> FileGraph:
    """Read lines of two nodes, and a weight or attributes; what follows ``#`` is a comment.

    Raises
    ------
    MeaningError
        With the line, if it does not hold two nodes, a weight is no number or attributes are no mapping; or if there is
        no line.
    """
    nodes: dict[str, dict[str, Any]] = {}
    edges = []
    for line, text in enumerate(io.StringIO(text_of(place), newline=None), 1):
        fields = text.split("#", 1)[0].split(None, 2)
        if not fields:
            continue
        if len(fields) == 1:
            message = f"must hold two nodes, separated by spaces or tabs, got {shown(fields[0])}"
            raise MeaningError(KEY, f"{place}:{line}: {message}")
        a, b = fields[:2]
        nodes |= {a: {}, b: {}}
        edges.append((a, b, _attributes("".join(fields[2:]).strip(), f"{place}:{line}")))
    if not edges:
        raise MeaningError(KEY, f"{place} is empty")
    return file_graph(nodes, edges, False, ("",))


def _attributes(text: str, where: str) -> dict[str, Any]:
    """Read what a line says of a link beside its ends."""
    if not text:
        return {}
    try:
        refuse_beyond(text)
    except BeyondFloatError as error:
        raise MeaningError(KEY, f"{where}: {error}") from None
    if not text.startswith("{"):
        if number(text) is None:
            raise MeaningError(KEY, f"{where}: the weight must be a number, got {shown(text)}")
        return {"weight": whole_or_real(text)}
    found: Any = None
    try:
        with warnings.catch_warnings(action="ignore"):
            found = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        expected = "a mapping in Python's notation, such as {'weight': 2.0}"
        raise MeaningError(KEY, f"{where}: attributes must be {expected}, got {shown(text)}")
    return found


def read_matrix(place: Path) -> Links:
    """Read the matrix W: row and column i are agent i; 0 is no link.

    Raises
    ------
    MeaningError
        If it is no square matrix of numbers of 0 or more, has a link of an agent with itself, or is not symmetric. Two
        entries that differ by rounding alone are one: that of the upper triangle.
    """
    lines = [line for line in text_of(place).splitlines() if line.split("#", 1)[0].strip()]
    if not lines:
        raise MeaningError(KEY, f"{place} is empty")
    try:
        refuse_beyond("\n".join(lines))
        matrix = np.loadtxt(lines, delimiter=",", ndmin=2)
    except ValueError:
        matrix = _slowly(place)
    if matrix.shape[0] != matrix.shape[1]:
        raise MeaningError(KEY, f"{place} must be a square matrix, got {matrix.shape[0]} × {matrix.shape[1]}")
    _refuse(place, ~np.isfinite(matrix) | (matrix < 0), matrix, "must be a positive number, or 0 for no link")
    _refuse(place, np.diag(np.diag(matrix) != 0), matrix, "would link an agent with itself")
    _refuse_rounded(place, matrix)
    differs = np.argwhere(unlike(matrix, matrix.T))
    if differs.size:
        i, j = differs[0]
        raise MeaningError(
            KEY,
            f"{_where(place, i)}: links must go both ways: row {i}, column {j} (from 0) is {digits(matrix[i, j])}, but "
            f"row {j}, column {i} is {digits(matrix[j, i])}",
        )
    a, b = np.nonzero(np.triu(matrix))
    return from_edges(len(matrix), a, b, matrix[a, b])


def _slowly(place: Path) -> np.ndarray:
    """Read what has quotation marks, or a fault."""
    try:
        return matrix_of(place, KEY)
    except MeaningError as error:
        hint = "expected the matrix W, without names of rows or columns"
        raise MeaningError(KEY, f"{error.faults[0].message}; {hint}") from None


def _refuse(place: Path, wrong: np.ndarray, matrix: np.ndarray, message: str) -> None:
    found = np.argwhere(wrong)
    if found.size:
        i, j = found[0]
        raise MeaningError(
            KEY,
            f"{_where(place, i)}: row {i}, column {j} (from 0) is {digits(matrix[i, j])}, which {message}",
        )


def _refuse_rounded(place: Path, matrix: np.ndarray) -> None:
    """Refuse a whole number that no double holds, as `p2psim.network.links` does."""
    for i in np.flatnonzero((matrix >= 2.0**53).any(axis=1)):
        line, cells = next(itertools.islice(rows_of(place, KEY), int(i), None))
        for value in map(whole_or_real, map(str.strip, cells)):
            if value and (why := refusal(value)):
                raise MeaningError(KEY, f"{place}:{line}: a weight {why}")


def _where(place: Path, row: int) -> str:
    """Place of a row, which counts from 0."""
    line, _ = next(itertools.islice(rows_of(place, KEY), int(row), None))
    return f"{place}:{line}"
