"""The arithmetic of tools/scale_model.py, with numbers that can be checked by hand."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import scale_model as model

# Constants for hand calculation: a link of 1 MB/s and a latency of 1 ms dominate.
LINK = model.Constants(
    latency_s=1e-3,
    link_bytes_s=1e6,
    message_s=0,
    switch_s=0,
    byte_s=0,
    memory_bytes_s=1e7,
    barrier_s=1e-4,
    join_s=1e-3,
    peer_s=1e-4,
)


def test_direct_exchange_takes_one_step_and_all_bytes_of_the_others():
    assert model.direct(LINK, 5, 1000) == pytest.approx(1e-3 + 4 * 1e-3)


def test_halving_and_doubling_takes_two_steps_for_each_power_of_two():
    assert model.halving_doubling(LINK, 8, 8000) == pytest.approx(6e-3 + 2 * 7e-3)


def test_ranks_beyond_a_power_of_two_cost_two_steps_with_all_bytes():
    extra = model.halving_doubling(LINK, 9, 8000) - model.halving_doubling(LINK, 8, 8000)
    assert extra == pytest.approx(2 * (1e-3 + 8e-3))


def test_ring_of_single_chunks_waits_at_each_step():
    assert model.ring(LINK, 4, 4000) == pytest.approx(6 * (1e-3 + 1e-3))


def test_ring_of_many_chunks_waits_for_the_link_alone():
    count = 4 * 10 * model.CHUNK
    by_link = 6 * 10 * model.CHUNK / 1e6
    last = 1e-3 + model.CHUNK / 1e6
    assert model.ring(LINK, 4, count) == pytest.approx(by_link + last)


def test_tree_sends_all_bytes_up_and_down_every_level():
    assert model.tree(LINK, 8, 1000) == pytest.approx(6 * (1e-3 + 1e-3))


def test_ranks_that_share_cores_wait_for_them():
    busy = replace(LINK, message_s=1e-3, cores=2)
    assert model.direct(busy, 8, 1) == pytest.approx(1e-3 + 8 / 2 * 7 * 1e-3)
    switching = replace(busy, switch_s=1e-3)
    assert model.direct(switching, 8, 1) == pytest.approx(1e-3 + 8 / 2 * (7 + 1) * 1e-3)
    assert model.direct(replace(switching, cores=8), 8, 1) == pytest.approx(1e-3 + 7e-3)
    assert model.direct(replace(busy, cores=0), 8, 1) == pytest.approx(1e-3 + 7e-3)
    assert model.direct(replace(busy, cores=16), 8, 1) == pytest.approx(1e-3 + 7e-3)


def test_ranks_of_a_host_share_its_link():
    between = model.chosen(LINK, 4, 1000, shared=2)
    assert between == pytest.approx(1e-3 + 2 * 3 * 1e-3)
    within = 2 * (1e-4 + 2000 / 1e7)
    assert model.hierarchical(LINK, 4, 2, 2000) == pytest.approx(within + between)
    assert model.hierarchical(LINK, 1, 2, 2000) == pytest.approx(within)
    assert model.hierarchical(LINK, 4, 1, 1000) == model.chosen(LINK, 4, 1000)


def test_the_algorithm_follows_the_size_and_the_number_of_ranks():
    for ranks, count, algorithm in [
        (2, 32 << 10, model.direct),
        (5, 8 << 10, model.direct),
        (5, (8 << 10) + 4, model.halving_doubling),
        (8, 4, model.direct),
        (9, 4, model.halving_doubling),
        (6, 1 << 20, model.halving_doubling),
        (6, (1 << 20) + 4, model.ring),
        (64, 2 << 20, model.halving_doubling),
        (64, (2 << 20) + 4, model.ring),
    ]:
        assert model.chosen(LINK, ranks, count) == algorithm(LINK, ranks, count)


def test_a_single_rank_does_not_wait():
    assert model.chosen(LINK, 1, 1000) == model.ring(LINK, 1, 1000) == model.tree(LINK, 1, 1) == 0
    assert model.Step(1e6, 0.3).seconds(LINK, 1) == pytest.approx(0.3)


def test_reductions_during_backward_are_hidden():
    # Four buckets, each of which takes as long as a quarter of backward: only the last is not
    # hidden.
    each = model.chosen(LINK, 4, 1000)
    step = model.Step(4000, compute_s=3 / 2 * 4 * each, bucket_bytes=1000)
    assert step.seconds(LINK, 4) == pytest.approx(step.compute_s + each)
    # Without computation nothing is hidden.
    assert replace(step, compute_s=0).seconds(LINK, 4) == pytest.approx(4 * each)
    # A feed that is slower than both determines the step's time.
    assert replace(step, feed_s=100).seconds(LINK, 4) == 100


def test_connecting_grows_with_the_ranks():
    assert model.connect(LINK, 11) == pytest.approx(11e-3 + 10e-4)
