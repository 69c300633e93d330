"""Filtering, splits, shared parameters and pruning of backward, like Caffe's."""

from __future__ import annotations

import pytest
from golden import Case, cases
from hearth.native._core import parse_prototxt
from test_nets import NETS, make_net

from hearth.native import _caffe


def parsed(text: str) -> dict[str, object]:
    return parse_prototxt(text, "prototxt", "NetParameter")


def without_state(net: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in net.items() if key != "state"}


@pytest.mark.parametrize("case", cases("graph"), ids=lambda case: case.name)
def test_rules_leave_the_same_layers(case: Case) -> None:
    got = parsed(_caffe.filter_net(case["prototxt"]))
    assert without_state(got) == without_state(parsed(case["filtered_prototxt"]))


@pytest.mark.parametrize("case", cases("graph"), ids=lambda case: case.name)
def test_split_layers_have_the_same_positions_and_names(case: Case) -> None:
    got = parsed(_caffe.insert_splits(_caffe.filter_net(case["prototxt"])))
    assert without_state(got) == without_state(parsed(case["split_prototxt"]))


@pytest.mark.parametrize("case", NETS, ids=lambda case: case.name)
def test_layers_are_connected_and_pruned_alike(case: Case) -> None:
    assert make_net(case).layers == [
        {key: layer[key] for key in ("name", "type", "bottoms", "tops", "need_backward",
                                     "bottom_need_backward")}
        for layer in case["net_layers"]
    ]  # fmt: skip


@pytest.mark.parametrize("case", NETS, ids=lambda case: case.name)
def test_parameters_are_shared_alike(case: Case) -> None:
    expected = [(param["lr_mult"], param["decay_mult"]) for param in case["learnable"]]
    assert make_net(case).learnable == expected


@pytest.mark.parametrize("case", cases("upgrade"), ids=lambda case: case.name)
def test_old_formats_become_the_same_net(case: Case) -> None:
    assert parsed(_caffe.upgrade_net(case["prototxt"])) == parsed(case["output_prototxt"])
