"""Ranks on emulated hosts with slow, long and broken links. bench/wire.py measures the speed."""

import time

import pytest
from emulated_hosts import Link, Network
from rank_processes import RankProcesses

pytestmark = pytest.mark.timeout(180)


def work_through(network, per_host=1, **options):
    """Checks that every rank gets every operation's result; returns each rank's report."""
    ranks = RankProcesses(network, "operations", per_host, **options)
    talks = ranks.next()
    assert all("talks" in line for line in talks), talks
    ends = ranks.next()
    assert all("done" in line for line in ends), ends
    return [{**line, **end["done"]} for line, end in zip(talks, ends, strict=True)]


def ways_of(lines):
    return {line["talks"] for line in lines}


@pytest.mark.parametrize("rate", ["1gbit", "10gbit"])
def test_operations_on_a_shaped_link_needs_root(rate):
    with Network(3, Link(rate)) as network:
        assert ways_of(work_through(network)) == {"tcp"}


def test_operations_with_20_ms_from_host_to_host_needs_root():
    with Network(3, Link("1gbit", delay_s=0.02)) as network:
        lines = work_through(network)
        # A barrier takes two messages in sequence, of which the first may be in flight when it
        # begins.
        assert all(line["barrier_s"] > 0.02 for line in lines), lines


def test_operations_where_one_packet_of_a_hundred_is_lost_needs_root():
    with Network(3, Link("1gbit", loss=0.01)) as network:
        lines = work_through(network)
        assert all(line["sent_again"] > 0 for line in lines), lines


def test_operations_on_8_hosts_needs_root():
    with Network(8, Link("1gbit")) as network:
        assert ways_of(work_through(network)) == {"tcp"}


def test_two_ranks_a_host_share_memory_and_only_there_needs_root():
    with Network(4, Link("1gbit")) as network:
        lines = work_through(network, per_host=2)
        assert ways_of(lines) == {"shared memory within 4 hosts, tcp between them"}


def test_ranks_meet_and_work_over_ipv6_needs_root():
    with Network(3) as network:
        lines = work_through(network, version=6)
        # Connections to the coordinator and to the two other ranks.
        assert [line["over_ipv6"] for line in lines] == [3, 3, 3]


def test_ranks_talk_over_the_addresses_that_are_chosen_needs_root():
    with Network(3) as network:
        lines = work_through(network, environment={"HEARTH_INTERFACE": "fd77::/64"})
        assert [line["over_ipv6"] for line in lines] == [2, 2, 2]
        lines = work_through(network, environment={"HEARTH_INTERFACE": "eth0"})
        assert [line["over_ipv6"] for line in lines] == [0, 0, 0]


def test_addresses_that_no_host_has_are_an_error_with_those_that_it_has_needs_root():
    with Network(2) as network:
        environment = {"HEARTH_INTERFACE": "10.78.0.0/16"}
        for line in RankProcesses(network, "operations", environment=environment).next():
            assert line["error"] == "InvalidArgumentError", line
            assert "no address in that range; it has" in line["message"], line
            assert "10.77.0." in line["message"], line


def test_traffic_between_hosts_is_encrypted_on_request_needs_root():
    with Network(2, Link("1gbit")) as network:
        lines = work_through(network, per_host=2, environment={"HEARTH_TLS": "on"})
        assert ways_of(lines) == {"shared memory within 2 hosts, tcp with TLS between them"}


def test_work_continues_after_a_link_was_down_for_5_s_needs_root():
    with Network(3, Link("1gbit")) as network:
        # A link may be down for the heartbeat timeout, which is 10 s by default.
        ranks = RankProcesses(network, "steps", timeout_s=30, heartbeat_timeout_s=10)
        ranks.next()
        ranks.next()
        network.set_link(1, up=False)
        time.sleep(5)
        network.set_link(1, up=True)
        ranks.tell(0)
        for line in ranks.next():
            assert line["done"]["steps"] > 20
            assert line["done"]["longest_s"] > 4.5  # the link was really down


def test_a_link_that_stays_down_gives_every_rank_an_error_with_names_needs_root():
    with Network(3, Link("1gbit")) as network:
        ranks = RankProcesses(network, "steps", timeout_s=30, heartbeat_timeout_s=4)
        ranks.next()
        ranks.next()
        network.set_link(1, up=False)
        cut = time.monotonic()
        lines = ranks.next()
        for line in lines:
            assert line["ended"] - cut < 20, lines
            assert "rank" in line["message"] or "coordinator" in line["message"], lines
        for rank in (0, 2):
            assert "rank 1 on host host1 has been silent" in lines[rank]["cause"], lines
        assert "coordinator at 10.77.0.1" in lines[1]["cause"], lines
