"""Ranks of a group that take different numbers of steps."""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hearth import HearthError
from hearth.native import _core
from hearth.ranks.group import Ranks, Rendezvous


def two_ranks(pool: ThreadPoolExecutor) -> list[Ranks]:
    published: queue.SimpleQueue[str] = queue.SimpleQueue()
    rendezvous = Rendezvous(
        published.put, lambda: published.get(timeout=60), lambda: None, key="0123"
    )
    opened = [pool.submit(Ranks, rendezvous, rank, 2, 60.0) for rank in range(2)]
    return [each.result() for each in opened]


REASONS = {
    0: "^rank 0 has ended before the others: .* give all ranks the same number of steps",
    1: "all-reduce of 16 bytes .* rank 1 on host .* left the group",
}


@pytest.mark.parametrize("first", REASONS)
def test_a_rank_with_more_steps_gets_the_reason_of_the_others_end(first: int) -> None:
    with ThreadPoolExecutor(2) as pool:
        ranks = two_ranks(pool)
        waits = ranks[1 - first].submit(_core.Request("all_reduce", np.zeros(4, np.float32)))
        closed = pool.submit(ranks[first].close)
        with pytest.raises((ConnectionError, HearthError)) as failed:
            waits(60)
        assert failed.match(REASONS[first])
        ranks[1 - first].close()
        closed.result()
