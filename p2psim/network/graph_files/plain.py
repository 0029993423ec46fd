"""Plain text: lists of edges, and matrices of weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from p2psim.errors import MeaningError, first_line
from p2psim.network.graph_files.contents import KEY, FileGraph, text_of
from p2psim.network.links import Links, digits, from_edges, unlike


def read_edges(place: Path) -> FileGraph:
    """Read lines of two nodes, and a weight or attributes; what follows ``#`` is a comment.

    Raises
    ------
    MeaningError
        If there is no line, or one that does not hold two nodes.
    ValueError
        If a weight is no number or attributes are no mapping.
    """
    import networkx as nx

    lines = text_of(place).splitlines()
    rows = [row for row in (line.split("#", 1)[0].split(None, 2) for line in lines) if row]
    if not rows:
        raise MeaningError(KEY, f"{place} is empty")
    mapped = any(len(row) > 2 and row[2].lstrip().startswith("{") for row in rows)
    if any(len(row) == 1 for row in rows):
        raise MeaningError(KEY, f"{place}: a line must hold two nodes")
    data: Any = mapped or ([("weight", float)] if any(len(row) > 2 for row in rows) else False)
    graph: nx.Graph[Any] = nx.parse_edgelist(lines, create_using=nx.MultiGraph, data=data)
    return FileGraph(graph, [list(map(str, graph))])


def read_matrix(place: Path) -> Links:
    """Read the matrix W: row and column i are agent i; 0 is no link.

    Raises
    ------
    MeaningError
        If it is no square matrix of numbers of 0 or more, has a link of an agent with itself, or is not symmetric. Two
        entries that differ by rounding alone are one: that of the upper triangle.
    """
    text = text_of(place).strip()
    if not text:
        raise MeaningError(KEY, f"{place} is empty")
    try:
        matrix = np.loadtxt(text.splitlines(), delimiter=",", ndmin=2)
    except ValueError as error:
        raise MeaningError(KEY, f"{place} is not a matrix of numbers: {first_line(error)}") from None
    if matrix.shape[0] != matrix.shape[1]:
        raise MeaningError(KEY, f"{place} must be a square matrix, got {matrix.shape[0]} × {matrix.shape[1]}")
    _refuse(~np.isfinite(matrix) | (matrix < 0), matrix, "must be a positive number, or 0 for no link")
    _refuse(np.diag(np.diag(matrix) != 0), matrix, "would link an agent with itself")
    differs = np.argwhere(unlike(matrix, matrix.T))
    if differs.size:
        i, j = differs[0]
        raise MeaningError(
            KEY,
            f"links must go both ways: row {i}, column {j} (from 0) is {digits(matrix[i, j])}, but row {j}, "
            f"column {i} is {digits(matrix[j, i])}",
        )
    a, b = np.nonzero(np.triu(matrix))
    return from_edges(len(matrix), a, b, matrix[a, b])


def _refuse(wrong: np.ndarray, matrix: np.ndarray, message: str) -> None:
    found = np.argwhere(wrong)
    if found.size:
        i, j = found[0]
        raise MeaningError(KEY, f"row {i}, column {j} (from 0) is {digits(matrix[i, j])}, which {message}")
