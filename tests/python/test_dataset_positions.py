"""Positions of loaders: resumed by other numbers of ranks, with each row of an epoch once."""

from __future__ import annotations

import json
import random

import pytest
from dataset_ranks import loaders, partitions_of


def step(ranks, steps):
    """Takes so many steps of an epoch on all ranks, or all; the ids that count."""
    iterators, taken = [iter(rank) for rank in ranks], []
    for _ in range(steps):
        batches = [next(iterator, None) for iterator in iterators]
        assert len({batch is None for batch in batches}) == 1, "ranks take other numbers of steps"
        if batches[0] is None:
            break
        taken += [i for batch in batches for i in batch["id"][batch["row_weight"] > 0].tolist()]
    return taken


@pytest.mark.parametrize("shuffle", [True, False, "full"])
@pytest.mark.parametrize("draw", range(6))
def test_each_row_of_an_epoch_comes_once_whatever_ranks_go_on_with_it(shuffle, draw):
    chance = random.Random(draw)
    partitions = partitions_of(*(chance.randrange(1, 12) for _ in range(6)))
    state, taken, epoch = {}, [], draw % 3
    for world, steps in ((2, 2), (3, 1), (1, 2), (3, 1), (2, 1), (1, 1000)):
        options = {"batch_size": chance.randrange(1, 5), "shuffle": shuffle, "uneven": "weight"}
        ranks = loaders(partitions, world, **options)
        for rank in ranks:
            rank.set_epoch(epoch)
            if state:
                rank.load_state_dict(json.loads(json.dumps(state)))
        if ranks[0].epoch == epoch:
            taken += step(ranks, steps)
        state = ranks[0].state_dict()
        assert all(rank.state_dict() == state for rank in ranks)
    assert sorted(taken) == list(range(sum(part.num_rows for part in partitions)))


@pytest.mark.parametrize("uneven", ["repeat", "weight", "drop"])
def test_a_rank_with_no_row_left_of_an_epoch_takes_its_steps_with_others(uneven):
    partitions = partitions_of(4, 4, 4)
    (one,) = loaders(partitions, 1, 2, shuffle=False, uneven=uneven)
    for _ in zip(range(4), one, strict=False):
        pass
    left = loaders(partitions, 3, 2, shuffle=False, uneven=uneven)
    for rank in left:
        rank.load_state_dict(one.state_dict())
    epochs = [[batch["id"].tolist() for batch in rank] for rank in left]
    if uneven == "drop":
        assert epochs == [[], [], []]
        return
    assert epochs == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    assert [rank.repeated_rows for rank in left] == [4, 4, 0]
