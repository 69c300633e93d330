"""Creates the batch of a step: converts arrays, adds row weights, and calls the program's map."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hearth.data.arrays import batch_arrays
from hearth.data.epoch_steps import Step
from hearth.data.map_processes import MapProcesses
from hearth.data.options import WEIGHT, LoaderOptions
from hearth.errors import invalid

if TYPE_CHECKING:
    from hearth.data.dataset import BatchRows, Dataset


@dataclass(frozen=True)
class BatchTypes:
    """How a framework represents a batch; by default as NumPy arrays.

    Attributes:
        convert: called as convert(array or list, column name); returns the column's value in a
            batch.
        finish: finish(batch) returns the batch for the program, from the output of map.
    """

    convert: Callable[[Any, str], Any] = lambda values, column: values
    finish: Callable[[Any], Any] = lambda batch: batch


@dataclass(frozen=True)
class PreparedBatch:
    """A batch for the program, and the position after it. Counts: all rows of the batch, repeated
    rows, and rows that replace undecodable ones.
    """

    batch: Any
    end: int
    rows: int
    repeated: int
    invalid: int


class BatchMaker:
    """Creates the batches of a loader. Thread-safe."""

    def __init__(
        self,
        dataset: Dataset,
        options: LoaderOptions,
        types: BatchTypes,
        collate: Callable[[Any], Any] | None,
    ):
        """`collate`: applied to each batch before options.map.

        Raises:
            ValueError: an option has no effect.
        """
        self._dataset, self._options, self._types = dataset, options, types
        self._function = _joined(collate, options.map)
        self._processes: MapProcesses | None = None
        if options.map_in == "processes" and self._function is None:
            raise invalid("map_in is 'processes', but map is not set: set map, or leave out map_in")

    def start_processes(self) -> None:
        """Starts the processes for map_in="processes", at the first call. Not thread-safe.

        Raises:
            ValueError: map cannot be pickled.
        """
        options, function = self._options, self._function
        if function is not None and options.map_in == "processes" and self._processes is None:
            self._processes = MapProcesses(function, options.workers, self._dataset.name)
            self._function = self._processes.call

    def make(self, step: Step, spare_rows: Iterator[BatchRows]) -> PreparedBatch:
        """The batch of a step.

        Args:
            step: the rows of the step.
            spare_rows: replacements, which are read if none of the step's rows can be decoded.

        Raises:
            ValueError: a column does not fit an array, or no row can be decoded.
            Exception: the program's map raised it.
        """
        options, rows = self._options, step.rows
        arrays = batch_arrays(rows, self._columns, options.ragged, options.transforms, spare_rows)
        if options.uneven == "weight":
            weights = np.ones(rows.count, np.float32)
            weights[step.unrepeated :] = 0
            weights[arrays.invalid_index] = 0
            arrays.values[WEIGHT] = weights
        values = {name: self._types.convert(array, name) for name, array in arrays.values.items()}
        batch = values if options.columns is None else tuple(values.values())
        if self._function is not None:
            batch = self._call(self._function, batch, step)
        repeated = rows.count - step.unrepeated
        return PreparedBatch(
            self._types.finish(batch), step.end, rows.count, repeated, arrays.invalid
        )

    def _call(self, function: Callable[[Any, Any], Any], batch: Any, step: Step) -> Any:
        """Calls the program's map function; its exceptions name the batch's rows."""
        try:
            return function(batch, step.rows.ids())
        except Exception as error:
            where = (
                f"in the map of dataset {self._dataset.name!r}, called on rows "
                f"{step.end - step.rows.count} to {step.end - 1} of epoch {step.epoch} of this rank"
            )
            if isinstance(error, StopIteration):  # would silently end the program's loop
                raise invalid(
                    f"StopIteration was raised {where}: map must return a batch for each call"
                ) from error
            error.add_note(where)
            raise

    @cached_property
    def _columns(self) -> Sequence[str]:
        """The columns of a batch.

        Raises:
            ValueError: an option names a missing column, or a column has the name of the weights.
        """
        options, dataset = self._options, self._dataset.name
        columns = options.columns or self._dataset.columns()
        for option, names in (("ragged", options.ragged), ("transforms", options.transforms)):
            if missing := sorted(set(names).difference(columns)):
                raise invalid(
                    f"{option} names {', '.join(missing)}, but the batches of dataset {dataset!r} "
                    f"have the columns {', '.join(columns)}"
                )
        if options.uneven == "weight" and WEIGHT in columns:
            raise invalid(
                f"dataset {dataset!r} has a column {WEIGHT}, which uneven='weight' adds: rename it "
                "in Spark, or select other `columns`"
            )
        return columns


def _joined(
    collate: Callable[[Any], Any] | None, function: Callable[..., Any] | None
) -> Callable[[Any, Any], Any] | None:
    """Combines `collate` and then `function`, which takes (batch) or (batch, seeds), into a
    function of (batch, seeds of its rows); None if both are None.
    """
    if collate is None and function is None:
        return None
    takes_seeds = function is not None and len(inspect.signature(function).parameters) > 1

    def call(batch: Any, seeds: Any) -> Any:
        if collate is not None:
            batch = collate(batch)
        if function is None:
            return batch
        return function(batch, seeds) if takes_seeds else function(batch)

    return call
