"""Fields of failures: they survive Spark's exception texts and become attributes of errors."""

from dataclasses import replace

import pytest

from hearth import HearthError
from hearth.cluster import errors
from hearth.native.failure import Failure, TaskError
from hearth.spark.failures import loss_line, reports_loss

CONV = Failure(
    "rank 1 on host a failed: iteration 7: layer 'conv \\\"1\\\"' (Convolution): odd",
    code="invalid_argument", rank=1, host="a", layer='conv "1"', iteration=7,
)  # fmt: skip


def sparks_text(error):
    """Text in which Spark quotes a Python task's exception, followed by more text."""
    return (
        "Job aborted due to stage failure: Task 1 failed 4 times, most recent failure: "
        f"Lost task 1.0: org.apache.spark.api.python.PythonException: Traceback ...\n"
        f"hearth.caffe_jobs.trainer_process.RankError: {error}\n"
        "\tat org.apache.spark.x(Y.scala:1)\n"
    )


@pytest.mark.parametrize("failure", [CONV, Failure("odd: \u00e4\u2028 {}", lost=True)])
def test_a_failure_is_parsed_from_sparks_text(failure):
    assert Failure.find(sparks_text(TaskError(failure))) == failure


@pytest.mark.parametrize(
    "text",
    ["OutOfMemoryError", "hearth-failure: ", 'hearth-failure: {"text": "cut', "hearth-failure: []",
     'hearth-failure: {"code": "internal"}'],
)  # fmt: skip
def test_other_text_is_not_a_failure(text):
    assert Failure.find(text) is None


def test_an_error_has_the_failures_fields():
    error = CONV.error()
    assert isinstance(error, HearthError) and str(error) == CONV.text
    assert (error.rank, error.host, error.layer, error.iteration) == (1, "a", 'conv "1"', 7)
    assert (error.code, error.lost) == ("invalid_argument", False)
    assert (HearthError("odd").rank, HearthError("odd").layer) == (-1, "")


def test_failures_of_the_rendezvous_keep_their_fields():
    failure = Failure.of_rendezvous(
        {"message": "rank 2 on host b failed:\n odd", "error": "odd", "rank": 2, "host": "b",
         "code": "internal", "lost": False, "layer": "ip1", "iteration": 3}
    )  # fmt: skip
    assert (failure.text, failure.layer, failure.iteration) == (
        "rank 2 on host b failed: odd", "ip1", 3,
    )  # fmt: skip


LOST = Failure("rank 1 on host a went away", code="unavailable", rank=1, lost=True)
KILLED = replace(LOST, text="rank 1 on host a failed: killed by SIGKILL")
OTHER = Failure("rank 0 on host b failed: a peer left", code="unavailable", rank=0)
NO_RANK = Failure("within 60 s rank 1 did not join the cluster", code="deadline_exceeded")


@pytest.mark.parametrize(
    ("first", "reported", "failure"),
    [
        (LOST, KILLED, KILLED),
        (LOST, OTHER, LOST),
        (LOST, None, LOST),
        (LOST, replace(CONV, rank=0), replace(CONV, rank=0)),
        (CONV, KILLED, CONV),
        (NO_RANK, KILLED, KILLED),
    ],
)
def test_a_loss_is_explained_by_the_task_of_the_lost_rank_or_by_an_error(first, reported, failure):
    assert first.explained_by(reported) == failure


@pytest.mark.parametrize("kind", [errors.NodeError, errors.FeedTimeoutError, errors.ClusterError])
def test_a_clusters_error_passes_through_a_task(kind):
    known = Failure("worker:1 on host h failed: odd", node="worker:1", host="h", rank=1)
    with pytest.raises(TaskError) as caught, errors.reported_to_driver():
        raise kind.of(known)
    error = errors.own_error(RuntimeError(sparks_text(caught.value)))
    assert type(error) is kind and str(error) == known.text
    assert (error.node, error.host, error.rank, error.lost) == ("worker:1", "h", 1, False)


def test_other_errors_are_unchanged():
    error = ValueError("NodeError: said in prose")
    assert errors.own_error(error) is error


# Messages of failed jobs in Spark 4.
LOSSES = [
    "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Command "
    "exited with code 137",
    "Executor heartbeat timed out after 125536 ms",
    "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
    "java.net.SocketException: Connection reset",
    "Caused by: java.io.EOFException",
    "[BARRIER_STAGE_REQUIRES_MORE_SLOTS] needs 2 slots",
    "org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location for shuffle "
    "10 partition 1",
]


@pytest.mark.parametrize("line", LOSSES)
def test_sparks_messages_of_a_loss_are_recognized(line):
    text = f"Job aborted due to stage failure\n  {line}\n\tat x.y(Z.scala:1)"
    assert reports_loss(text)
    assert loss_line(text) == f"Spark lost a task: {line}"


def test_an_error_of_the_program_is_not_a_loss():
    assert not reports_loss("PythonException: ValueError: the column x is not there")
