"""Applies a model to the rows of a DataFrame, on all executors or on a few nodes with devices.

predict(frame, make_predict, "image", "scores array<float>", batch_size=64)
predict(frame, make_predict, "image", "scores array<float>", devices=2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from hearth.errors import invalid
from hearth.ml import predictors
from hearth.ml.executor_prediction import Prediction, arrow_schema, predicted
from hearth.spark.stage_columns import check_new, stage_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_STAGE = "predict"


def predict(
    frame: DataFrame,
    make_predict: Any,
    inputs: str | Sequence[str],
    outputs: str,
    batch_size: int = 64,
    *,
    devices: int = 0,
    prepare: Callable[..., Any] | None = None,
    compile: bool = False,
    precision: str = "",
) -> DataFrame:
    """The frame with columns that a model computes for each row; rows keep their order.

    Args:
        frame: rows; all columns stay.
        make_predict: a function without parameters that loads the model, and returns a function of
            arrays, a PyTorch module or a Keras model; or a module or model itself. It is called
            once per Python worker, and the result is cached for later tasks and jobs. The function
            of arrays gets one array [rows, ...] per input column, in the order of `inputs`; if it
            has one parameter for several inputs, or one parameter annotated as a dict, it gets
            {name: array}. It returns an array, a tuple of arrays in the order of `outputs`, or a
            dict by name.
        inputs: the column or columns that the model reads: numbers, arrays of one length, vectors,
            bytes, strings. A null in an input column is an error.
        outputs: Spark types of the new columns: "scores array<float>, label int".
        batch_size: rows per call of the model; only the last call of a partition may have fewer.
        devices: number of nodes, each with a device, that load the model and serve the tasks of all
            executors; 0: each executor loads the model. The nodes stay for later calls with the
            same model, until release_devices() ends them.
        prepare: a function that the executors call before the model with the input arrays; it
            returns the model's arguments, such as decoded images.
        compile: passes a PyTorch module through torch.compile().
        precision: "bf16" runs a PyTorch module under autocast to bfloat16.

    Raises:
        TypeError: make_predict or prepare is not callable.
        ValueError: a column is missing, or exists already; or an argument is invalid.
        HearthError, ClusterError: the nodes do not start.
    """
    names = [inputs] if isinstance(inputs, str) else list(inputs)
    new_columns = _checked(names, outputs, batch_size, devices)
    if precision not in predictors.PRECISIONS:
        raise invalid(f"predict's precision is {precision!r}: use 'bf16', or none")
    flags = {"compile": compile, "precision": precision}
    program = predictors.program_of(make_predict, prepare, names, new_columns.names, **flags)
    return with_outputs(_STAGE, frame, program, new_columns, batch_size, devices)


def release_devices() -> None:
    """Ends the nodes that predict(devices=...) has started; never raises.

    DataFrames that these calls returned can no longer be computed.
    """
    from hearth.ml import serving

    serving.release()


def _checked(names: list[str], outputs: str, batch_size: int, devices: int) -> StructType:
    from pyspark.sql.types import StructType, _parse_datatype_string

    if not names:
        raise invalid("predict reads no column: name the model's input columns in `inputs`")
    if len(set(names)) < len(names):
        raise invalid(f"predict reads a column twice ({', '.join(names)}): name each once")
    for name, value, least in (("batch_size", batch_size, 1), ("devices", devices, 0)):
        if not isinstance(value, int) or value < least:
            raise invalid(f"predict's {name} is {value!r}: it must be at least {least}")
    new_columns = _parse_datatype_string(outputs)
    if not isinstance(new_columns, StructType):
        raise invalid(f'outputs is {outputs!r}: name columns and types ("scores array<float>")')
    return new_columns


def with_outputs(
    stage: str,
    frame: Any,
    program: predictors.Program,
    new_columns: StructType,
    batch_size: int,
    devices: int = 0,
) -> DataFrame:
    """The frame with the columns `new_columns` that a program computes for each row; see predict().

    Raises:
        ValueError: a column is missing, or exists already; messages name `stage` as the caller.
    """
    from pyspark.sql.types import StructType

    table = stage_frame(stage, frame, program.inputs)
    check_new(stage, frame, new_columns.names)
    spec = Prediction(program, table.read, table.kept, batch_size)
    task: Any = partial(predicted, spec, arrow_schema(new_columns))
    options: dict[str, Any] = {}
    if devices:
        from hearth.ml import serving

        task, options = serving.task_of(
            frame.sparkSession, spec, devices, arrow_schema(new_columns)
        )
    schema = StructType([*table.kept_fields(), *new_columns.fields])
    return table.frame.mapInArrow(task, schema, **options).toDF(*frame.columns, *new_columns.names)
