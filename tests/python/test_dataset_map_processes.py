"""map_in="processes": order, positions and seeds as with threads, and complete error reports."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from dataset_ranks import loaders, partitions_of

import hearth


def loader(function, batch_size=4, workers=2, rows=(10, 9), **options):
    options = {"map": function, "workers": workers, "map_in": "processes", **options}
    return loaders(partitions_of(*rows), 1, batch_size, **options)[0]


def test_batches_come_in_order_with_the_seeds_and_the_position_of_threads():
    def late(batch, seeds):  # finishes the first batches last
        import time

        time.sleep(0.2 if 0 in batch["id"][:6] else 0)
        return batch["id"].tolist(), seeds.tolist(), os.getpid()

    processes, threads = loader(late), loader(late, map_in="threads", workers=0)
    made = list(processes)
    assert [batch[:2] for batch in made] == [batch[:2] for batch in threads]
    assert os.getpid() not in {batch[2] for batch in made}
    for _ in zip(range(3), processes, strict=False):
        pass
    state = processes.state_dict()
    assert state["passes"][0]["taken"] == 12
    resumed = loader(late, map_in="threads")
    resumed.load_state_dict(state)
    left = [batch[:2] for batch in resumed]
    processes.load_state_dict(state)
    assert [batch[:2] for batch in processes] == left


def test_arrays_of_any_size_come_back_writable_and_the_programs_own():
    def grow(batch):
        ids = batch["id"]
        ids += 1  # writes to the batch that it received
        shape = (len(ids), 100, 100)
        made = np.broadcast_to(ids[:, None, None], shape).astype(np.float32)
        return {"id": ids, "image": made, "same": made, "empty": np.zeros((0, 3)), "text": ["a"]}

    previous = None
    for batch in loader(grow, shuffle=False, rows=(12,)):
        assert (batch["image"][:, 9, 9] == batch["id"]).all()
        assert batch["image"].flags.aligned and batch["image"].flags.writeable
        assert batch["empty"].shape == (0, 3) and batch["text"] == ["a"]
        if previous is not None:
            previous["image"][:] = -1
            assert (batch["image"] >= 1).all()
        previous = batch


def test_global_random_numbers_follow_from_the_rows():
    def draw(batch):
        import random

        return random.random(), np.random.rand()

    first, second = list(loader(draw)), list(loader(draw, workers=1))
    assert first == second
    assert len(set(first)) == len(first)


def test_an_error_names_rows_epoch_and_process_and_has_the_traceback():
    class OddError(ValueError):
        def __init__(self, code, more):
            super().__init__(f"odd {code}")

    def fails(batch):
        if 7 in batch["id"]:
            raise ValueError("seven")
        if 17 in batch["id"]:
            raise OddError(3, 4)
        return batch

    made = loader(fails, shuffle=False)
    batches = iter(made)
    next(batches)
    with pytest.raises(ValueError, match="seven") as raised:
        next(batches)
    notes = "\n".join(raised.value.__notes__)
    assert "dataset 'train', called on rows 4 to 7 of epoch 0" in notes
    assert "raised in worker process " in notes
    assert 'raise ValueError("seven")' in notes
    assert made.state_dict()["passes"][0]["taken"] == 4
    made.load_state_dict({**made.state_dict(), "passes": [{"owners": [0, 0], "taken": 16}]})
    with pytest.raises(RuntimeError, match="OddError: odd 3"):
        next(iter(made))


def test_threads_report_the_same_invalid_rows():
    def fails(batch):
        raise KeyError("x")

    with pytest.raises(KeyError) as raised:
        next(iter(loader(fails, map_in="threads", shuffle=False)))
    assert "called on rows 0 to 3 of epoch 0" in raised.value.__notes__[0]


def test_a_killed_process_raises_an_error_instead_of_hanging():
    def dies(batch):
        if 9 in batch["id"]:
            os.kill(os.getpid(), signal.SIGKILL)
        return batch

    made = loader(dies, shuffle=False, workers=1)
    with pytest.raises(hearth.HearthError, match=r"worker process 0 of dataset 'train' .* SIGKILL"):
        list(made)
    with pytest.raises(hearth.HearthError, match="SIGKILL"):  # the next epoch fails, too
        list(made)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map_in": "process"}, "map_in is 'process': it must be one of threads, processes"),
        ({"workers": 0}, "map_in is 'processes' and workers is 0: set workers to the number"),
        ({"function": None}, "but map is not set"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        loader(**{"function": len, **options})


def test_a_map_that_cannot_be_pickled_is_refused_in_a_sentence():
    import threading

    lock = threading.Lock()
    with pytest.raises(ValueError, match=r"the map of dataset 'train' cannot be sent .*lock"):
        next(iter(loader(lambda batch: (lock, batch))))


_PROGRAM = """
import os, signal, sys, time
sys.path[:0] = {path!r}
from test_dataset_map_processes import loader

def stays(batch):
    os.write(1, b"%d\\n" % os.getpid())  # atomic
    time.sleep(1000 if 3 in batch["id"] else 0)
    return batch

made = loader(stays, batch_size=2, workers=2, shuffle=False)
batches = iter(made)
next(batches)
if "fork" in {how!r} and os.fork() == 0:  # holds what the program has open, and outlives it
    os.write(1, b"forked %d\\n" % os.getpid())
    signal.pause()
sys.stdin.readline()
if "exit" in {how!r}:
    sys.exit()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["exit", "killed", "killed fork"])
def test_no_process_is_left_when_the_program_ends(how):
    code = _PROGRAM.format(path=sys.path, how=how)
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True, **options
    ) as program:
        try:
            found, forked = set(), "fork" not in how
            while len(found) < 2 or not forked:
                *said, pid = program.stdout.readline().split()
                forked = forked or bool(said)
                found |= set() if said else {int(pid)}
            ends = [os.pidfd_open(pid) for pid in found]
            program.stdin.write("\n")
            program.stdin.flush()
            program.wait(60)
            for end in ends:
                assert select.select([end], [], [], 60)[0], "a process is left"
                os.close(end)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
