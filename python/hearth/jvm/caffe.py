"""Serves com.yahoo.ml.caffe's CaffeOnSpark, Config and DataSource with the Python CaffeOnSpark.

A request contains a Config's flags and later changes. Each request recreates the Config, so this
process keeps no state between requests.
"""

from __future__ import annotations

from typing import Any

from hearth.caffeonspark import CaffeOnSpark, Config, DataSource, Source
from hearth.jvm.answers import Answer, Call


def _config(call: Call, given: dict[str, Any]) -> Config:
    config = Config(call.session, given["flags"])
    for name, value in given["changes"]:
        setattr(config, name, value)
    return config


def _source(call: Call, name: str) -> Source:
    given = call.arguments[name]
    config, sources = _config(call, given["config"]), DataSource(call.session)
    if given["frame"] is None:
        return sources.getSource(config, given["training"])
    return sources.fromDataFrame(config, call.frames[given["frame"]], given["training"])


def _get(call: Call) -> Any:
    """The setting `name`; without a name only validates all settings."""
    config = _config(call, call.arguments["config"])
    name = call.arguments["name"]
    return getattr(config, name) if name else None


def _fed_layer(call: Call) -> tuple[int, str]:
    """The data layer's index in the net, and its source_class."""
    config, training = _config(call, call.arguments["config"]), call.arguments["training"]
    named = config.data_layer(training)["source_class"]
    return config.data_layer_id(training), named


def _check_source(call: Call) -> None:
    _source(call, "source")


def _train(call: Call) -> None:
    CaffeOnSpark(call.session).train(_source(call, "train"))


def _train_with_validation(call: Call) -> Any:
    train, validation = _source(call, "train"), _source(call, "validation")
    return CaffeOnSpark(call.session).trainWithValidation(train, validation)


def _test(call: Call) -> list[tuple[str, list[float]]]:
    """The means in the order of the net's outputs."""
    return list(CaffeOnSpark(call.session).test(_source(call, "source")).items())


def _features(call: Call) -> Any:
    return CaffeOnSpark(call.session).features(_source(call, "source"))


ANSWERS: dict[str, Answer] = {
    "get": _get,
    "fedLayer": _fed_layer,
    "checkSource": _check_source,
    "train": _train,
    "trainWithValidation": _train_with_validation,
    "test": _test,
    "features": _features,
}
