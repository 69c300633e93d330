"""The columns of a DataFrame in a Pipeline stage, named by position, with vectors as arrays.

Spark interprets a dot in a column's name as a struct field, and refuses duplicate names. So tasks
always see generated names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hearth.errors import invalid
from hearth.native.failure import Failure
from hearth.spark.driver_python import use_driver_python

_COLUMN, _ARRAY, _COPY = "__hearth_column_", "__hearth_array_", "__hearth_copy_"


@dataclass(frozen=True)
class StageFrame:
    """A DataFrame with the columns that tasks see.

    `kept`: generated names of the user's columns, in order. `read`: names of the columns that the
    stage reads, or for vectors, of arrays converted from them. `vectors`: the names of these
    arrays.
    """

    frame: Any
    kept: tuple[str, ...]
    read: tuple[str, ...]
    vectors: tuple[str, ...]

    def kept_fields(self) -> list[Any]:
        """The fields of `kept` in the frame's schema."""
        return list(self.frame.schema.fields[: len(self.kept)])

    def only_read(self) -> Any:
        """The frame with only the columns of `read`."""
        return self.frame.select(*dict.fromkeys(self.read))


def stage_frame(stage: str, dataset: Any, names: Sequence[str]) -> StageFrame:
    """Creates the DataFrame for a stage that reads the columns `names`.

    Raises:
        ValueError: a column is missing or ambiguous.
    """
    use_driver_python(dataset.sparkSession)
    indices = [position(stage, dataset, name) for name in names]
    kept = tuple(f"{_COLUMN}{i}" for i in range(len(dataset.columns)))
    frame = dataset.toDF(*kept)
    arrays = {at: f"{_ARRAY}{at}" for at in indices if _is_vector(dataset.schema.fields[at])}
    if arrays:
        found = [vector_values(kept[at]).alias(name) for at, name in arrays.items()]
        frame = frame.select("*", *found)
    read = tuple(arrays.get(at, kept[at]) for at in indices)
    return StageFrame(frame, kept, read, tuple(arrays.values()))


def stage_input(stage: str, dataset: Any, names: Sequence[str]) -> Any:
    """Selects the columns `names`, with vectors as arrays of double.

    A job that reads a null in them fails. Raises like stage_frame().
    """
    names = list(dict.fromkeys(names))
    table = stage_frame(stage, dataset, names)
    kinds = {field.name: field.dataType for field in table.frame.schema.fields}
    columns = [_without_nulls(read, kinds[read]) for read in table.read]
    return table.frame.select(columns).toDF(*names)


def refuse_nulls(stage: str, dataset: Any, names: Sequence[str]) -> None:
    """Runs a job that counts nulls in the columns `names`. Raises ValueError if there are any."""
    from pyspark.sql import functions

    table = stage_frame(stage, dataset, names)
    kinds = {field.name: field.dataType for field in table.frame.schema.fields}
    nulls = [_has_null(functions.col(read), kinds[read]) for read in table.read]
    counts = [functions.count(functions.when(null, 1)) for null in nulls]
    *found, rows = table.frame.agg(*counts, functions.count(functions.lit(1))).first()
    if any(found):
        counted = dict(zip(names, found, strict=True))
        said = ", ".join(f"{name!r} in {count}" for name, count in counted.items() if count)
        raise invalid(
            f"{stage} does not accept nulls, but among {rows} rows there are nulls of {said}: "
            "fill them (DataFrame.fillna) or drop their rows (DataFrame.dropna)"
        )


def position(stage: str, dataset: Any, name: str) -> int:
    """The index of a column, whose name is resolved as Spark does, except for dots.

    Raises:
        ValueError: no column has the name, or several have.
    """
    known = ", ".join(dataset.columns)
    found = positions(dataset, name)
    if not found:
        raise invalid(
            f"{stage} reads the column {name!r}, but the DataFrame has {known}: "
            "name another, or add it"
        )
    if len(found) > 1:
        raise invalid(
            f"{stage} reads the column {name!r}, but {len(found)} columns of the DataFrame "
            f"have that name ({known}): rename them by DataFrame.toDF"
        )
    return found[0]


def positions(dataset: Any, name: str) -> list[int]:
    """The indices of columns with the name, its case variants, or the name without backticks."""
    quoted = len(name) > 2 and name[0] == name[-1] == "`"
    for wanted in (name, name[1:-1].replace("``", "`")) if quoted else (name,):
        for fits in (wanted.__eq__, partial(same_name, dataset, wanted)):
            if found := [at for at, other in enumerate(dataset.columns) if fits(other)]:
                return found
    return []


def selected(stage: str, dataset: Any, names: Sequence[str]) -> Any:
    """Selects the columns `names`, unchanged. Raises like position()."""
    return columns_at(dataset, [position(stage, dataset, name) for name in names]).toDF(*names)


def columns_at(dataset: Any, indices: Sequence[int]) -> Any:
    """Selects the columns at these indices, whatever their names."""
    names = dataset.columns  # with Spark Connect, each access may be a request
    numbered = dataset.toDF(*(f"{_COLUMN}{i}" for i in range(len(names))))
    kept = numbered.select(*(f"{_COLUMN}{at}" for at in indices))
    return kept.toDF(*(names[at] for at in indices))


def renamed(stage: str, dataset: Any, given: Mapping[str, str]) -> Any:
    """Selects the columns of `given`, renamed to its keys, with vectors as arrays; and the other
    columns with unique names. Raises like position().
    """
    from pyspark.sql import functions

    names = dataset.columns
    table = stage_frame(stage, dataset, list(given.values()))
    counts = Counter(name.lower() for name in [*names, *given])
    others = [at for at, name in enumerate(names) if counts[name.lower()] == 1]
    columns = [functions.col(table.kept[at]).alias(names[at]) for at in others]
    columns += [
        functions.col(read).alias(name) for name, read in zip(given, table.read, strict=True)
    ]
    return table.frame.select(*columns)


def divided(stage: str, dataset: Any, name: str) -> tuple[Any, Any]:
    """Divides rows into those whose boolean column `name` is not true, and those where it is true.

    Raises ValueError if the column has another type, or does not exist.
    """
    from pyspark.sql import functions

    table = stage_frame(stage, dataset, [name])
    kind = table.frame.schema[table.read[0]].dataType.simpleString()
    if kind != "boolean":
        raise invalid(
            f"{stage} validates on rows whose column {name!r} is true, but its type is {kind}: "
            f"make it boolean, e.g. by frame.withColumn({name!r}, frame[{name!r}] != 0)"
        )
    marked = functions.coalesce(functions.col(table.read[0]), functions.lit(False))
    halves = table.frame.where(~marked), table.frame.where(marked)
    return tuple(half.toDF(*dataset.columns) for half in halves)


def divided_by_hash(
    stage: str, dataset: Any, names: Sequence[str], fraction: float, seed: int
) -> tuple[Any, Any]:
    """Divides rows into shares of about 1 - fraction and fraction, by a hash of the columns
    `names`. This is reproducible, and rows with equal columns are on the same side.
    """
    from pyspark.sql import functions

    table = stage_frame(stage, dataset, names)
    parts = 1 << 20
    number = functions.pmod(functions.xxhash64(*table.read, functions.lit(seed)), parts)
    marked = number < functions.lit(int(fraction * parts))
    halves = table.frame.where(~marked), table.frame.where(marked)
    return tuple(half.select(*table.kept).toDF(*dataset.columns) for half in halves)


def with_copies(dataset: Any) -> tuple[Any, tuple[str, ...]]:
    """Adds copies of all columns to the DataFrame; returns it and the copies' names."""
    from pyspark.sql import functions

    table = stage_frame("", dataset, [])
    names = tuple(f"{_COPY}{at}" for at in range(len(table.kept)))
    copies = [functions.col(kept).alias(name) for kept, name in zip(table.kept, names, strict=True)]
    return table.frame.select("*", *copies).toDF(*dataset.columns, *names), names


def check_new(
    stage: str, dataset: Any, names: Sequence[str], beside: Sequence[str] | None = None
) -> None:
    """Raises ValueError if Spark could not distinguish a new column from another column.

    `beside`: the columns that remain; None: all columns of the DataFrame.
    """
    known = list(dataset.columns if beside is None else beside)
    for name in names:
        for other in known:
            if same_name(dataset, other, name):
                which = "" if other == name else f", as {other!r}, and Spark ignores case"
                raise invalid(
                    f"{stage} adds a column {name!r}, which the DataFrame has already{which}: "
                    "set another name, or drop it"
                )
        known.append(name)


def vector_values(name: str) -> Any:
    """Converts a column of (dense or sparse) vectors to arrays of double; null remains null."""
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql import functions

    column = functions.col(name)
    return functions.when(column.isNotNull(), vector_to_array(column, "float64"))


def _is_vector(field: Any) -> bool:
    return field.dataType.typeName() == "vectorudt"


def same_name(dataset: Any, one: str, other: str) -> bool:
    """Whether Spark considers two names equal."""
    if one == other:
        return True
    if one.lower() != other.lower():
        return False
    return dataset.sparkSession.conf.get("spark.sql.caseSensitive", "false") != "true"


_NULL = Failure("a column has a null, which no tensor holds", "invalid_argument", kind="null")


def reports_null(error: BaseException) -> bool:
    """Whether a job failed because of a null in a column of stage_input()."""
    return _NULL in [Failure.find(str(each)) for each in (error, error.__cause__)]


def _without_nulls(name: str, kind: Any) -> Any:
    """Adds a check to the column: a null in it fails the job."""
    from pyspark.sql import functions

    column = functions.col(name)
    failed = functions.raise_error(functions.lit(_NULL.line()))
    return functions.when(_has_null(column, kind), failed).otherwise(column)


def _has_null(column: Any, kind: Any) -> Any:
    """Whether a value is null, or an array with a null at any depth."""
    from pyspark.sql import functions

    if kind.typeName() != "array":
        return column.isNull()
    inside = functions.exists(column, lambda value: _has_null(value, kind.elementType))
    return column.isNull() | inside
