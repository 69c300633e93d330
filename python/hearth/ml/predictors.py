"""Models as functions of NumPy arrays, loaded once per process and cached for later tasks and
jobs."""

from __future__ import annotations

import hashlib
import inspect
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hearth.errors import invalid
from hearth.rows.model_thread import kept
from hearth.rows.results import as_array

PRECISIONS = ("", "bf16")


@dataclass(frozen=True)
class Program:
    """A model, as sent to tasks and nodes.

    `key`: hash of all other fields; `model`, `prepare`: pickled, or empty if this process does not
    need them; `inputs`, `outputs`: columns; `compile`, `precision`: options for PyTorch modules.
    """

    key: str
    model: bytes
    prepare: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    compile: bool = False
    precision: str = ""


def program_of(
    make_predict: Any, prepare: Any, inputs: Sequence[str], outputs: Sequence[str], **flags: Any
) -> Program:
    """Pickles a model. Raises TypeError if `make_predict` or `prepare` is not callable."""
    from pyspark import cloudpickle

    for name, value in (("make_predict", make_predict), ("prepare", prepare)):
        if not callable(value) and (value is not None or name == "make_predict"):
            raise TypeError(
                f"predict's {name} is a {type(value).__name__}: pass a function"
                + (", a PyTorch module or a Keras model" if name == "make_predict" else "")
            )
    model = cloudpickle.dumps(make_predict)
    prepared = b"" if prepare is None else cloudpickle.dumps(prepare)
    columns = (tuple(inputs), tuple(outputs))
    parts = (model, prepared, repr((columns, flags)).encode())
    key = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
    return Program(key, model, prepared, *columns, **flags)


def predictor_of(program: Program) -> Predictor:
    """The model's function. Loads the model if this process has not loaded it yet."""
    return kept("model", program.key, partial(Predictor, program))


def preparer_of(program: Program) -> Preparer:
    """The function that runs before the model's function."""
    return kept("prepare", program.key, partial(Preparer, program))


class Preparer:
    """The function `prepare` of a program, applied to the input columns. Not thread-safe."""

    def __init__(self, program: Program):
        """Unpickles the function, which the session's driver sent."""
        self._names = program.inputs
        self._function = pickle.loads(program.prepare) if program.prepare else None
        self._by_name = self._function is not None and takes_dict(self._function, self._names)

    def __call__(self, arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
        """The model's arguments by name. Raises ValueError unless each argument has one value per
        row."""
        if self._function is None:
            return dict(zip(self._names, arrays, strict=True))
        rows = len(arrays[0])
        found = _called(self._function, self._names, arrays, self._by_name)
        if not isinstance(found, Mapping):
            values = list(found) if isinstance(found, tuple) else [found]
            same = len(values) == len(self._names)
            names = self._names if same else [f"{i}" for i in range(len(values))]
            found = dict(zip(names, values, strict=True))
        arrays_by_name = {name: as_array(value) for name, value in found.items()}
        for name, array in arrays_by_name.items():
            _check_rows(array, rows, f"prepare returned {name!r}")
        return arrays_by_name


class Predictor:
    """A loaded model: computes outputs for arrays of inputs. Not thread-safe."""

    def __init__(self, program: Program):
        """Unpickles the function, which the session's driver sent."""
        self._outputs = program.outputs
        model = pickle.loads(program.model)
        if not (_is_of(model, "torch.nn") or _is_keras(model)):
            model = model()
            if not callable(model):
                raise invalid(
                    f"make_predict() returned a {type(model).__name__}: it must return a function "
                    "of arrays, a PyTorch module or a Keras model"
                )
        self._function = self._function_of(model, program)
        self._by_name: bool | None = None

    def _function_of(self, model: Any, program: Program) -> Callable[..., Any]:
        if _is_of(model, "torch.nn"):
            from hearth.ml.torch_predictor import TorchPredictor

            return TorchPredictor(model, program.inputs, program.compile, program.precision)
        if program.compile or program.precision:
            raise invalid(
                "compile and precision are for PyTorch modules, but make_predict() returned a "
                f"{type(model).__name__}: return the module, or compile it in make_predict()"
            )
        if not _is_keras(model):
            return model
        from hearth.ml.keras_predictor import KerasPredictor

        return KerasPredictor(model, program.inputs)

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The outputs in the order of the program's `outputs`; the first dimension is the rows.

        Raises:
            ValueError: the model does not return one value per row for each output.
        """
        if self._by_name is None:
            self._by_name = takes_dict(self._function, tuple(arrays))
        values = list(arrays.values())
        rows = len(values[0])
        found = self._named(_called(self._function, tuple(arrays), values, self._by_name))
        for name, array in zip(self._outputs, found, strict=True):
            _check_rows(array, rows, f"the model returned {name!r}")
        return found

    def _named(self, found: Any) -> list[np.ndarray]:
        wanted = self._outputs
        fields = found._asdict() if hasattr(found, "_asdict") else found
        if isinstance(fields, Mapping) and (found is fields or set(wanted) <= set(fields)):
            if missing := [name for name in wanted if name not in fields]:
                raise invalid(
                    f"the model returned {', '.join(map(str, fields)) or 'nothing'}, but `outputs` "
                    f"names {', '.join(missing)}: use the names that the model returns"
                )
            return [as_array(fields[name]) for name in wanted]
        values = list(found) if isinstance(found, tuple) else [found]
        if len(values) != len(wanted):
            raise invalid(
                f"the model returned {len(values)} arrays, but `outputs` has {len(wanted)} columns "
                f"({', '.join(wanted)}): name a column for each array"
            )
        return [as_array(value) for value in values]


def takes_dict(function: Callable[..., Any], names: Sequence[str]) -> bool:
    """Whether to pass the arrays `names` to a function as a dict, because it has one parameter for
    several arrays, or one parameter annotated as a dict."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind not in kinds or p.default is p.empty]
    if len(needed) != 1 or needed[0].kind not in kinds:
        return False
    note = str(getattr(needed[0].annotation, "__name__", needed[0].annotation)).lower()
    return len(names) > 1 or "dict" in note or "mapping" in note


def _called(function: Any, names: Sequence[str], arrays: Sequence[Any], by_name: bool) -> Any:
    return function(dict(zip(names, arrays, strict=True))) if by_name else function(*arrays)


def _check_rows(array: np.ndarray, rows: int, what: str) -> None:
    if array.ndim == 0 or len(array) != rows:
        raise invalid(
            f"{what} of shape {array.shape} for {rows} rows: its first dimension must be the rows"
        )


def _is_of(value: Any, package: str) -> bool:
    return any(f"{kind.__module__}.".startswith(f"{package}.") for kind in type(value).__mro__)


def _is_keras(value: Any) -> bool:
    return hasattr(value, "predict_on_batch") and not isinstance(value, type)
