"""Random sequences of a program's calls to a loader, compared with plain iteration."""

from __future__ import annotations

import json
import random
from functools import cache

import pyarrow as pa
import pytest
from dataset_ranks import rank_dataset

from hearth.data.loader import Loader
from hearth.data.options import LoaderOptions

LARGE = 40_000


def partitions(chance):
    """Random partitions; some are empty, and some have large rows."""
    made, first = [], 0
    for count in chance.choices([0, 0, 1, 3, 9, 40], k=chance.randrange(2, 20)):
        ids = range(first, first + count)
        texts = pa.array([str(i) * (LARGE if i % 50 == 7 else 1) for i in ids], pa.string())
        made.append(pa.record_batch({"id": pa.array(ids, pa.int64()), "text": texts}))
        first += count
    return made


class Program:
    """A loader, the position of the batch that it must return next, and a program's calls.

    Attributes:
        epoch, at: that position. After an abandoned iteration (`left`) the next epoch follows.
    """

    def __init__(self, chance):
        rows = partitions(chance)
        self.chance, self.refuses = chance, False
        self.options = {
            "batch_size": chance.randrange(1, 13),
            "shuffle": chance.choice([True, False, "full"]),
            "seed": chance.randrange(-3, 10**6),
            "uneven": chance.choice(["drop", "weight", "repeat"]),
            "workers": chance.choice([0, 0, 2]),
            "prefetch": chance.choice([0, 1, 2, 5]),
            "drop_last": chance.random() < 0.2,
        }
        world = chance.choice([1, 2, 3])
        held = [sum(part.num_rows for part in rows[rank::world]) for rank in range(world)]
        if min(held) == 0:
            self.options["uneven"] = "drop"
        self._dataset = rank_dataset(rows, chance.randrange(world), world)
        self.whole = cache(lambda epoch: list(self._only(epoch)))
        self.loader = self._loader()
        self.epoch = self.at = 0
        self.left = False

    def _only(self, epoch):
        loader = Loader(self._dataset, LoaderOptions(**self.options))
        loader.set_epoch(epoch)
        return loader

    def _loader(self):
        return Loader(self._dataset, LoaderOptions(**self.options, map=self._map))

    def _map(self, batch):
        if self.refuses:
            raise OSError("no such image")
        return batch

    def iterate(self, steps):
        """Takes `steps` batches, at most the remaining ones; then keeps or drops the iterator."""
        batches = iter(self.loader)
        for _ in range(steps):
            if self.left:
                self.epoch, self.at, self.left = self.epoch + 1, 0, False
            found, expected = next(batches, None), self.whole(self.epoch)
            if self.at == len(expected):
                assert found is None
                self.epoch, self.at = self.epoch + 1, 0
                return
            assert str(found) == str(expected[self.at])
            assert len(found["text"]) == len(found["id"])
            self.at += 1
        self.left = self.left or steps > 0
        if self.chance.random() < 0.5:
            self.kept = batches  # so its threads stay alive

    def resume(self):
        """Continues with a new loader that has loaded the state."""
        state = json.loads(json.dumps(self.loader.state_dict()))
        self.loader = self._loader()
        if self.chance.random() < 0.3:
            next(iter(self.loader), None)
        self.loader.load_state_dict(state)
        self.left = False
        if self.chance.random() < 0.3:
            self.loader.set_epoch(self.epoch)

    def seek(self):
        """Moves to any epoch, possibly the present one."""
        epoch = self.chance.choice([0, max(0, self.epoch - 1), self.epoch, self.epoch + 2])
        if epoch != self.epoch or self.left:
            self.at = 0
        self.loader.set_epoch(epoch)
        self.epoch, self.left = epoch, False

    def refuse(self):
        """Lets the map fail on the next batch; a new loader then resumes with that batch."""
        self.refuses = True
        if self.left:
            self.epoch, self.at = self.epoch + 1, 0
        if self.at < len(self.whole(self.epoch)):
            with pytest.raises(OSError, match="no such image"):
                next(iter(self.loader))
        else:
            self.loader.set_epoch(self.epoch + 1)
            self.epoch, self.at = self.epoch + 1, 0
        self.refuses = self.left = False
        self.resume()


@pytest.mark.parametrize("draw", range(40))
def test_a_loader_gives_the_batches_of_one_that_only_iterates(draw):
    chance = random.Random(draw)
    program = Program(chance)
    assert len(program.loader) == len(program.whole(0))
    for _ in range(20):
        step = chance.choice([program.resume, program.seek, program.refuse, None, None, None])
        if step is None:
            left = len(program.whole(program.epoch)) - program.at
            program.iterate(chance.choice([0, 1, 2, 3, left, 10**6]))
        else:
            step()
