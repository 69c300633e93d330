"""as_tf_dataset(): the loader's position and epochs, as seen through tf.data."""

from __future__ import annotations

import pytest
from dataset_ranks import loaders, partitions_of, rank_dataset

from hearth.data.loader import Loader
from hearth.data.options import LoaderOptions

pytest.importorskip("tensorflow")


def loader_of():
    (loader,) = loaders(partitions_of(4, 4), 1, 2, uneven="weight")
    return loader


def ids_of(batches):
    return [i for batch in batches for i in batch["id"].numpy().tolist()]


def test_the_batch_that_determines_the_types_is_not_counted_before_it_is_delivered():
    loader, same = loader_of(), loader_of()
    dataset = loader.as_tf_dataset()
    assert loader.state_dict() == same.state_dict()
    for epoch in range(3):
        assert loader.epoch == epoch
        assert ids_of(dataset) == [i for batch in same for i in batch["id"].tolist()]


@pytest.mark.parametrize("taken", [1, 4])
def test_a_dataset_resumes_from_a_state_loaded_later(taken):
    first, second = loader_of(), loader_of()
    before = [
        i for _, batch in zip(range(taken), first, strict=False) for i in batch["id"].tolist()
    ]
    dataset = second.as_tf_dataset()
    second.load_state_dict(first.state_dict())
    assert sorted(before + ids_of(dataset)) == list(range(8))


def test_a_finished_or_abandoned_iteration_is_followed_by_the_next_epoch():
    for taken in (4, 2):
        loader, resumed = loader_of(), loader_of()
        for _ in zip(range(taken), loader, strict=False):
            pass
        if taken == 4:
            resumed.load_state_dict(loader.state_dict())
            loader = resumed
        dataset = loader.as_tf_dataset()
        assert loader.epoch == 1
        assert sorted(ids_of(dataset)) == list(range(8))


def test_the_types_are_reported_before_all_rows_have_come():
    nodes = rank_dataset(partitions_of(4, 4), 0, 1, totals=False)
    nodes.note_counted([[0, 4, "aa"]])
    loader = Loader(nodes, LoaderOptions(2))
    assert set(loader.as_tf_dataset().element_spec) == {"id"}
