"""`hearth bench-collective` between processes of this machine."""

from __future__ import annotations

import subprocess

import pytest

from hearth import HearthError
from hearth.cluster.driver import bench_collective
from hearth.ranks import bench


def test_each_transport_has_a_row_or_a_reason(capsys):
    assert bench_collective.main(["--sizes", "4KB", "--transports", "shm,tcp,rdma"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "all-reduce of float32 between 2 ranks; each of 5 rounds has several calls"
    assert lines[1].split()[:4] == ["transport", "bytes", "best", "us"]
    shm, tcp, rdma = lines[2:]
    for line, name, over in ((shm, "shm", "shared memory"), (tcp, "tcp", "tcp")):
        fields = line.split(maxsplit=6)
        assert fields[:3] == [name, "4", "KB"]
        best, median, bandwidth = (float(field.replace(",", "")) for field in fields[3:6])
        assert 0 < best <= median
        # The bandwidth is all bytes, counted once, divided by the best time. Both are rounded,
        # hence the bounds.
        least, most = ((4 << 10) / (best + error) / 1e3 for error in (0.051, -0.05))
        assert least - 0.0051 <= bandwidth <= most + 0.0051
        assert fields[6] == over
    assert rdma.startswith("rdma      ")
    assert "unavailable: RDMA is required, but rank 0" in rdma or "4 KB" in rdma


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ranks", "1"], "--ranks 1"),
        (["--sizes", "3KB"], "'3kb': it must be one of 4kb, 256kb"),
        (["--transports", "tcp,gloo"], "'gloo': it must be one of auto, shm, tcp, rdma"),
    ],
)
def test_a_mistake_is_one_line(capsys, arguments, said):
    assert bench_collective.main(arguments) == 1
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1


def test_the_reason_for_failed_connections_is_reported(monkeypatch, capsys):
    monkeypatch.setenv("HEARTH_STALL_SECONDS", "never")
    assert bench_collective.main(["--sizes", "4KB", "--transports", "tcp"]) == 0
    assert "tcp       unavailable: HEARTH_STALL_SECONDS=never" in capsys.readouterr().out


ENDS = """
import os, time
os.close(0)
time.sleep(0.5)  # the other one's, too
os.write(1, b'{"published": "where"}\\n')
os._exit(3)
"""


def test_a_rank_that_ends_is_reported_with_its_status(monkeypatch):
    popen = subprocess.Popen
    monkeypatch.setattr(
        bench.subprocess,
        "Popen",
        lambda command, **options: popen([command[0], "-c", ENDS], **options),
    )
    with pytest.raises(HearthError, match="rank 0 ended with status 3"):
        list(bench.between_processes(2, bench.Selection()))
