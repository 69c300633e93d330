"""The coordinator of hearth.horovod: one order for all ranks, fused reductions, lost ranks."""

from __future__ import annotations

import queue

import pytest

from hearth.horovod import elastic
from hearth.horovod.coordinator import Coordinator, _fused
from hearth.horovod.engine import Engine
from hearth.horovod.errors import HorovodInternalError
from hearth.ranks.group import Rendezvous
from hearth.ranks.place import Place


class Group:
    """A coordinator, and the messages that it has sent to each rank."""

    def __init__(self, world):
        self.received = [queue.SimpleQueue() for _ in range(world)]
        self.coordinator = Coordinator({r: each.put for r, each in enumerate(self.received)})

    def submit(self, rank, name, kind="allreduce", set_id=0, **more):
        call = {"kind": kind, "dtypes": ["float32"], "shapes": [[2]], "op": "sum"}
        call |= {"scale": [1.0, 1.0], **more}
        self.coordinator.take(rank, {"set": set_id, "name": name, "call": call})

    def next_of(self, rank, count):
        """The next `count` responses to a rank."""
        found = []
        while len(found) < count:
            found += self.received[rank].get(timeout=60)["do"]
        return found


@pytest.fixture
def group():
    made = Group(3)
    yield made
    made.coordinator.close()


def test_all_ranks_execute_in_the_same_order(group):
    orders = [["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]]
    for step in range(3):
        for rank, order in enumerate(orders):
            group.submit(rank, order[step])
    names = [[each["name"] for each in group.next_of(rank, 3)] for rank in range(3)]
    assert sorted(names[0]) == ["a", "b", "c"] and names[0] == names[1] == names[2]


def test_a_process_set_waits_for_its_members_alone(group):
    for rank in range(3):
        group.submit(rank, "add", "add_set", ranks=[0, 2])
    [added] = group.next_of(1, 1)
    number = added["operation"]["id"]
    group.submit(0, "x", set_id=number)
    group.submit(2, "x", set_id=number)
    for rank in (0, 2):
        assert [each["name"] for each in group.next_of(rank, 2)] == ["add", "x"]
    assert group.received[1].empty()


def test_operations_that_wait_for_a_lost_rank_fail(group):
    group.submit(0, "x")
    group.coordinator.remove(2, "was lost", True)
    group.submit(1, "y")
    group.coordinator.take(0, {"join": True})
    [x, join] = group.next_of(0, 2)
    assert x["error"] == "'x' cannot complete: rank 2 was lost" and x["lost"]
    assert join["error"] == "'join' cannot complete: rank 2 was lost"
    [y] = group.next_of(1, 1)
    assert "'y' cannot complete" in y["error"]


def test_a_rank_that_has_left_is_not_lost(group):
    group.submit(0, "x")
    group.coordinator.remove(2, "has called shutdown() or ended", False)
    [x] = group.next_of(0, 1)
    assert "gone" in x and not x["lost"]


class Restored(elastic.ObjectState):
    """A state that needs no other ranks."""

    def __init__(self):
        self.restored = 0
        super().__init__(lambda value: value, lambda: 0)

    def restore(self):
        self.restored += 1


@pytest.mark.parametrize("lost", [True, False])
def test_a_program_continues_unless_a_rank_is_lost(monkeypatch, lost):
    monkeypatch.setattr(elastic, "_reconnect", lambda cause: None)
    state = Restored()

    def train(state):
        if not state.restored:
            raise HorovodInternalError("'x' cannot complete: rank 2 was lost", lost)
        return "done"

    if lost:
        with pytest.raises(HorovodInternalError):
            elastic.run(train)(state)
    else:
        assert elastic.run(train)(state) == "done"
    assert state.restored == (0 if lost else 1)


def response(op="sum", scale=1.0, kind="float32", size=8, set_id=0):
    operation = {"kind": "allreduce", "op": op, "scale": [scale, 1.0]}
    return {"set": set_id, "operation": {**operation, "dtypes": [kind], "bytes": size}}


@pytest.mark.parametrize(
    "other",
    [{"op": "max"}, {"scale": 2.0}, {"kind": "float64"}, {"size": 64 << 20}, {"set_id": 1}],
    ids=str,
)
def test_only_reductions_of_one_form_are_one(other):
    found = _fused([response(), response(), response(**other), {"joined": 1}, response()])
    assert [each.get("fused", False) for each in found] == [False, True, False, False, False]


def test_products_are_not_fused():
    assert not any("fused" in each for each in _fused([response("product"), response("product")]))


def test_missing_ranks_are_named():
    left = []
    place = Place(0, 3, lambda name: Rendezvous(left.append, str, lambda: None, key="0123"))
    with pytest.raises(TimeoutError, match=r"ranks \[1, 2\] did not call init\(\) within 0.1 s"):
        Engine(place, 0, "host", 0.1)
    assert len(left) == 1


@pytest.mark.parametrize("text", ["abc", "-1", "nan"])
def test_an_invalid_reset_limit_is_reported(monkeypatch, text):
    monkeypatch.setenv("HOROVOD_ELASTIC_RESET_LIMIT", text)
    message = (
        f"HOROVOD_ELASTIC_RESET_LIMIT={text} in the environment: it must be a number of resets"
    )
    with pytest.raises(ValueError, match=message):
        elastic.run(lambda state: None)(None)
