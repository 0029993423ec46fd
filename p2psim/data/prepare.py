"""Preparation of each owner's records from the ``data`` section.

The order is: classes are chosen and numbered; rows are shuffled, and the last ones are public; the others are divided;
test records are set aside; labels are centred by owner; features are made; x is scaled; y is scaled. What is fitted is
fitted on the public rows alone, so that it costs owners no privacy; the exceptions are named in ``data_dependent``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.process import one_thread
from p2psim.core.randomness import generator, stream_key
from p2psim.core.text_tables import refuse_repeated
from p2psim.data.classes import SIGNS, Column, owners_of, with_classes
from p2psim.data.columns import require
from p2psim.data.features import apply_features
from p2psim.data.groups import Groups, centre_labels, group_of, groups_in, merge_groups, of_owners, set_aside
from p2psim.data.partitions import ByColumn, Partition, check_agents, check_division
from p2psim.data.records import PARTITION, SHUFFLE, DataRequest, Held, Table, TestSet, offsets_of
from p2psim.data.scaling import fill_gaps, scale_x, scale_y, warnings_of
from p2psim.data.section import DataSection


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
    class_names : tuple of str
        Names of the classes, in order; none where labels are numbers. y is ±1 for two classes, and 0 … C − 1 for more
        (`p2psim.data.classes.class_numbers` gives numbers from 0 on for both).
    test_X : ndarray of float64, shape (t, p), C-contiguous
        Test records, owner by owner, mapped and scaled as the training records are.
    test_y : ndarray of float64, shape (t,)
    test_offsets : ndarray of int64, shape (N + 1,)
        Owner i tests with rows ``test_offsets[i]:test_offsets[i + 1]``, possibly none.
    targets : ndarray of float64, shape (N, q), or None
        The models that generated labels were drawn from, for the features as the source drew them.
    profiles : scipy.sparse.csr_array of float64, shape (N, items), or None
        Of ratings: each owner's training labels by item, centred if the labels are; what owners are
        compared by.
    data_dependent : tuple of str
        What was computed from owners' records, and no privacy budget pays for: ``user means``,
        ``als features``. (So are profiles, if they are used.)
    fitted : dict
        Every step and fitted number, in plain JSON types.
    warnings : tuple of str
    columns : mapping of str to ndarray of float64, shape (N,)
        Columns that have one number per owner, as they are written.
    """

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    labels: tuple[str, ...]
    groups: tuple[str, ...] | None
    x_l1: float | None
    x_max: float | None
    y_max: float | None
    class_names: tuple[str, ...]
    test_X: np.ndarray
    test_y: np.ndarray
    test_offsets: np.ndarray
    targets: np.ndarray | None
    profiles: Any
    data_dependent: tuple[str, ...]
    fitted: dict[str, object]
    warnings: tuple[str, ...]
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def class_count(self) -> int:
        """Number C of classes: 0 where labels are numbers, 2 where they are ±1."""
        return len(self.class_names)


def prepare(
    section: DataSection,
    seed: int,
    replica: int | None,
    variant: str = "",
    agents: int | None = None,
    labels: tuple[str, ...] | None = None,
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
    labels : tuple of str or None
        Names that the network gives to owners who have no others; None: 0 … N − 1.

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
    seed = seed if section.seed is None else section.seed
    partition = section.partition
    merged = section.groups if section.groups is not None and section.groups.merge else None
    if merged is not None:
        check_agents(len(merged.names), agents, "data.groups.merge")
    # Who is merged is no agent of the network: the data itself must say how many there are.
    holders = agents if merged is None else None
    request = DataRequest(
        key=stream_key(seed, (replica or 0) if section.records_redrawn else None, "data", variant),
        agents=holders,
        public=section.public.last if section.public else 0,
        held_by=None if partition is None else partition.divides_by,
        labels=labels if merged is None else None,
        classes=section.classes is not None,
        per_owner=tuple(section.per_owner or ()),
    )
    # Streams apart from those of the records, whose owner's generator has already begun at its stream.
    split_key = stream_key(seed, (replica or 0) if section.redrawn else None, "data", f"{variant}\x1fsplit")
    # Overflow is reported, by key, below.
    with one_thread(), np.errstate(over="ignore", invalid="ignore"):
        loaded = with_classes(section.source.load(request), section.classes, section.source.kind)
        refuse_repeated(loaded.names, "data.source", section.source.kind)
        if request.per_owner:
            if not isinstance(loaded, Table) or set(request.per_owner) - loaded.numbers.keys():
                raise MeaningError("data.per_owner", f"is for csv and parquet, got {section.source.kind}")
            if merged is not None:
                message = "owners that merge may have different numbers; remove merge"
                raise MeaningError("data.per_owner", message)
        steps: dict[str, object] = {}
        warnings: list[str] = []
        if isinstance(loaded, Held):
            if partition is not None:
                message = f"{section.source.kind} gives each owner its records already"
                raise MeaningError("data.partition", message)
            check_agents(len(loaded.labels), holders, "data.source")
            if section.groups is not None and section.groups.by == "column":
                raise MeaningError("data.groups.by", f"{section.source.kind} has no columns; take records")
            held = loaded
        else:
            held = _divide(section, loaded, request, steps, warnings)
        if request.labels is not None and _is_unnamed(held, partition, loaded):
            held = replace(held, labels=request.labels)
        if merged is not None:
            steps["merged"] = np.diff(held.offsets).tolist()
            held = merge_groups(held, merged)
        if section.test_fraction is not None:
            if held.test is not None and len(held.test.y):
                message = f"{section.source.kind} gives each owner its test records already"
                raise MeaningError("data.test_fraction", message)
            held = set_aside(held, section.test_fraction, split_key)
            steps["test_fraction"] = section.test_fraction
        if section.validation_fraction is not None:
            key = stream_key(
                seed, (replica or 0) if section.redrawn else None, "data", f"{variant}\x1fvalidation"
            )
            held = set_aside(held, section.validation_fraction, key)
            steps["validation_fraction"] = section.validation_fraction
        return _finish(section, held, split_key, steps, warnings)


def _is_unnamed(held: Held, partition: Partition | None, loaded: Table | Held) -> bool:
    """Whether owners are called 0 … N − 1 because nothing names them: no column, no source."""
    by_column = isinstance(loaded, Table) if partition is None else partition.divides_by is not None
    return not by_column and held.labels == tuple(map(str, range(len(held.labels))))


def _divide(
    section: DataSection, table: Table, request: DataRequest, steps: dict[str, object], warnings: list[str]
) -> Held:
    """Shuffle, take the public rows off, and give the others to owners; the steps and warnings are added to.

    Which rows an owner gets does not depend on features, nor on how labels are scaled, so this may come before scaling,
    and rows that nobody gets need no scaling.
    """
    rows = len(table.y) - table.tests
    order = generator(request.key, SHUFFLE).permutation(rows) if section.shuffle else np.arange(rows)
    if request.public >= rows:
        raise MeaningError(
            "data.public.last",
            f"must leave rows for owners: it is {request.public}, and there are {rows} rows",
        )
    private, public = order[: rows - request.public], order[rows - request.public :]
    partition = section.partition
    if partition is None and table.held_by is not None:
        partition = ByColumn(column=table.held_by)
    if partition is None:
        raise MeaningError("data.partition", "give a partition, such as equal or column")
    import pandas as pd

    column = tested = None
    tests = np.arange(rows, rows + table.tests)

    def values_of(name: str, key: str) -> Any:
        require(table.columns, name, key)
        values = table.columns[name]
        return values if isinstance(values, pd.Categorical) else np.asarray(values)

    if (name := partition.divides_by) is not None:
        values = values_of(name, "data.partition.column")
        column = Column(values[private], lambda marked: table.where(int(private[marked].min())))
        tested = Column(values[tests], lambda marked: table.where(int(tests[marked].min())))
    warnings += table.warnings
    random = generator(request.key, PARTITION)
    owners, labels = partition.split(table.y[private], request.agents, column, random)
    check_division(owners, labels, len(private), request.agents, partition.kind)
    rows_of, groups = [private[places] for places in owners], None
    held = np.concatenate(rows_of)
    if section.groups is not None and section.groups.column is not None:
        values = values_of(section.groups.column, "data.groups.column")
        groups = groups_in(values, rows_of, labels, section.groups, table.where)
    columns = {
        name: of_owners(values, rows_of, labels, name, "data.per_owner", table.where)
        for name, values in table.numbers.items()
    }
    # Sizes that leave some rows over are as good as any; that most are left over may be a slip.
    if len(held) < len(private) / 2:
        warnings.append(f"{len(private) - len(held)} of {len(private)} rows are held by no owner")
    notes = dict(table.notes)
    if table.fill is not None:
        notes["filled"] = fill_gaps(table.X, public, table.fill, table.names)
    x_l1, x_max = section.source.x_bounds()
    test = None
    if table.tests:
        owner_of_test = _owners_of_tests(labels, tested, tests.size)
        steps["test_rows"] = int((owner_of_test >= 0).sum())
        if unknown := int((owner_of_test < 0).sum()):
            warnings.append(f"{unknown} of {tests.size} test records belong to no owner and are left out")
        kept = np.argsort(owner_of_test, kind="stable")[unknown:]
        sizes = np.bincount(owner_of_test[kept], minlength=len(labels))
        test = TestSet(table.X[tests[kept]], table.y[tests[kept]], offsets_of(sizes))
    steps |= {"rows": rows, "shuffled": section.shuffle, "public_rows": request.public}
    steps |= {"partition": partition.kind, "unused_rows": len(private) - len(held)}
    return Held(
        X=table.X[held],
        y=table.y[held],
        offsets=offsets_of(list(map(len, owners))),
        names=table.names,
        labels=labels,
        public=table.X[public],
        public_labels=table.y[public],
        x_l1=x_l1,
        x_max=x_max,
        notes=notes,
        items=table.items,
        test=test,
        classes=table.classes,
        groups=groups,
        columns=columns,
    )


def _owners_of_tests(labels: tuple[str, ...], column: Column | None, tests: int) -> np.ndarray:
    """Owner of each test record, by the column of the partition or in turn; −1 where it is nobody's."""
    if column is None:
        return np.arange(tests) % len(labels)
    of_row, names = owners_of(column.values, "data.partition.column", column.first)
    place = {label: owner for owner, label in enumerate(labels)}
    return np.array([place.get(name, -1) for name in names], dtype=np.int64)[of_row]


def _finish(
    section: DataSection, held: Held, key: np.ndarray, steps: dict[str, object], warnings: list[str]
) -> Prepared:
    """Centre, map and scale what owners hold."""
    fitted: dict[str, object] = {"source": {"kind": section.source.kind, **held.notes}, **steps}
    data_dependent: list[str] = []
    if held.classes:
        _refuse_numbers(section, held.classes)
        fitted["classes"] = list(held.classes)
    if section.center is not None:
        centre_labels(held)
        fitted["center"] = section.center
        data_dependent.append("user means")
    profiles = None
    if held.items is not None:
        from p2psim.data.features.als import profiles_of

        profiles = profiles_of(held, held.items)
    if section.features or held.items is not None:
        held, fitted["features"] = apply_features(section.features, held, key, section.source.kind)
        data_dependent += [f"{step.kind} features" for step in section.features if step.data_dependent]
    test = held.tests
    y, y_max = held.y, None
    class_names = held.classes or (SIGNS if _are_signs(y, test.y) else ())
    scale = section.scale
    scaled: dict[str, dict[str, object]] = {}
    if scale.x is not None:
        scaled["x"] = scale_x(scale.x, held.X, held.public, bool(class_names), test.X)
        held = replace(held, x_l1=scale.x.bound, x_max=scale.x.bound)
    if scale.y is not None:
        scaled["y"] = scale_y(scale.y, y, held.public_labels, test.y)
        y_max = scale.y.bound
        class_names = SIGNS if _are_signs(y, test.y) else ()
    elif len(class_names) == 2:
        y_max = 1.0
    if scaled:
        fitted["scale"] = scaled
        warnings += warnings_of(scale, scaled, len(y))
    if not all(np.isfinite(numbers).all() for numbers in (held.X, y, test.X, test.y)):
        message = "numbers overflow: rescale the data"
        raise MeaningError("data.features" if section.features else "data.scale", message)
    groups, records = section.groups, np.diff(held.offsets)
    fitted["records"] = records.tolist()
    return Prepared(
        X=np.ascontiguousarray(held.X),
        y=y,
        offsets=held.offsets,
        labels=held.labels,
        groups=held.groups or (None if groups is None else _groups(groups, held.labels, records)),
        x_l1=held.x_l1,
        x_max=held.x_max,
        y_max=y_max,
        class_names=class_names,
        test_X=np.ascontiguousarray(test.X),
        test_y=test.y,
        test_offsets=test.offsets,
        targets=held.targets,
        profiles=profiles,
        data_dependent=tuple(data_dependent),
        fitted=fitted,
        warnings=tuple(warnings),
        columns=held.columns,
    )


def _groups(groups: Groups, labels: tuple[str, ...], records: np.ndarray) -> tuple[str, ...]:
    return labels if groups.merge else group_of(groups, records)


def public_bounds(section: DataSection, y: np.ndarray) -> tuple[float | None, float | None, float | None]:
    """Public bounds on ‖x‖₁, |x_j| and |y| of prepared data, as `Prepared` has them, from what the scenario says."""
    scale = section.scale
    y_max = scale.y.bound if scale.y is not None else 1.0 if _are_signs(y, y) else None
    if scale.x is not None:
        return scale.x.bound, scale.x.bound, y_max
    return *((None, None) if section.features else section.source.x_bounds()), y_max


def _refuse_numbers(section: DataSection, classes: tuple[str, ...]) -> None:
    """Raise if classes are to be treated as numbers."""
    for key, given in (("data.scale.y", section.scale.y), ("data.center", section.center)):
        if given is not None:
            names = ", ".join(classes[:3]) + (", …" if len(classes) > 3 else "")
            message = f"is for labels that are numbers; these are classes ({names}): leave it out"
            raise MeaningError(key, message)


def _are_signs(y: np.ndarray, test_y: np.ndarray) -> bool:
    return bool((np.abs(y) == 1).all() and (np.abs(test_y) == 1).all())
