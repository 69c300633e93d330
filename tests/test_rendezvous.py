"""The rendezvous in Python: error classes, the GIL, one round of a cluster."""

import json
import socket
import threading

import pytest
from hearth.native._core import Coordinator, Member, new_token

from hearth import HearthError


@pytest.fixture
def token():
    return new_token()


@pytest.fixture
def coordinator(token):
    coordinator = Coordinator(world=2, token=token, generation=3)
    yield coordinator
    coordinator.close()


def join(coordinator, token, rank, **changes):
    options = {"generation": 3, "world": 2, "host_name": f"host{rank}", "token": token, **changes}
    return Member(host=coordinator.host(), port=coordinator.port(), rank=rank, **options)


def run_ranks(coordinator, token, body):
    """Calls body(member) for both ranks in threads; returns the results by rank."""
    results = [None, None]

    def run(rank):
        results[rank] = body(join(coordinator, token, rank))

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def test_ranks_meet_and_send_events(coordinator, token):
    def body(member):
        members = member.reserve(json.dumps({"pid": 7}))
        values = member.all_gather("x", json.dumps([len(members)]), 10)
        member.send_event(json.dumps({"event": "ready"}))
        member.done()
        return members, values

    results = run_ranks(coordinator, token, body)
    assert results == [([{"pid": 7}] * 2, [[2], [2]])] * 2
    assert coordinator.wait_members(5) == [{"pid": 7}] * 2
    events = [coordinator.next_event(5) for _ in range(4)]
    assert sorted(rank for rank, _ in events) == [0, 0, 1, 1]
    assert [json.loads(text) for rank, text in events if rank == 0] == [{"event": "ready"}, None]
    assert coordinator.finished()
    assert coordinator.failure() is None


def test_first_failure_reaches_the_other_rank_and_the_driver(coordinator, token):
    claim = threading.Lock()

    def body(member):
        member.reserve("{}")
        if claim.acquire(blocking=False):  # exactly one of the two ranks gets here
            member.send_failure("layer ip1: bad shape")
        with pytest.raises(HearthError) as caught:
            member.all_gather("step", "null", 10)
        return str(caught.value)

    texts = set(run_ranks(coordinator, token, body))
    failure = coordinator.failure()
    assert texts == {failure["message"]}
    where = f"rank {failure['rank']} on host {failure['host']}"
    assert failure["message"] == f"{where} failed: layer ip1: bad shape"
    assert failure["error"] == "layer ip1: bad shape"
    assert failure["code"] == "internal"


def test_a_wait_lets_other_threads_run(coordinator):
    returned = threading.Event()
    waiter = threading.Thread(target=lambda: (coordinator.next_event(60), returned.set()))
    waiter.start()
    assert not returned.wait(0.05)
    coordinator.close()  # if the wait held the GIL, this line would never run
    assert returned.wait(60)
    waiter.join()


def test_missing_ranks_are_a_timeout_error(coordinator):
    with pytest.raises(TimeoutError, match="ranks 0, 1 of 2 did not join the cluster; no rank did"):
        coordinator.wait_members(0.01)


def test_refused_member_is_a_permission_error(coordinator, token):
    with pytest.raises(PermissionError, match="it serves generation 3"):
        join(coordinator, token, 0, generation=2)
    with pytest.raises(PermissionError, match="rejected the token"):
        join(coordinator, new_token(), 0)
    assert coordinator.refused() == 2


def test_closed_port_is_a_connection_error(token):
    with socket.socket() as closed:  # bound but not listening, so no other process can listen there
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(ConnectionError, match="rank 0 on host localhost cannot join"):
            Member(host="127.0.0.1", port=port, token=token, rank=0, world=1, connect_timeout_s=2)


def test_invalid_values_are_value_errors(coordinator):
    with pytest.raises(ValueError, match="world is 0"):
        Coordinator(world=0, token=new_token())
    with pytest.raises(ValueError, match="64 hex digits"):
        Coordinator(world=1, token="5ec2e7")
    with pytest.raises(ValueError, match="is not JSON"):
        coordinator.broadcast("{")


def test_hearth_error_is_a_runtime_error():
    assert issubclass(HearthError, RuntimeError)
    assert (HearthError.__module__, HearthError.__name__) == ("hearth.errors", "HearthError")
