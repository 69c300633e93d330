"""Pins the Delta and Iceberg tables that a Spark DataFrame reads to versions.

Unless the program names a version, Spark looks up a table's newest version each time it computes a
DataFrame. Spark Connect does not show the plan, so its frames are not changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from hearth.errors import invalid

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DELTA_INDEX = "org.apache.spark.sql.delta.files.TahoeLogFileIndex"
_DELTA, _ICEBERG = "Delta version", "Iceberg snapshot"
# Iceberg's reader options that select snapshots.
_READS = ("snapshot-id", "as-of-timestamp", "branch", "tag", "start-snapshot-id")
_ICEBERG_TABLE = "org.apache.iceberg.spark.source.SparkTable"


def pinned_frame(
    frame: DataFrame, before: Mapping[str, str] | None = None
) -> tuple[DataFrame, dict[str, str]]:
    """Pins the frame's tables to versions. Returns the frame and, by URI or name, the versions of
    those tables whose version the program does not name.

    Does not change a frame of which Spark has cached a part (cache()).

    Args:
        frame: a frame; not changed if it is Spark Connect's.
        before: the versions that an earlier driver of the run returned; tables without an entry are
            pinned to the version that Spark would read now.

    Raises:
        ValueError: Spark cannot read the earlier version.
    """
    if not hasattr(frame, "_jdf") or _is_kept(frame):
        return frame, {}
    session, versions = frame.sparkSession, dict[str, str]()

    def pinned(leaf: Any) -> Any:
        table = _table_of(leaf, session)
        if table is None or table.is_named or table.version is None:
            return leaf
        had = (before or {}).get(table.uri)
        version = versions.setdefault(table.uri, had or table.version)
        try:
            return table.at(version)
        except Exception as error:
            if had is None:
                raise
            said = str(error).partition("\n")[0]
            raise invalid(
                f"{version} of {table.uri}, which the run read before its restart, cannot be "
                f"read: {said}; name a version, or use another checkpoint_dir"
            ) from error

    plan = _plan(frame)
    found = _replaced(plan, pinned, _to_seq(session))
    return (frame if found is plan else _frame_of(found, frame)), versions


def frame_identity(frame: DataFrame) -> str:
    """Names the table versions that a pinned frame reads, and a hash of its columns."""
    digest = hashlib.sha256(frame.schema.json().encode()).hexdigest()
    tables = []
    if hasattr(frame, "_jdf"):
        tables = [_table_of(leaf, frame.sparkSession) for leaf in _leaves(_plan(frame))]
    named = sorted({f"{t.version} of {t.uri}" for t in tables if t and t.is_named and t.version})
    return ", ".join([*named, digest])


class _DeltaTable:
    """A scan of a Delta table in a plan."""

    def __init__(self, leaf: Any, session: SparkSession):
        index = leaf.relation().location()
        self._leaf, self._session = leaf, session
        self.uri: str = index.path().toString()
        self.is_named: bool = index.isTimeTravelQuery()
        self.version: str | None = f"{_DELTA} {index.getSnapshot().version()}"

    def at(self, version: str) -> Any:
        """A plan that reads the leaf's columns in this version."""
        jvm, leaf = self._session._jvm, self._leaf
        reader = self._session.read.format("delta").option("versionAsOf", version.split()[-1])
        frame = reader.load(self.uri)
        found = next(_leaves(_plan(frame)))
        wanted = {column.name(): column for column in _elements(leaf.output())}
        _check_columns(wanted, frame._jdf.schema(), f"{version} of {self.uri}")
        seq = _to_seq(self._session)
        output = [wanted.get(column.name(), column) for column in _elements(found.output())]
        relation, _, *others = _arguments(found)
        scan = found.copy(relation, seq(output), *others)
        return jvm.org.apache.spark.sql.catalyst.plans.logical.Project(leaf.output(), scan)


class _IcebergTable:
    """A scan of an Iceberg table in a plan."""

    def __init__(self, leaf: Any, session: SparkSession):
        self._leaf, self._session = leaf, session
        found = leaf.table()
        table, snapshot = found.table(), found.snapshotId()
        self.uri: str = table.name()
        *_, last = _arguments(leaf)  # since Spark 4.1, an Option with a version
        has_spec = _class(last).startswith("scala.")
        self.is_named: bool = last.isDefined() if has_spec else snapshot is not None
        if any(leaf.options().containsKey(option) for option in _READS):
            self.is_named, snapshot = True, leaf.options().get(_READS[0])
        elif not self.is_named:
            table.refresh()
            now = table.snapshot(found.branch()) if found.branch() else table.currentSnapshot()
            snapshot = now and now.snapshotId()
        self.version = None if snapshot is None else f"{_ICEBERG} {snapshot}"

    def at(self, version: str) -> Any:
        """A plan that reads the leaf's columns in this version."""
        number, leaf = version.split()[-1], self._leaf
        table = leaf.catalog().get().loadTable(leaf.identifier().get(), number)
        wanted = {column.name(): column for column in _elements(leaf.output())}
        _check_columns(wanted, table.schema(), f"{version} of {self.uri}")
        _, *others = _arguments(leaf)
        if len(others) > 4:  # otherwise Spark would load the newest version
            jvm = self._session._jvm
            spec = jvm.org.apache.spark.sql.catalyst.analysis.AsOfVersion(number)
            others[4] = jvm.scala.Some(spec)
        return leaf.copy(table, *others)


def _table_of(leaf: Any, session: SparkSession) -> _DeltaTable | _IcebergTable | None:
    """The table that a leaf of a plan scans; None for other leaves."""
    kind = _class(leaf).rpartition(".")[2]
    if kind == "DataSourceV2Relation" and _is_of_iceberg(leaf):
        return _IcebergTable(leaf, session)
    if kind == "LogicalRelation" and _is_of_delta(leaf.relation(), session):
        return _DeltaTable(leaf, session)
    return None


def _is_of_iceberg(leaf: Any) -> bool:
    if _class(leaf.table()) != _ICEBERG_TABLE or not leaf.identifier().isDefined():
        return False
    kind = leaf.table().table().getClass()
    while kind is not None and kind.getName() != "org.apache.iceberg.BaseMetadataTable":
        kind = kind.getSuperclass()
    return kind is None


def _is_of_delta(relation: Any, session: SparkSession) -> bool:
    from py4j.java_gateway import is_instance_of

    # Checks the base class, because Delta's relations have anonymous subclasses.
    name = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
    if not is_instance_of(session.sparkContext._gateway, relation, name):
        return False
    return bool(_class(relation.location()) == _DELTA_INDEX)


def _check_columns(wanted: Mapping[str, Any], schema: Any, table: str) -> None:
    """Raises ValueError unless the schema has all columns with the same types."""
    types = {field.name(): field.dataType() for field in schema.fields()}
    for name, column in wanted.items():
        if name not in types or not types[name].equals(column.dataType()):
            found = types[name].simpleString() if name in types else "none"
            raise invalid(
                f"column '{name}' has the type {column.dataType().simpleString()} in the "
                f"DataFrame, but {found} in {table}"
            )


def _is_kept(frame: DataFrame) -> bool:
    plan = (
        frame.select("*")._jdf.queryExecution().withCachedData()
    )  # replanned, because the frame may be cached by now
    return any(_class(leaf).endswith(".InMemoryRelation") for leaf in _leaves(plan))


def _plan(frame: DataFrame) -> Any:
    return frame._jdf.queryExecution().analyzed()


def _leaves(plan: Any) -> Iterator[Any]:
    children = _elements(plan.children())
    if not children:
        yield plan
    for child in children:
        yield from _leaves(child)


def _replaced(plan: Any, change: Callable[[Any], Any], seq: Callable[[list[Any]], Any]) -> Any:
    """Applies `change` to the plan's leaves; returns the plan itself if none has changed."""
    children = _elements(plan.children())
    if not children:
        return change(plan)
    found = [_replaced(child, change, seq) for child in children]
    if all(one is other for one, other in zip(found, children, strict=True)):
        return plan
    return plan.withNewChildren(seq(found))


def _frame_of(plan: Any, like: DataFrame) -> DataFrame:
    """Creates a DataFrame of a plan, in the session of `like`."""
    names = _class(like._jdf).split(".")  # Spark 4.0 and later have two such classes
    maker = reduce(getattr, names, like.sparkSession._jvm)
    return type(like)(maker.ofRows(like._jdf.sparkSession(), plan), like.sparkSession)


def _class(value: Any) -> str:
    return value.getClass().getName()


def _elements(seq: Any) -> list[Any]:
    return [seq.apply(i) for i in range(seq.size())]


def _arguments(node: Any) -> list[Any]:
    """The arguments of a Scala case class."""
    return [node.productElement(i) for i in range(node.productArity())]


def _to_seq(session: SparkSession) -> Callable[[list[Any]], Any]:
    return session._jvm.org.apache.spark.api.python.PythonUtils.toSeq
