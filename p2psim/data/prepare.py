"""From the ``data`` section to the records of each owner.

The order is: rows shuffled, the last ones public; features; x scaled; y scaled; rows divided. Everything
fitted is fitted on the public rows alone, so that it costs owners no privacy.
"""

from dataclasses import dataclass, replace

import numpy as np

from p2psim.data.features import apply_features
from p2psim.data.partitions import ByColumn, check_agents, column_for, group_of, split
from p2psim.data.records import PARTITION, SHUFFLE, Held, Request, Table
from p2psim.data.scaling import scale_x, scale_y
from p2psim.data.section import DataSection
from p2psim.errors import MeaningError
from p2psim.randomness import generator, stream_key


@dataclass(frozen=True)
class Prepared:
    """Records of all owners.

    Attributes
    ----------
    X : ndarray of float64, shape (n, p), C-contiguous
        Owner by owner.
    y : ndarray of float64, shape (n,)
    offsets : ndarray of int64, shape (N + 1,)
        Owner i holds rows ``offsets[i]:offsets[i + 1]``; at least one.
    labels : tuple of str
        The N owners.
    groups : tuple of str or None
        The owners' groups.
    x_l1, x_max, y_max : float or None
        Public bounds on ‖x‖₁, |x_j| and |y|; None where nothing guarantees one.
    classes : bool
        Whether all labels are ±1.
    fitted : dict
        Every step and fitted number, in plain JSON types.
    warnings : tuple of str
    """

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    labels: tuple[str, ...]
    groups: tuple[str, ...] | None
    x_l1: float | None
    x_max: float | None
    y_max: float | None
    classes: bool
    fitted: dict[str, object]
    warnings: tuple[str, ...]


def prepare(
    section: DataSection, seed: int, replica: int | None, variant: str = "", agents: int | None = None
) -> Prepared:
    """Read or draw the records, and make them ready.

    Parameters
    ----------
    section : DataSection
    seed : int
        The scenario's; the section's own comes first.
    replica : int or None
        Matters only to data that are redrawn in every replica; None is the first one.
    variant : str
        Tells apart cells that shall have different data draws.
    agents : int or None
        Number of owners that the network asks for; None: as many as the data gives.

    Returns
    -------
    Prepared

    Raises
    ------
    MeaningError
        If the section cannot be carried out, by the key that is to blame.
    MissingSourceError
        If a file or a package is not there.
    """
    from threadpoolctl import threadpool_limits

    seed = seed if section.seed is None else section.seed
    partition = section.partition
    request = Request(
        key=stream_key(seed, (replica or 0) if section.redrawn else None, "data", variant),
        agents=agents,
        public=section.public.last if section.public else 0,
        held_by=partition.column if isinstance(partition, ByColumn) else None,
    )
    # One thread: sums must not depend on how many a worker may use. Overflow is reported, by key, below.
    with threadpool_limits(limits=1, user_api="blas"), np.errstate(over="ignore", invalid="ignore"):
        loaded = section.source.load(request)
        if isinstance(loaded, Held):
            if partition is not None:
                raise MeaningError(
                    "data.partition", f"{section.source.kind} gives each owner its records already"
                )
            check_agents(len(loaded.labels), agents, "data.source")
            return _finish(section, loaded, {}, ())
        held, steps, warnings = _divide(section, loaded, request)
        return _finish(section, held, steps, warnings)


def _divide(
    section: DataSection, table: Table, request: Request
) -> tuple[Held, dict[str, object], tuple[str, ...]]:
    """Shuffle, take the public rows off, and give the others to owners.

    Which rows an owner gets does not depend on features or labels, so this may come before scaling, and
    rows that nobody gets need no scaling.
    """
    rows = len(table.y)
    order = generator(request.key, SHUFFLE).permutation(rows) if section.shuffle else np.arange(rows)
    if request.public >= rows:
        raise MeaningError("data.public.last", f"must leave rows for owners: {request.public} of {rows} rows")
    mine, public = order[: rows - request.public], order[rows - request.public :]
    partition = section.partition
    if partition is None and table.held_by is not None:
        partition = ByColumn(column=table.held_by)
    if partition is None:
        raise MeaningError("data.partition", "say who holds which rows: contiguous, sizes, equal or column")
    column = column_for(partition, table.columns)
    warnings = list(table.warnings)
    owners, labels = split(
        partition,
        len(mine),
        request.agents,
        None if column is None else np.asarray(column)[mine],
        generator(request.key, PARTITION),
    )
    sizes = np.array([len(rows_of) for rows_of in owners])
    held = mine[np.concatenate(owners)]
    if len(held) < len(mine):
        warnings.append(f"{len(mine) - len(held)} of {len(mine)} rows are held by no owner")
    steps: dict[str, object] = {
        "rows": rows,
        "shuffled": section.shuffle,
        "public_rows": request.public,
        "partition": partition.kind,
    }
    return (
        Held(
            X=table.X[held],
            y=table.y[held],
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            names=table.names,
            labels=labels,
            public=table.X[public],
            public_labels=table.y[public],
            notes=table.notes,
        ),
        steps,
        tuple(warnings),
    )


def _finish(
    section: DataSection, held: Held, steps: dict[str, object], warnings: tuple[str, ...]
) -> Prepared:
    """Map and scale what owners hold, by what the public rows say."""
    fitted: dict[str, object] = {"source": {"kind": section.source.kind, **held.notes}, **steps}
    if section.features:
        featured = apply_features(section.features, held.X, held.public, held.names)
        held = replace(
            held, X=featured.X, public=featured.public, names=featured.names, x_l1=None, x_max=None
        )
        fitted["features"], warnings = featured.fitted, warnings + featured.warnings
    y, y_max = held.y, None
    classes = bool((np.abs(y) == 1).all())
    scale = section.scale
    scaled: dict[str, object] = {}
    if scale.x is not None:
        scaled["x"] = scale_x(scale.x, held.X, held.public, classes)
        held = replace(held, x_l1=scale.x.bound, x_max=scale.x.bound)
    if scale.y is not None:
        scaled["y"] = scale_y(scale.y, y, held.public_labels)
        y_max = scale.y.bound
        classes = bool((np.abs(y) == 1).all())
    elif classes:
        y_max = 1.0
    if scaled:
        fitted["scale"] = scaled
    if not (np.isfinite(held.X).all() and np.isfinite(y).all()):
        raise MeaningError(
            "data.features" if section.features else "data.scale", "numbers overflow: rescale the data"
        )
    records = np.diff(held.offsets)
    fitted["records"] = records.tolist()
    return Prepared(
        X=np.ascontiguousarray(held.X),
        y=y,
        offsets=held.offsets,
        labels=held.labels,
        groups=None if section.groups is None else group_of(section.groups, records),
        x_l1=held.x_l1,
        x_max=held.x_max,
        y_max=y_max,
        classes=classes,
        fitted=fitted,
        warnings=warnings,
    )
