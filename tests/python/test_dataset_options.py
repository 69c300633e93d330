"""Options of loaders that do not fit the rows are refused, never ignored."""

from __future__ import annotations

import pytest
from dataset_ranks import loaders, partitions_of

from hearth.cluster.context import NodeContext
from hearth.cluster.datasets.node import NodeDatasets


def first(**options):
    (made,) = loaders(partitions_of(4, row_weight=float, text=str), 1, **options)
    return next(iter(made))


def test_a_column_with_the_name_of_the_weights_is_refused():
    with pytest.raises(ValueError, match="dataset 'train' has a column row_weight, which uneven="):
        first(uneven="weight")
    assert sorted(first()["row_weight"].tolist()) == [0, 1, 2, 3]
    assert first(uneven="weight", columns=("id",))[1].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("option", [{"ragged": ("texts",)}, {"transforms": {"texts": None}}])
def test_an_option_for_a_column_that_is_not_given_is_refused(option):
    message = f"{next(iter(option))} names texts, but the batches of dataset 'train' have the "
    with pytest.raises(ValueError, match=message):
        first(**option)


@pytest.mark.parametrize("option", ["columns", "ragged"])
def test_one_name_in_place_of_several_is_refused(option):
    context = NodeContext(0, "worker", 0, {}, "", "")
    with pytest.raises(ValueError, match=rf"{option} is 'text': give a sequence of names"):
        context.dataset("train", 4, **{option: "text"})


def test_a_node_that_takes_no_rows_is_told_so_at_once():
    nodes = NodeDatasets(["train"])
    plan = {"op": "dataset_plan", "dataset": "train", "rank": None, "world": 1}
    nodes.handle({**plan, "owners": [0], "identity": ""}, [])
    with pytest.raises(ValueError, match="dataset 'train' was opened by a node whose role takes"):
        nodes.open("train")
