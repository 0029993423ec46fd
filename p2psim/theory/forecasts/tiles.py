"""Second moments as symmetric matrices in tiles, and the two maps of `LinearDescent` of them."""

from collections.abc import Iterator

import numpy as np

from p2psim.core.compiled import njit, unwritten
from p2psim.theory.forecasts.descent import LinearDescent, refuse_infinite

#: Rows and columns of a tile, about.
_WIDTH = 100


class Tiles:
    """Symmetric matrices as tiles of their upper halves, and the two maps of them.

    A matrix takes half the memory, and a step passes through it once: the product with K is made for the columns of
    one row of tiles after the other, and added while the processor's caches hold it.

    Parameters
    ----------
    model : LinearDescent
    """

    def __init__(self, model: LinearDescent):
        n, p = model.start.shape
        self._model, self._rate = model, model.chance * model.step
        #: Agents of a tile; its rows; how many there are along a side.
        self._agents = min(n, max(1, _WIDTH // p))
        self._width = self._agents * p
        self._count = -(-n // self._agents)
        size = self._count * self._width
        self._rates, self._ones = np.zeros(size), np.ones(size)
        self._rates[: n * p] = np.repeat(self._rate, p)
        self._panel, self._moved = np.zeros((size, self._width)), np.zeros((size, self._width))
        columns = np.arange(self._count)
        #: Places of the tiles of the diagonal; rows and columns of all.
        self._own = columns * (columns + 3) // 2
        self._rows = np.concatenate([np.arange(J + 1) for J in columns])
        self._columns = np.repeat(columns, columns + 1)
        self._weights = np.where(self._rows == self._columns, 1.0, 2.0)
        _, others, _ = model.links
        self._by_other = np.argsort(others, kind="stable")

    def of(self, matrix: np.ndarray) -> np.ndarray:
        """A symmetric matrix, shape (n·p, n·p), as tiles."""
        size, w = len(self._rates), self._width
        padded = np.zeros((size, size))
        padded[: len(matrix), : len(matrix)] = matrix
        return padded.reshape(self._count, w, self._count, w)[self._rows, :, self._columns, :]

    def _blocks(self, tiles: np.ndarray) -> np.ndarray:
        """Own blocks of all agents, shape (n, p, p)."""
        n, p = self._model.start.shape
        own = tiles[self._own].reshape(self._count, self._agents, p, self._agents, p)
        return np.einsum("JaiaK->JaiK", own).reshape(-1, p, p)[:n]

    def traces(self, tiles: np.ndarray) -> np.ndarray:
        """Traces of own blocks, shape (n,)."""
        return np.asarray(np.trace(self._blocks(tiles), axis1=1, axis2=2))

    def form(self, tiles: np.ndarray, z: np.ndarray) -> float:
        """zᵀQz."""
        padded = np.zeros(len(self._rates))
        padded[: z.size] = z
        parts = padded.reshape(self._count, -1)
        turned = (tiles @ parts[self._columns, :, None])[..., 0]
        return float(np.einsum("t,tr,tr->", self._weights, turned, parts[self._rows]))

    def traces_with(self, tiles: np.ndarray, covariance: np.ndarray) -> float:
        """Σ C_ij·tr Q_ij."""
        n, p = self._model.start.shape
        held = np.zeros((self._count * self._agents,) * 2)
        held[:n, :n] = covariance
        held = held.reshape(self._count, self._agents, self._count, self._agents)[
            self._rows, :, self._columns
        ]
        blocks = tiles.reshape(len(tiles), self._agents, p, self._agents, p)
        return float(np.einsum("t,tij,tiaja->", self._weights, held, blocks))

    def add_to_diagonal(self, tiles: np.ndarray, values: np.ndarray) -> None:
        """Add numbers, shape (n·p,), to the diagonal."""
        padded, each = np.zeros(len(self._rates)), np.arange(self._width)
        padded[: values.size] = values
        tiles[self._own[:, None], each, each] += padded.reshape(self._count, -1)

    def dual_into(self, Q: np.ndarray, before: np.ndarray, keep: float, change: float, less: float) -> None:
        """Write keep·Q − change·(Q − dual(Q)) − less·before to ``before``.

        Q less its dual is KX + (KX)ᵀ, X = GQ − ½BK with B = diag(γ_i·a_i²·Q_ii).
        """
        halves = (self._rate * self._model.step / 2)[:, None, None] * self._blocks(Q)
        for _ in self._into(Q, before, keep, change, less, self._rates, self._ones, halves):
            pass

    def primal_into(
        self,
        S: np.ndarray,
        before: np.ndarray,
        keep: float,
        change: float,
        less: float,
        more: np.ndarray | None = None,
        share: float = 0.0,
    ) -> None:
        """Write keep·S − change·(S − primal(S)) − less·before + share·more to ``before``.

        S less its primal is GKS + (GKS)ᵀ − diag(γ_i·a_i²·[KSK]_ii), and [KSK]_ii = Σ_j (KS)_ij·K_ji.
        """
        model, (n, p), (starts, others, weights) = self._model, self._model.start.shape, self._model.links
        twice, near = np.zeros((n, p, p)), np.empty((len(others), p, p))
        none = np.zeros((0, p, p))
        for J in self._into(S, before, keep, change, less, self._ones, self._rates, none):
            first, last = J * self._agents, min((J + 1) * self._agents, n)
            moved, each = self._moved.reshape(-1, p, self._agents, p), np.arange(last - first)
            twice[first:last] = moved[first + each, :, each] @ model.blocks[first:last]
            some = slice(starts[first], starts[last])
            mine = np.repeat(each, np.diff(starts[first : last + 1]))
            near[some] = weights[some, None, None] * moved[others[some], :, mine]
        twice -= np.add.reduceat(near[self._by_other], starts[:-1])
        # Made symmetric: what rounding leaves of asymmetry would grow from step to step.
        added = (change * self._rate * model.step / 2)[:, None, None] * (twice + np.swapaxes(twice, 1, 2))
        held = np.zeros((self._count * self._agents, p, p))
        held[:n] = added
        own = before.reshape(len(before), self._agents, p, self._agents, p)
        each = np.arange(self._agents)
        own[self._own[:, None], each, :, each] += held.reshape(self._count, self._agents, p, p)
        if share and more is not None:
            before += share * more

    def _into(
        self,
        now: np.ndarray,
        before: np.ndarray,
        keep: float,
        change: float,
        less: float,
        inner: np.ndarray,
        outer: np.ndarray,
        halves: np.ndarray,
    ) -> Iterator[int]:
        """Write keep·now − change·(FKX + (FKX)ᵀ) − less·before, X = diag(inner)·now − halves·K, F = diag(outer).

        Yields each row of tiles whose columns of KX stand in ``_moved``.
        """
        model, (n, p), w = self._model, self._model.start.shape, self._width
        links, blocks = model.links, unwritten(model.blocks)
        given = unwritten(now), unwritten(inner), unwritten(halves)
        right, out = (array[: n * p].reshape(n, p, w) for array in (self._panel, self._moved))
        for J in range(self._count):
            _columns_of(*links, blocks, *given, J, self._panel)
            np.matmul(model.blocks, right, out=out)
            _fold_columns(
                *links, given[0], unwritten(outer), keep, change, less, J, self._panel, self._moved, p, before
            )
            yield J
        refuse_infinite(before[self._own].diagonal(axis1=1, axis2=2))


@njit()
def _columns_of(starts, others, weights, blocks, now, inner, halves, J, panel):  # type: ignore[no-untyped-def]
    """Columns of X: see `Tiles._into`."""
    w, p = now.shape[1], blocks.shape[1]
    for of in range(panel.shape[0] // w):
        tile = now[J * (J + 1) // 2 + of] if of <= J else now[of * (of + 1) // 2 + J]
        for r in range(w):
            factor, out = inner[of * w + r], panel[of * w + r]
            if of <= J:
                row = tile[r]
                for c in range(w):
                    out[c] = factor * row[c]
            else:
                for c in range(w):
                    out[c] = factor * tile[c, r]
    for j in range(J * w // p, min((J + 1) * w // p, halves.shape[0])):
        left = j * p - J * w
        for b in range(p):
            for a in range(p):
                total = 0.0
                for c in range(p):
                    total += halves[j, a, c] * blocks[j, c, b]
                panel[j * p + a, left + b] -= total
                for e in range(starts[j], starts[j + 1]):
                    panel[others[e] * p + a, left + b] += weights[e] * halves[others[e], a, b]


@njit()
def _fold_columns(  # type: ignore[no-untyped-def]
    starts, others, weights, now, outer, keep, change, less, J, panel, moved, p, before
):
    """Take neighbours from columns of KX, and add these to the tiles of their row and column: see `Tiles._into`."""
    w = now.shape[1]
    for i in range(starts.size - 1):
        for a in range(p):
            out, e, end = moved[i * p + a], starts[i], starts[i + 1]
            while e + 5 <= end:
                s, t, u, v, x = weights[e], weights[e + 1], weights[e + 2], weights[e + 3], weights[e + 4]
                at_s, at_t = panel[others[e] * p + a], panel[others[e + 1] * p + a]
                at_u, at_v = panel[others[e + 2] * p + a], panel[others[e + 3] * p + a]
                at_x = panel[others[e + 4] * p + a]
                for c in range(w):
                    out[c] -= s * at_s[c] + t * at_t[c] + u * at_u[c] + v * at_v[c] + x * at_x[c]
                e += 5
            while e < end:
                s, at_s = weights[e], panel[others[e] * p + a]
                for c in range(w):
                    out[c] -= s * at_s[c]
                e += 1
    for of in range(moved.shape[0] // w):
        rows, rates = moved[of * w : (of + 1) * w], outer[of * w : (of + 1) * w]
        if of < J:
            # The other half came with the columns of of.
            tile = before[J * (J + 1) // 2 + of]
            for r in range(w):
                old, row, factor = tile[r], rows[r], change * rates[r]
                for c in range(w):
                    old[c] -= factor * row[c]
            continue
        own, tile = now[of * (of + 1) // 2 + J], before[of * (of + 1) // 2 + J]
        for r in range(w):
            old, row = tile[r], own[r]
            for c in range(w):
                old[c] = keep * row[c] - less * old[c] - change * rates[c] * rows[c, r]
        if of == J:
            for r in range(w):
                old, row, factor = tile[r], rows[r], change * rates[r]
                for c in range(w):
                    old[c] -= factor * row[c]
