"""Functions of arrays over the columns of a DataFrame, a block of rows at a time.

    map_blocks(lambda x: {"z": np.sqrt(x)}, frame)           # the frame, with a column z
    reduce_blocks(lambda x: {"x": x.sum(axis=0)}, frame)     # {"x": array(...)}

A block is an Arrow batch: rows of one partition, at most 10,000 unless the session sets
`spark.sql.execution.arrow.maxRecordsPerBatch`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from hearth.errors import invalid
from hearth.ml import block_tasks
from hearth.ml.executor_prediction import arrow_schema
from hearth.spark.stage_columns import StageFrame, check_new, stage_frame

if TYPE_CHECKING:
    import numpy as np
    from pyspark.sql import DataFrame

_INPUT = "_input"  # TensorFrames' suffix of a reduction's inputs
_PROBED_ROWS = 2


def map_blocks(
    function: Callable[..., Any],
    frame: DataFrame,
    outputs: str | None = None,
    columns: Sequence[str] | None = None,
    trim: bool = False,
) -> DataFrame:
    """The frame with new columns that `function` computes from each block.

    Args:
        function: its parameters are names of columns, for each of which it gets an array [rows,
            ...]. It returns a dict of arrays by the names of the new columns, each with the block's
            number of rows, or one array if `outputs` names one column. It may use NumPy or
            TensorFlow (whose functions accept arrays), or be a Keras model. A PyTorch module, or a
            function with a parameter annotated `torch.Tensor`, gets tensors. It is sent to the
            executors by cloudpickle.
        frame: columns of numbers, arrays of one length, Spark ML's vectors. A null in a column that
            the function reads is an error, as is a result that does not fit its column's type.
        outputs: Spark types of the new columns: "z double, w array<float>"; None: a job infers them
            from the first two rows.
        columns: the columns to read, in the order of the parameters, if the parameters have other
            names.
        trim: return only the new columns, which may have a different number of rows.

    Raises:
        ValueError: a column is missing, or exists already; or types cannot be inferred.
    """
    from pyspark.sql.types import StructType

    spec, table = _prepared("map_blocks", function, frame, columns)
    made = _types(spec, table) if outputs is None else _parsed(outputs)
    if trim:
        task = partial(block_tasks.mapped, spec, (), arrow_schema(made))
        return table.only_read().mapInArrow(task, made)
    check_new("map_blocks", frame, made.names)
    task = partial(block_tasks.mapped, spec, table.kept, arrow_schema(made))
    found = table.frame.mapInArrow(task, StructType([*table.kept_fields(), *made.fields]))
    return found.toDF(*frame.columns, *made.names)


def reduce_blocks(
    function: Callable[..., Any], frame: DataFrame, columns: Sequence[str] | None = None
) -> dict[str, np.ndarray]:
    """Reduces all rows to one: `function` reduces each block to one row, then pairs of such rows.

    Args:
        function: as for map_blocks(), but returns one row for each column that it reads, by the
            column's name and in the shape of its rows. The result must not depend on the order of
            rows. A parameter may also be the column's name with the suffix "_input".
        frame: as for map_blocks().
        columns: as for map_blocks().

    Returns:
        An array for each column. The rows of the partitions, one each, are reduced in this process.

    Raises:
        ValueError: there are no rows, or the results do not have the shape of the rows.
    """
    if frame.isStreaming:
        raise invalid(
            "reduce_blocks needs all rows, but a stream is unbounded: reduce each batch in "
            "foreachBatch"
        )
    spec, table = _prepared("reduce_blocks", function, frame, columns)
    task = partial(block_tasks.reduced, spec)
    found = table.only_read().mapInArrow(task, block_tasks.REDUCED_SCHEMA)
    parts = [block_tasks.unpacked(row.parts) for row in found.collect()]
    if not parts:
        raise invalid("reduce_blocks has no rows to reduce: the DataFrame is empty")
    return block_tasks.in_pairs(spec, parts)


def _prepared(
    call: str, function: Callable[..., Any], frame: DataFrame, columns: Sequence[str] | None
) -> tuple[block_tasks.Blocks, StageFrame]:
    """The tasks' program, and the frame with its input columns."""
    from pyspark import cloudpickle

    names = _parameters(function) if columns is None else list(columns)
    if columns is None:
        names = [_column_of(name, frame.columns) for name in names]
    table = stage_frame(call, frame, names)
    tensors = _takes_tensors(function)
    # Vectors become float32, the type of a module's weights.
    single = table.vectors if tensors else ()
    program = cloudpickle.dumps(function)
    return block_tasks.Blocks(program, tuple(names), table.read, tensors, single), table


def _column_of(parameter: str, known: Sequence[str]) -> str:
    without = parameter.removesuffix(_INPUT)
    return without if parameter not in known and without in known else parameter


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Names of the function's parameters. Raises ValueError if they are unknown."""
    called = getattr(function, "forward", None) if _is_module(function) else function
    try:
        parameters = list(inspect.signature(cast(Any, called)).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [p.name for p in parameters if p.kind in kinds and p.default is p.empty]
    if not named:
        raise invalid(
            f"the parameters of {function!r} have no names that could be column names: pass "
            "`columns`"
        )
    return named


def _is_module(function: Any) -> bool:
    return any(kind.__module__.startswith("torch.nn.") for kind in type(function).__mro__)


def _takes_tensors(function: Any) -> bool:
    """Whether the function takes PyTorch tensors instead of arrays."""
    if _is_module(function):
        return True
    notes = getattr(function, "__annotations__", {})
    return any(str(note).endswith(("torch.Tensor", "torch.Tensor'>")) for note in notes.values())


def _types(spec: block_tasks.Blocks, table: StageFrame) -> Any:
    """The schema of the function's results, inferred from a few rows on an executor."""
    if table.frame.isStreaming:
        raise invalid(
            "the rows of a stream cannot be read before it starts: pass the types of the new "
            'columns in `outputs` ("z double")'
        )
    probe = table.only_read().limit(_PROBED_ROWS)
    found = probe.mapInArrow(partial(block_tasks.probed, spec), "types string").collect()
    if not found:
        raise invalid(
            "the DataFrame is empty, so the types of the new columns are unknown: pass `outputs` "
            '("z double")'
        )
    return _parsed(found[0].types)


def _parsed(outputs: str) -> Any:
    from pyspark.sql.types import StructType, _parse_datatype_string

    schema = _parse_datatype_string(outputs)
    if not isinstance(schema, StructType):
        raise invalid(f'outputs is {outputs!r}: name columns and types ("z double")')
    return schema
