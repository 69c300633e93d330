"""One Hadoop cluster for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hadoop_cluster import HadoopCluster


@pytest.fixture(scope="session")
def hadoop() -> Iterator[HadoopCluster]:
    """The cluster; this process, and what it starts, finds it as a user's would: by variables."""
    with HadoopCluster() as cluster:
        before = dict(os.environ)
        os.environ.update(cluster.environment())
        yield cluster
        os.environ.clear()
        os.environ.update(before)
