"""A loader's rows in Keras: each is trained on once per epoch, also if fit() is interrupted.

The tests compare a checkpoint's state with the rows that were trained on before it.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from dataset_ranks import loaders, partitions_of

from hearth import HearthError

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")
POINTS = ("before", "given", "trained", "counted", "saved")


def datasets(counts, world, batch_size=8):
    """Creates the KerasDataset of each rank."""
    rows = partitions_of(*counts, x=lambda i: [float(i)], y=float)
    made = loaders(rows, world, batch_size, uneven="weight", seed=5)
    return [one.as_keras_dataset("x", "y") for one in made]


class Model(keras.Model):
    """Records the rows of each step, without rows of weight 0."""

    def __init__(self, taken):
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.note = lambda x, w: taken.append(x[w > 0].astype(int).tolist())

    def build(self, shape):
        self.dense.build(shape)

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        self.note(np.asarray(data[0])[:, 0], np.asarray(data[2]))
        return super().train_step(data)


class StopAfter(keras.callbacks.Callback):
    def __init__(self, steps):
        super().__init__()
        self.left = steps

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        self.model.stop_training = self.left == 0


def fit(dataset, epochs, *callbacks):
    """Runs fit(); returns the rows of each step."""
    taken = []
    model = Model(taken)
    model.build((None, 1))
    model.compile("sgd", "mse", run_eagerly=True)
    model.fit(dataset, epochs=epochs, shuffle=False, verbose=0, callbacks=list(callbacks))
    return taken


def flat(steps):
    return [i for ids in steps for i in ids]


@pytest.mark.parametrize("steps", [2, 3])
@pytest.mark.parametrize("counts_steps", [True, False])
def test_fit_looks_at_batches_and_trains_on_all_of_them(steps, counts_steps):
    (dataset,) = datasets((4, 8 * steps - 5), 1)
    for fits in (1, 2):
        callbacks = [dataset.callback()] if counts_steps else []
        taken = fit(dataset, 2, *callbacks)
        for epoch in (taken[:steps], taken[steps:]):
            assert sorted(flat(epoch)) == list(range(8 * steps - 1))
        assert dataset.state_dict()["epoch"] == dataset._loader.epoch == 2 * fits - 1


@pytest.mark.parametrize("stop", [1, 4])
def test_batches_that_were_taken_when_fit_was_stopped_are_trained_on_by_the_next(stop):
    (dataset,) = datasets((20, 20), 1)
    taken = fit(dataset, 1, dataset.callback(), StopAfter(stop))
    assert len(taken) == stop and dataset.state_dict()["passes"][0]["taken"] == 8 * stop
    taken += fit(dataset, 1, dataset.callback())
    assert sorted(flat(taken[:5])) == list(range(40))


def test_one_node_resumes_the_backup_of_two_with_the_remaining_rows(tmp_path):
    import hearth.tensorflow as hvt

    hvt.init()
    ctx = SimpleNamespace(checkpoint_dir=f"file:{tmp_path}", mgr=None)

    def trained(rows, epochs, *more):
        return fit(rows, epochs, hvt.BackupAndRestore(ctx, rows, every=100), *more)

    counts, epochs = (30, 31, 29, 32), 2
    first, second = datasets(counts, 2)
    taken = flat(trained(first, epochs, StopAfter(11)))
    other = second._stream()
    taken += [int(i) for _ in range(11) for i in real(next(other))]
    (one,) = datasets(counts, 1)
    taken += flat(trained(one, epochs, StopAfter(9)))
    (again,) = datasets(counts, 1)
    taken += flat(trained(again, epochs))
    assert Counter(taken) == Counter(list(range(sum(counts))) * epochs)
    (more,) = datasets(counts, 1)
    assert trained(more, epochs) == []
    assert Counter(flat(trained(more, epochs + 1))) == Counter(range(sum(counts)))


class Slow:
    """Delays the writing of backups; records the order of the fit's backups and steps."""

    def __init__(self, monkeypatch, broken=0):
        from hearth.tensorflow.backup import BackupAndRestore

        write, self.may, self.events = BackupAndRestore._write, threading.Event(), []

        def slowly(this, step, local, data):
            assert self.may.wait(60)
            if step == broken:
                raise OSError("the disk is full")
            write(this, step, local, data)
            self.events.append(f"wrote {step}")

        monkeypatch.setattr(BackupAndRestore, "_write", slowly)

    def fit(self, folder):
        import hearth.tensorflow as hvt

        hvt.init()
        mgr = SimpleNamespace(note_commit=lambda: self.events.append("commit"))
        ctx = SimpleNamespace(checkpoint_dir=f"file:{folder}", mgr=mgr)
        (rows,) = datasets((40,), 1)
        weights, slow = [], self

        class Steps(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                weights.append(self.model.get_weights())
                slow.events.append(len(weights))
                if len(weights) == 6:
                    slow.may.set()

        backup = hvt.BackupAndRestore(ctx, rows, every=4, keep=3, background=True)
        fit(rows, 2, backup, Steps())
        return weights


def test_a_fit_continues_during_a_backup_and_the_next_backup_waits(tmp_path, monkeypatch):
    slow = Slow(monkeypatch)
    weights = slow.fit(tmp_path)
    assert len(weights) == 10
    assert slow.events[:6] == [1, 2, 3, 4, 5, 6]
    assert [each for each in slow.events if not isinstance(each, int)] == [
        "wrote 4", "commit", "wrote 8", "commit", "wrote 10", "commit",
    ]  # fmt: skip
    assert slow.events.index("wrote 4") < slow.events.index(8)
    (saved,) = tmp_path.glob("checkpoint-*-step-4/model.weights.h5")
    model = Model([])
    model.build((None, 1))
    model.load_weights(saved)
    assert all(map(np.array_equal, model.get_weights(), weights[3]))


@pytest.mark.parametrize("broken", [4, 10])
def test_a_backup_that_failed_ends_the_fit_with_its_reason(tmp_path, monkeypatch, broken):
    slow = Slow(monkeypatch, broken)
    with pytest.raises(HearthError, match="the disk is full"):
        slow.fit(tmp_path)
    assert slow.events.count("commit") == (0 if broken == 4 else 2)


def test_a_model_without_weights_is_refused(tmp_path):
    import hearth.tensorflow as hvt

    hvt.init()
    (rows,) = datasets((9,), 1)
    backup = hvt.BackupAndRestore(SimpleNamespace(), rows, folder=f"file:{tmp_path}")
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(HearthError, match=r"has no weights yet: start it with keras\.Input"):
        model.fit(rows, shuffle=False, verbose=0, callbacks=[backup])


def real(batch):
    return batch["id"][batch["row_weight"] > 0]


class Run:
    """Ranks that step together and take batches ahead, as fit() does, up to a point in a step."""

    def __init__(self, world, kept, chance):
        self.kept, self.chance = kept, chance
        self.ranks = datasets((23, 31, 17, 29, 11), world, 4)
        self.batches = [[] for _ in self.ranks]
        self.counters = [rank.callback() for rank in self.ranks]
        for rank, batches in zip(self.ranks, self.batches, strict=True):
            rank._chosen = note_of(batches)
            _ = [rank[index] for index in (0, 1)]  # reads the types
            batches.clear()
            if kept.state:
                rank.load_state_dict(kept.state)

    def epoch(self, steps, point):
        """Runs until `steps` steps are kept, then to the point; False if the epoch ended first."""
        for rank, counter in zip(self.ranks, self.counters, strict=True):
            counter.on_epoch_begin(0)
            rank.on_epoch_begin()
        ahead = [0] * len(self.ranks)
        for step in range(len(self.ranks[0])):
            at = POINTS.index(point) if steps == step else len(POINTS)
            for index, rank in enumerate(self.ranks):
                last = min(step + self.chance.randrange(1, 5), len(rank))
                while at > 0 and ahead[index] < last:
                    rank[ahead[index]]
                    ahead[index] += 1
            if at > 2:
                for counter in self.counters:
                    counter.on_train_batch_end(step)
            if at > 3:
                self.kept.keep(self.ranks, [batches.pop(0) for batches in self.batches])
            if at < len(POINTS):
                return True
        for rank in self.ranks:
            rank.on_epoch_end()
        return False


class Kept:
    """A checkpoint: the loader's position, and the rows that its model has learned from."""

    def __init__(self):
        self.state, self.learned = None, Counter()

    def keep(self, ranks, ids):
        self.state = ranks[0].state_dict()
        assert all(rank.state_dict() == self.state for rank in ranks)
        self.learned.update((self.state["epoch"], i) for some in ids for i in some)


def note_of(batches):
    def chosen(batch):
        batches.append(real(batch).tolist())
        return batch

    return chosen


@pytest.mark.parametrize("draw", range(8))
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_anywhere_in_a_step_loses_no_row_for_any_number_of_ranks(point, draw):
    chance, kept = random.Random(f"{point} {draw}"), Kept()
    while kept.state is None or kept.state["epoch"] < 3:
        run = Run(chance.choice((1, 2, 3)), kept, chance)
        for _ in range(chance.randrange(1, 3)):
            if run.epoch(chance.randrange(1, 25), point):
                break
    for epoch in range(3):
        learned = {i: n for (of, i), n in kept.learned.items() if of == epoch}
        assert learned == dict.fromkeys(range(111), 1)


@pytest.mark.parametrize("refused", range(3))
def test_a_fit_after_one_that_a_map_ended_trains_on_all_other_rows(refused):
    rows = partitions_of(9, 12, x=lambda i: [float(i)], y=float)
    (loader,) = loaders(rows, 1, 8, seed=5)
    first = [set(batch["id"].tolist()) for batch in loader]
    damaged = [first[refused]]

    def refuse(batch):
        if set(batch["id"].tolist()) in damaged:
            raise OSError("no such image")
        return batch

    (loader,) = loaders(rows, 1, 8, uneven="weight", seed=5, map=refuse)
    dataset = loader.as_keras_dataset("x", "y")
    with pytest.raises((OSError, tf.errors.OpError), match="no such image"):
        fit(dataset, 1, dataset.callback())
    damaged.clear()
    state = dataset.state_dict()
    trained = state["passes"][0]["taken"] // 8  # 0 if fit() has only peeked at batches
    assert state["epoch"] == 0 and trained in (0, refused)
    taken = fit(dataset, 1, dataset.callback())
    assert [set(ids) for ids in taken[: 3 - trained]] == first[trained:]
