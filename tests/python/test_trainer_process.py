"""However a trainer ends, one line that names rank and host reports it."""

import sys

import pytest

from hearth import native
from hearth.caffe_jobs import trainer_process
from hearth.caffe_jobs.trainer_process import RankError, TrainerProcess, compute_threads

JOB = {"rank": 3, "host": "h", "token": "secret"}
PROGRAM = """#!{python}
import json, os, signal, socket, sys
assert sys.argv[1:3] == ["trainer", "--control-fd"]
assert "secret" not in " ".join(sys.argv) and "secret" not in str(os.environ)
channel = socket.socket(fileno=int(sys.argv[3])).makefile("rw")
job = json.loads(channel.readline())
def send(**event):
    channel.write(json.dumps(event) + "\\n")
    channel.flush()
{body}
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts a fake trainer that runs `body`."""
    started = []

    def start(body):
        program = tmp_path / "hearth"
        program.write_text(PROGRAM.format(python=sys.executable, body=body))
        program.chmod(0o755)
        monkeypatch.setattr(native, "program", lambda: program)
        started.append(TrainerProcess(JOB, []))
        return started[-1]

    yield start
    for trainer in started:
        trainer.close()


def test_it_sees_the_gpus_that_spark_granted(start, monkeypatch):
    monkeypatch.setattr(trainer_process, "task_gpus", lambda: ["3", "1"])
    body = 'send(event="done", gpus=os.environ["CUDA_VISIBLE_DEVICES"])'
    assert start(body).wait()["gpus"] == "3,1"


def test_done_is_returned_after_any_events(start):
    body = 'send(event="progress", iteration=1); send(event="done", rank=job["rank"])'
    assert start(body).wait() == {"event": "done", "rank": 3}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            'send(event="error", code="invalid_argument", message="layer conv1:\\n odd")',
            "rank 3 on host h failed: layer conv1: odd",
        ),
        (
            'send(event="error", by_peer=True, rank=1, message="rank 1 on host g failed: odd")',
            "rank 1 on host g failed: odd",
        ),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "rank 3 on host h failed: its trainer process was killed by SIGKILL",
        ),
        ("sys.exit(7)", "rank 3 on host h failed: its trainer process ended with status 7"),
        ('channel.write("{cut off")', "rank 3 on host h failed: its trainer process ended"),
    ],
)
def test_the_reason_for_its_end_is_reported(start, body, said):
    with pytest.raises(RankError) as caught:
        start(body).wait()
    assert str(caught.value).startswith(said)


def test_a_missing_program_is_an_error(monkeypatch):
    def missing():
        raise FileNotFoundError("the hearth program is not at /x")

    monkeypatch.setattr(native, "program", missing)
    with pytest.raises(RankError, match=r"rank 3 on host h failed: .*not at /x"):
        TrainerProcess(JOB, [])


def test_closing_ends_a_running_trainer(start):
    trainer = start("channel.readline()")  # returns once the channel is closed
    trainer.close()
    with pytest.raises(RankError, match="status 0"):
        trainer.wait()


def test_a_large_job_arrives_complete(monkeypatch, start):
    monkeypatch.setitem(JOB, "net", {"text": "x" * (3 << 20)})
    trainer = start('send(event="done", size=len(job["net"]["text"]))')
    assert trainer.wait()["size"] == 3 << 20


@pytest.mark.parametrize(("text", "threads"), [("", 3), ("2", 2), ("4,2", 4), ("0", 1)])
def test_the_threads_are_those_of_the_task_or_of_openmps_variable(monkeypatch, text, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert compute_threads(3) == threads


@pytest.mark.parametrize("text", ["all", "-1", "2.5"])
def test_an_invalid_number_of_threads_is_named(monkeypatch, text):
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    with pytest.raises(ValueError, match=f"OMP_NUM_THREADS={text} in the environment"):
        compute_threads(3)
