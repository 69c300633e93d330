"""Loader options that do not fit the rows are refused, never ignored."""

from __future__ import annotations

import json

import numpy as np
import pytest
from dataset_ranks import loaders, partitions_of

from hearth.cluster.node.context import NodeContext
from hearth.cluster.node.datasets.program import NodeDatasets
from hearth.data.options import check_known


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
def test_one_name_instead_of_several_is_refused(option):
    context = NodeContext(0, "worker", 0, {}, "", "")
    with pytest.raises(ValueError, match=rf"{option} is 'text': pass a sequence of names"):
        context.dataset("train", 4, **{option: "text"})


@pytest.mark.parametrize(
    "option",
    [
        {"batch_size": 4.0},
        {"batch_size": "4"},
        {"batch_size": 10**19},
        {"seed": None},
        {"seed": 1.5},
        {"workers": "2"},
        {"columns": ("id", "id")},
    ],
)
def test_options_of_other_types_are_refused_by_name(option):
    name = next(iter(option))
    with pytest.raises(ValueError, match=f"{name} (is|names)"):
        first(**option)


def test_options_of_a_data_loader_are_refused_with_what_replaces_them():
    with pytest.raises(TypeError, match="has no option 'num_workers': use workers="):
        check_known({"seed": 1, "num_workers": 2})
    with pytest.raises(TypeError, match="has no option 'batchsize': its options are batch_size, "):
        check_known({"batchsize": 2})
    with pytest.raises(TypeError, match=r"its options are batch_size, .*, collate_fn"):
        check_known({"batchsize": 2}, ["pin_memory", "collate_fn"])


@pytest.mark.parametrize("epoch", [-1, 1.5, "2", None, 2**70])
def test_an_invalid_epoch_is_refused(epoch):
    (made,) = loaders(partitions_of(4), 1)
    with pytest.raises(ValueError, match="pass an integer of at least 0"):
        made.set_epoch(epoch)


def test_an_epoch_of_numpy_leaves_a_state_that_json_holds():
    (made,) = loaders(partitions_of(4), 1)
    made.set_epoch(np.int64(3))
    assert json.loads(json.dumps(made.state_dict()))["epoch"] == 3


def test_a_node_that_takes_no_rows_gets_an_error_at_once():
    nodes = NodeDatasets(["train"])
    plan = {"op": "dataset_plan", "dataset": "train", "rank": None, "world": 1}
    nodes.handle({**plan, "owners": [0], "identity": ""}, [])
    with pytest.raises(ValueError, match="dataset 'train' was opened by a node whose role takes"):
        nodes.open("train")


def test_a_missing_column_is_named_before_any_row_has_arrived():
    nodes = NodeDatasets(["train"])
    plan = {"op": "dataset_plan", "dataset": "train", "rank": 0, "world": 1, "columns": ["x", "y"]}
    nodes.handle({**plan, "owners": [0], "identity": ""}, [])
    assert nodes.open("train", ["y"]).name == "train"
    with pytest.raises(ValueError, match=r"dataset 'train' has no column 'X': it has x, y .*case-"):
        nodes.open("train", ["x", "X"])
