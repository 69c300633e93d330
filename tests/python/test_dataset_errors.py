"""Loops over a loader that cannot make a batch or cannot read rows."""

from __future__ import annotations

import pytest
from dataset_ranks import partitions_of, rank_dataset

from hearth.cluster.errors import ClusterError
from hearth.data.loader import Loader
from hearth.data.options import LoaderOptions


def refusing(refused):
    """A map function that fails on batches with one of these ids."""

    def check(batch):
        if refused & set(batch["id"].tolist()):
            raise OSError("no such image")
        return batch

    return check


@pytest.mark.parametrize("workers", [0, 2])
def test_the_batch_behind_one_that_cannot_be_made_is_not_lost(workers):
    dataset = rank_dataset(partitions_of(9, 0, 11), 0, 1)
    whole = [batch["id"].tolist() for batch in Loader(dataset, LoaderOptions(4))]
    options = LoaderOptions(4, map=refusing({whole[1][0], whole[4][2]}), workers=workers)
    loader, given, errors = Loader(dataset, options), [], 0
    batches = iter(loader)
    for _ in range(5):
        try:
            given.append(next(batches)["id"].tolist())
        except OSError:
            errors += 1
            assert loader.state_dict()["passes"][0]["taken"] == 4 * len(given) + 4 * (errors - 1)
            resumed = Loader(dataset, LoaderOptions(4))
            resumed.load_state_dict(loader.state_dict())
            assert next(iter(resumed))["id"].tolist() == whole[1 if errors == 1 else 4]
    assert (given, errors) == ([whole[0], whole[2], whole[3]], 2)
    assert next(batches, None) is None and loader.epoch == 1


def test_an_iteration_that_lost_its_rows_raises_instead_of_ending():
    dataset = rank_dataset(partitions_of(9), 0, 1, totals=False)
    batches = iter(Loader(dataset, LoaderOptions(4, uneven="drop")))
    dataset.fail("rank 1 is lost")
    for _ in range(3):
        with pytest.raises(ClusterError, match="rank 1 is lost"):
            next(batches)
