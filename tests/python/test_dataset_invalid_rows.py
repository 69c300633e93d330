"""Rows that a transform cannot decode are replaced by others and counted, for any batch size."""

from __future__ import annotations

import numpy as np
import pytest
from dataset_ranks import loaders, partitions_of


class Decoded:
    """Decodes texts that contain numbers, and fails on "bad"."""

    def apply(self, values, seeds):
        assert len(values) == len(seeds)
        failed = np.array([value == "bad" for value in values], bool)
        numbers = [0 if bad else float(v) for v, bad in zip(values, failed, strict=True)]
        return np.array(numbers), failed


def rows(bad, *counts):
    """Partitions with these row counts; the texts of the ids in `bad` cannot be decoded."""
    return partitions_of(*counts, x=lambda i: "bad" if i in bad else f"{i}")


def loader(bad, counts=(20, 13), **options):
    return loaders(rows(bad, *counts), 1, transforms={"x": Decoded()}, **options)[0]


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_without_a_decodable_row_has_those_that_follow(size, workers):
    bad = {0, 3, 4, 20, 32}
    made = loader(bad, batch_size=size, workers=workers, shuffle=size == 2, uneven="weight")
    batches = list(made)
    assert len(batches) == len(made) and made.invalid_rows == len(bad)
    valid = [b["row_weight"] > 0 for b in batches]
    given = [i for b, is_valid in zip(batches, valid, strict=True) for i in b["id"][is_valid]]
    assert sorted(given) == sorted(set(range(33)) - bad)
    for batch in batches:
        assert (batch["x"] == batch["id"]).all() and not set(batch["id"].tolist()) & bad


def test_a_resumed_run_replaces_rows_by_the_same_ones():
    bad = {2, 7, 8, 9, 30}
    whole = [batch["id"].tolist() for batch in loader(bad, batch_size=1)]
    begun = loader(bad, batch_size=1, prefetch=1)
    for _ in zip(range(11), begun, strict=False):
        pass
    resumed = loader(bad, batch_size=1)
    resumed.load_state_dict(begun.state_dict())
    assert [batch["id"].tolist() for batch in resumed] == whole[11:]


def test_an_error_reports_that_no_row_can_be_decoded():
    made = loader(set(range(33)), batch_size=4)
    with pytest.raises(
        ValueError, match="none of the 4 rows of a batch, and none of the rows after it"
    ):
        next(iter(made))
