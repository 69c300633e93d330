"""Misuse of a loader, which has a single position: rows arrive once, or an error says why."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from dataset_ranks import loaders, partitions_of, rank_dataset

from hearth.data import prefetch
from hearth.data.loader import Loader
from hearth.data.options import LoaderOptions

LEFT = (
    r"this iteration over dataset 'train' \(epoch 0\) is no longer valid: another one has started"
)


def loader_of(*counts, batch_size=2, **options):
    (loader,) = loaders(partitions_of(*counts), 1, batch_size, uneven="weight", **options)
    return loader


def ids_of(batches):
    return [i for batch in batches for i in batch["id"].tolist()]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "leave",
    [
        lambda loader: next(iter(loader)),
        lambda loader: loader.set_epoch(0),
        lambda loader: loader.load_state_dict(loader.state_dict()),
    ],
)
def test_an_abandoned_iteration_delivers_no_row_that_the_position_does_not_count(leave, workers):
    loader = loader_of(6, 6, workers=workers)
    first = iter(loader)
    next(first)
    leave(loader)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=LEFT):
            next(first)


def test_an_evaluation_over_the_loader_that_trains_is_an_error_of_the_training():
    loader = loader_of(6, 6)
    with pytest.raises(RuntimeError, match=r"open the dataset twice by ctx\.dataset\(\)"):
        for _ in loader:
            assert sorted(ids_of(loader)) == list(range(12))


def test_the_next_epoch_may_be_set_at_the_last_batch():
    loader = loader_of(6, 6)
    for step, _ in enumerate(loader, 1):
        if step == len(loader):
            loader.set_epoch(5)
    assert loader.epoch == 5


def test_threads_share_an_iteration_and_each_row_is_delivered_once():
    loader = loader_of(100, 300, 1, batch_size=3, workers=2)
    batches, together = iter(loader), threading.Barrier(8)

    def take(_):
        together.wait()
        return ids_of(batches)

    with ThreadPoolExecutor(8) as pool:
        taken = [i for ids in pool.map(take, range(8)) for i in ids]
    assert sorted(taken) == list(range(401))
    assert loader.epoch == 1


def test_threads_that_begin_at_once_do_not_deliver_one_epoch_twice():
    loader, together = loader_of(4, 4), threading.Barrier(8)
    interval = sys.getswitchinterval()

    def begin(_):
        batches = iter(loader)
        together.wait()
        with suppress(RuntimeError):  # another iterator has replaced it
            next(batches)

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for begun in range(8, 88, 8):
                list(pool.map(begin, range(8)))
                assert loader.epoch == begun - 1
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stop_iteration_raised_by_map_does_not_end_the_loop(workers):
    first = next(iter(loader_of(8)))["id"][0]

    def only_first(batch):  # threads may map the second batch first
        return batch if batch["id"][0] == first else next(iter(()))

    batches = iter(loader_of(8, map=only_first, workers=workers))
    next(batches)
    with pytest.raises(RuntimeError, match=r"StopIteration was raised in the map .* rows 2 to 3 "):
        next(batches)


def test_a_call_that_was_interrupted_does_not_look_like_the_epochs_end(monkeypatch):
    loader = loader_of(8)
    batches = iter(loader)
    next(batches)
    get = prefetch.queue.Queue.get

    def interrupted(self, *arguments):
        monkeypatch.setattr(prefetch.queue.Queue, "get", get)
        raise KeyboardInterrupt

    monkeypatch.setattr(prefetch.queue.Queue, "get", interrupted)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            next(batches)
    state = loader.state_dict()
    assert state["passes"][0]["taken"] == 2


def test_a_state_of_another_dataset_is_refused():
    partitions = partitions_of(4, 4)
    # Before its rows are counted, only the name distinguishes the datasets.
    train = Loader(rank_dataset(partitions, 0, 1, totals=False), LoaderOptions(2))
    next(iter(train))
    state = train.state_dict()
    assert state["partitions"] is None
    (evaluation,) = loaders(partitions, 1, 2)
    evaluation._dataset.name = "eval"
    with pytest.raises(ValueError, match=r"state of dataset 'train' .* a loader of dataset 'eval'"):
        evaluation.load_state_dict(state)
    evaluation.load_state_dict(state | {"dataset": "eval"})


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, pickle.dumps, lambda loader: copy.deepcopy([loader])]
)
def test_a_loader_is_not_copied_with_its_position(copied):
    with pytest.raises(RuntimeError, match="a loader cannot be copied"):
        copied(loader_of(4))


def test_a_forked_process_gets_an_error_instead_of_rows_or_a_wait():
    loader = loader_of(8)
    batches = iter(loader)
    next(batches)
    pid = os.fork()
    if pid == 0:
        refused = 0
        for take in (lambda: next(batches), lambda: iter(loader)):
            try:
                take()
            except RuntimeError:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
    assert len(ids_of(batches)) == 6


@pytest.mark.parametrize("shuffle", [False, True, "full"])
def test_a_program_that_writes_into_its_batches_changes_no_row(shuffle):
    columns = {"floats": lambda i: [float(i)] * 3, "flag": lambda i: i % 2 == 0, "x": float}
    partitions = partitions_of(8, 8, **columns)
    (loader,) = loaders(partitions, 1, 4, shuffle=shuffle)

    def taken():
        found = {}
        for batch in loader:
            for row, i in enumerate(batch["id"].tolist()):
                found[i] = {k: np.array(v[row]).tolist() for k, v in batch.items() if k != "id"}
            for value in batch.values():
                value[...] = 0
        return found

    assert taken() == taken()
