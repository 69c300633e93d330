"""Replies of the Python driver process to a JVM: settings as plain values, errors as fields."""

from __future__ import annotations

import json

import pytest

from hearth import HearthError
from hearth.caffeonspark import FlagError
from hearth.jvm import answers, caffe, programs
from hearth.jvm.answers import Call, failure_of
from hearth.native.failure import Failure, TaskError


class Request:
    """A call like the JVM's, but without a session."""

    def __init__(self, name, arguments):
        self._name, self._arguments = name, json.dumps(arguments)
        self.value = self.failure = self.trace = self.cause = None

    def begin(self):
        pass

    def name(self):
        return self._name

    def arguments(self):
        return self._arguments

    def session(self):
        return None

    def frames(self):
        return ()

    def succeed(self, value, frame):
        self.value = json.loads(value)

    def fail(self, failure, trace, cause):
        self.failure, self.trace, self.cause = json.loads(failure), trace, cause


@pytest.fixture
def answer():
    def ask(request_name, /, **arguments):
        request = Request(request_name, arguments)
        answers._answer(request)
        return request

    return ask


def config(*flags, **changes):
    return {"flags": list(flags), "changes": list(changes.items())}


def test_a_setting_combines_flags_and_later_changes(answer):
    asked = config("-devices", "2", label="digit")
    assert answer("caffe.get", config=asked, name="devices").value == 2
    assert answer("caffe.get", config=asked, name="label").value == "digit"
    assert answer("caffe.get", config=config(), name="netParam").value == {}


def test_an_invalid_value_has_no_traceback(answer):
    request = answer("caffe.get", config=config(devices=0), name="")
    assert request.failure["code"] == "invalid_argument"
    assert request.failure["text"] == "-devices is 0; it must be at least 1"
    assert not request.trace


def test_a_defect_is_reported_with_class_and_traceback(answer):
    request = answer("caffe.get", config=config(), name="noSuchSetting")
    assert request.failure["text"].startswith("AttributeError: Config has no setting")
    assert request.failure["code"] == "internal"
    assert "Traceback" in request.trace
    assert answer("caffe.sing").failure["text"].startswith("KeyError: ")


def test_the_fields_of_an_error_arrive():
    failure = Failure("rank 1 failed", "data_loss", 1, "", "host7", "conv1", 12)
    for error in (failure.error(), TaskError(failure)):
        assert failure_of(error) == (failure, "")
    lost = Failure("rank 0 is gone", "unavailable", 0, lost=True)
    assert failure_of(lost.error())[0].lost
    assert failure_of(FlagError("no"))[0] == Failure("no", code="invalid_argument")
    assert failure_of(HearthError("no"))[0].text == "no"


def test_every_tool_and_main_program_can_be_asked_for():
    from hearth.caffeonspark import tools

    assert set(programs.ANSWERS) == {"CaffeOnSpark", "Inference", *tools.NAMES}
    with pytest.raises(FlagError, match="-imageRoot is missing"):
        programs.ANSWERS["LMDB2Sequence"](Call({"flags": ["-output", "x"]}, [], None))
    assert set(caffe.ANSWERS) >= {"train", "test", "features"}
