"""Base classes of Spark ML Pipeline stages: Params with setters, and saved programs."""

from __future__ import annotations

import base64
from typing import Any

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsReader, DefaultParamsWritable


def param(name: str, text: str, convert: Any, camel: str = "") -> Any:
    """Creates a mixin with a Param, its setter and its getter, e.g. setModelDir(), getModelDir().

    `camel`: the name in the setter and the getter; derived from `name` if empty.
    """
    camel = camel or "".join(part[:1].upper() + part[1:] for part in name.split("_"))

    def set_value(self: Any, value: Any) -> Any:
        return self._set(**{name: value})

    def get_value(self: Any) -> Any:
        return self.getOrDefault(getattr(self, name))

    set_value.__doc__, get_value.__doc__ = f"Sets {name}: {text}", f"{name}: {text}"
    body = {
        name: Param(Params._dummy(), name, text, typeConverter=convert),
        f"set{camel}": set_value,
        f"get{camel}": get_value,
    }
    return type(f"Has{camel}", (Params,), body)


def all_of(*mixins: Any) -> Any:
    """Creates a mixin with the Params of several mixins."""
    return type("HasParams", mixins, {})


class StageReader(DefaultParamsReader):
    """Loads a stage whose constructor needs arguments."""

    def __init__(self, kind: type, make: Any):
        super().__init__(kind)
        self._make = make

    def load(self, path: str) -> Any:
        """Loads the stage whose Params were saved in `path`."""
        metadata = DefaultParamsReader.loadMetadata(path, self.sparkSession)
        stage = self._make()
        stage._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(stage, metadata)
        return stage


class SavedStage(DefaultParamsReadable, DefaultParamsWritable):
    """A Pipeline stage that can be saved. Pickles values that are not Params into a hidden
    Param."""

    program = Param(Params._dummy(), "program", "the pickled program", TypeConverters.toString)

    def _keep(self, *program: Any) -> None:
        from pyspark import cloudpickle

        self._set(program=base64.b64encode(cloudpickle.dumps(program)).decode())

    def _kept(self) -> tuple[Any, ...]:
        return unpickled(self.getOrDefault(self.program))


def unpickled(program: str) -> tuple[Any, ...]:
    """Unpickles the values of a SavedStage, which runs code that the pickle contains."""
    import pickle

    return pickle.loads(base64.b64decode(program))
