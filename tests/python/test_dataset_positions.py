"""Loaders' positions, resumed with another number of ranks: an epoch has each row once."""

from __future__ import annotations

import json
import random

import pytest
from dataset_ranks import loaders, partitions_of, rank_dataset

from hearth.data.loader import Loader
from hearth.data.options import LoaderOptions


def step(ranks, steps):
    """Takes up to `steps` steps of an epoch on all ranks; returns the ids that count."""
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
def test_each_row_of_an_epoch_is_delivered_once_for_any_number_of_ranks(shuffle, draw):
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


def test_a_state_saved_before_all_rows_arrived_has_those_that_had():
    partitions = partitions_of(4, 4)
    nodes = rank_dataset(partitions, 0, 2, totals=False)
    early = Loader(nodes, LoaderOptions(2))
    assert early.state_dict()["partitions"] is None
    nodes.note_counted([[0, 4, "aa"]])
    state = json.loads(json.dumps(early.state_dict()))
    assert state["partitions"] == [[4, "aa"], None]
    (resumed,) = loaders(partitions, 1, 2)
    with pytest.raises(
        ValueError, match=r"'train' has changed .* partition 0 had 4 rows with hash"
    ):
        resumed.load_state_dict(state)
    state["partitions"][0] = resumed.state_dict()["partitions"][0]
    resumed.load_state_dict(state)


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


def test_a_rows_seed_depends_only_on_epoch_and_row():
    partitions, seeds = partitions_of(9, 7, 8, 10), {}

    def note(batch, drawn):
        for row, seed in zip(batch["id"].tolist(), drawn.tolist(), strict=True):
            assert seeds.setdefault(row, seed) == seed
        return batch

    state = {}
    for world, steps in ((1, 1000), (2, 2), (3, 1), (2, 2), (1, 1000)):
        options = {"batch_size": 3, "uneven": "weight", "seed": -5, "map": note}
        ranks = loaders(partitions, world, **options)
        for rank in ranks:
            rank.set_epoch(1)
            if state:
                rank.load_state_dict(state)
        step(ranks, steps)
        state = ranks[0].state_dict() if steps < 1000 else {}
    assert len(set(seeds.values())) == 34


def test_iterators_that_give_no_batch_leave_the_position_alone():
    partitions = partitions_of(20)
    (made,) = loaders(partitions, 1, 4)
    whole = [batch["id"].tolist() for batch in made]
    (begun,) = loaders(partitions, 1, 4)
    next(iter(begun))
    (resumed,) = loaders(partitions, 1, 4)
    iter(resumed)
    resumed.load_state_dict(begun.state_dict())
    first, second = iter(resumed), iter(resumed)
    assert resumed.state_dict() == begun.state_dict()
    assert [batch["id"].tolist() for batch in second] == whole[1:]
    assert resumed.epoch == 1 and len(list(first)) == 5 and resumed.epoch == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 1}, "has version 1"),
        ({"passes": []}, r"is damaged \(passes\)"),
        ({"passes": [{"owners": [0, 0], "taken": -4}]}, r"is damaged \(passes\)"),
        ({"passes": [{"owners": ["a", "b"], "taken": 3}]}, r"is damaged \(passes\)"),
        ({"epoch": "3"}, r"is damaged \(epoch\)"),
        ({"partitions": [3, 4]}, r"is damaged \(partitions\)"),
        ({"passes": [{"owners": [0], "taken": 4}]}, "it had 1 partitions and has 2"),
    ],
)
def test_an_invalid_state_is_refused(change, words):
    (made,) = loaders(partitions_of(9, 8), 1, 4)
    state = made.state_dict()
    with pytest.raises(ValueError, match=f"dataset 'train' .*{words}"):
        made.load_state_dict({**state, **change})
    for other in ({}, {"version": 2}, None, [state]):
        with pytest.raises(ValueError, match="state of dataset 'train'"):
            made.load_state_dict(other)
    made.load_state_dict(state)
