"""Dispatches each request of the JVM, in a separate thread, to the function that the request
names."""

from __future__ import annotations

import json
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hearth.jvm.gateway import session_of
from hearth.native.failure import Failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Modules by the first part of a request's name; a module's functions are in its `ANSWERS`.
_MODULES = {
    "caffe": "hearth.jvm.caffe",
    "program": "hearth.jvm.programs",
    "tensorflow": "hearth.jvm.tensorflow",
}


@dataclass(frozen=True)
class Call:
    """A request: plain values by name, and DataFrames referenced by number.

    `session`: None if the JVM has no Spark session yet.
    """

    arguments: dict[str, Any]
    frames: list[DataFrame]
    session: SparkSession | None


# Returns a DataFrame, or a JSON value.
Answer = Callable[[Call], Any]


def serve(gateway: Any) -> None:
    """Serves requests until the JVM sends no more. Returns while requests may still run."""
    inbox = gateway.entry_point
    while (request := inbox.take()) is not None:
        threading.Thread(target=_answer, args=(request,), daemon=True).start()


def _answer(request: Any) -> None:
    try:
        request.begin()
        result = _function(request.name())(_call(request))
        if hasattr(result, "_jdf"):
            request.succeed("null", result._jdf)
        else:
            request.succeed(json.dumps(result, default=str), None)
    except BaseException as error:  # any error must reach the JVM, which waits
        failure, trace = failure_of(error)
        java_error = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
        request.fail(json.dumps(asdict(failure)), trace, java_error)


def _function(name: str) -> Answer:
    module, _, function = name.partition(".")
    return import_module(_MODULES[module]).ANSWERS[function]


def _call(request: Any) -> Call:
    from pyspark.sql import DataFrame

    java_session = request.session()
    session = None if java_session is None else session_of(java_session)
    frames = [DataFrame(frame, session) for frame in request.frames()]
    return Call(json.loads(request.arguments()), frames, session)


def failure_of(error: BaseException) -> tuple[Failure, str]:
    """(failure for the JVM, traceback). Only a defect has a traceback; otherwise it is ""."""
    from hearth.caffeonspark.command_line import is_expected, one_line

    expected = isinstance(error, Exception) and is_expected(error)
    known = Failure.find(str(error))
    if known is None:
        names = [field.name for field in fields(Failure) if hasattr(error, field.name)]
        known = Failure.of({name: getattr(error, name) for name in names}, text=one_line(error))
        if "code" not in names and isinstance(error, ValueError):
            known = Failure(one_line(error), code="invalid_argument")
    if expected:
        return known, ""
    trace = "".join(traceback.format_exception(error))
    return Failure.of(asdict(known), text=f"{type(error).__name__}: {known.text}"), trace
