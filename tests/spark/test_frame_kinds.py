"""Ranks receive the rows of any DataFrame unchanged and in the same order each time."""

import frames
import pytest
from test_launch_frame import rows_by_rank

ROWS, PARTITIONS, TIMES = 3000, 12, 3  # three times: two orders may agree by chance


@pytest.mark.parametrize("kind", frames.KINDS)
def test_rows_are_recomputed_in_the_same_order(spark, tmp_path, kind):
    wanted = frames.Wanted(spark, tmp_path, ROWS, PARTITIONS)
    seen = [rows_by_rank(spark, {"train": frames.KINDS[kind](wanted)}) for _ in range(TIMES)]
    assert sorted(id_ for _, _, id_ in seen[0]) == list(range(ROWS))
    assert all(rows == seen[0] for rows in seen)
