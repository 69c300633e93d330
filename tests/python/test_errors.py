"""hearth.errors: one base class, and the built-in classes that programs catch."""

import pickle
import socket

import pytest

import hearth
from hearth import errors
from hearth.cluster.errors import ClusterError, NodeError, ReservationTimeoutError
from hearth.native import _core
from hearth.native.failure import Failure, TaskError

BUILT_IN = {
    "internal": RuntimeError,
    "invalid_argument": ValueError,
    "not_found": FileNotFoundError,
    "data_loss": RuntimeError,
    "unavailable": ConnectionError,
    "deadline_exceeded": TimeoutError,
    "aborted": RuntimeError,
    "permission_denied": PermissionError,
    "resource_exhausted": OSError,
    "unimplemented": NotImplementedError,
}


@pytest.mark.parametrize("code", BUILT_IN)
def test_an_error_of_a_code_is_a_hearth_error_and_of_the_built_in_class(code):
    error = errors.error_class(code)("what failed")
    assert isinstance(error, hearth.HearthError)
    assert isinstance(error, BUILT_IN[code])
    assert (error.code, error.rank, error.lost, str(error)) == (code, -1, False, "what failed")


def test_an_unknown_code_is_a_plain_hearth_error():
    assert errors.error_class("no such code") is hearth.HearthError


@pytest.mark.parametrize("code", BUILT_IN)
def test_an_error_is_pickled_with_its_fields(code):
    error = Failure("rank 2 failed", code, rank=2, host="h", lost=True).error()
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (copy.code, copy.rank, copy.host, copy.lost) == (code, 2, "h", True)
    assert str(copy) == "rank 2 failed"


def test_the_core_raises_the_class_of_its_code(tmp_path):
    with pytest.raises(errors.NotFoundError, match="no-such-file") as caught:
        _core.InputFile(str(tmp_path / "no-such-file"))
    assert isinstance(caught.value, FileNotFoundError)
    assert caught.value.code == "not_found"


def test_the_causes_of_the_cores_error_are_the_exceptions():
    with socket.socket() as taken, pytest.raises(errors.UnavailableError) as caught:
        taken.bind(("127.0.0.1", 0))  # the port is bound, but nothing listens
        _core.Member(
            host="127.0.0.1", port=taken.getsockname()[1], token=_core.new_token(), rank=0, world=1,
            connect_timeout_s=0.1,
        )  # fmt: skip
    cause = caught.value.__cause__
    assert isinstance(cause, hearth.HearthError) and cause.code == caught.value.code
    where = "rank 0 on host localhost cannot join the cluster at 127.0.0.1"
    assert str(caught.value).startswith(where) and str(caught.value).endswith(f": {cause}")
    assert where not in str(cause)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FileNotFoundError("a"), "not_found"),
        (OSError(28, "no space left"), "resource_exhausted"),
        (TypeError("a"), "invalid_argument"),
        (KeyError("a"), "internal"),
        (errors.DataLossError("a"), "data_loss"),
    ],
)
def test_built_in_errors_have_a_code(error, code):
    assert errors.code_of(error) == code


def test_errors_of_clusters_and_tasks_are_hearth_errors():
    for kind in (ClusterError, NodeError, ReservationTimeoutError, TaskError):
        assert issubclass(kind, hearth.HearthError)
    assert issubclass(ReservationTimeoutError, TimeoutError)


def test_importing_the_errors_loads_no_core():
    import subprocess
    import sys

    code = "import hearth, sys; hearth.HearthError; print(any('_core' in m for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
