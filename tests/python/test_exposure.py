"""A running trainer exposes neither its token nor named files, and listens on a single address."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path

import pytest

from hearth.caffe_jobs.trainer_process import RankError, TrainerProcess, stream_of
from hearth.native import _core as core

NET = """
layer { name: "data" type: "CoSData" top: "x" source_class: "com.yahoo.ml.caffe.DataFrameSource"
  cos_data_param { batch_size: 4 source: "unused"
    top { name: "x" type: FLOAT_ARRAY channels: 2 sample_num_axes: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "x" top: "loss" }
"""


class RecordedTrainer(TrainerProcess):
    """A TrainerProcess that records its events."""

    def __init__(self, job: dict, fds: list[int]):
        self.events: list[dict] = []
        super().__init__(job, fds)

    def _handle(self, event: dict) -> None:
        self.events.append(event)
        super()._handle(event)


class Running:
    """Rank 0 of two, as a process. Rank 1 is a member in this process, so that rank 0 keeps waiting
    while the tests inspect it.
    """

    def __init__(self, folder: Path):
        self.token = core.new_token()
        self._writer = core.RingWriter()
        coordinator = core.Coordinator(world=2, token=self.token, generation=4)
        self.coordinator = coordinator
        job = {
            "mode": "train",
            "token": self.token,
            "coordinator": {"host": "127.0.0.1", "port": coordinator.port()},
            "generation": 4,
            "rank": 0,
            "world": 2,
            "host": "h",
            "solver": {"path": "s", "text": 'base_lr: 0.1 lr_policy: "fixed" max_iter: 5'},
            "net": {"path": "n", "text": NET},
            "streams": {"train": stream_of(self._writer)},
            "spill_dir": str(folder),
        }
        self.trainer = RecordedTrainer(job, self._writer.fds())
        self._writer.close_child_fds()
        self.member = core.Member(
            host="127.0.0.1",
            port=coordinator.port(),
            token=self.token,
            generation=4,
            rank=1,
            world=2,
        )
        self.member.reserve("{}")
        # Rank 0 listens before it publishes its address, and now waits for connections.
        self.infos = self.member.all_gather("collective ranks", "[]", 60)[0]

    @property
    def proc(self) -> Path:
        return Path(f"/proc/{self.trainer.pid}")

    def descriptors(self) -> dict[str, str]:
        return {fd.name: os.readlink(fd) for fd in (self.proc / "fd").iterdir()}

    def close(self) -> None:
        self.trainer.close()
        self._writer.close()
        self.coordinator.close()


@pytest.fixture
def running(tmp_path):
    running = Running(tmp_path)
    yield running
    running.close()


def sockets(targets: Iterable[str]) -> set[str]:
    """The inodes of the sockets among the targets of descriptors."""
    return {target[len("socket:[") : -1] for target in targets if target.startswith("socket:[")}


def listening(proc: Path, inodes: set[str]) -> list[str]:
    """Local addresses (hexadecimal) of the listening TCP sockets with these inodes."""
    rows = [line.split() for line in (proc / "net" / "tcp").read_text().splitlines()[1:]]
    return [row[1].partition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes]


def test_the_token_is_in_no_command_line_environment_event_or_log(running, capfd):
    secrets = (running.token, bytes.fromhex(running.token).hex().upper())
    for name in ("cmdline", "environ", "comm"):
        text = (running.proc / name).read_bytes().decode(errors="replace")
        assert not any(secret in text for secret in secrets), name
    assert not any(running.token in target for target in running.descriptors().values())
    running.member.send_failure("layer x: made for this test")
    with pytest.raises(RankError, match="made for this test") as caught:
        running.trainer.wait()
    assert running.token not in str(caught.value)
    assert running.token not in json.dumps(running.trainer.events)
    captured = capfd.readouterr()
    assert running.token not in captured.out + captured.err
    assert running.trainer.events  # the trainer did report something


def test_memory_and_files_are_unnamed_and_private_to_the_user(running, tmp_path):
    files = running.descriptors()
    shared = [target for target in files.values() if target.startswith("/memfd:")]
    assert shared
    assert not any("/dev/shm" in target for target in files.values())
    maps = (running.proc / "maps").read_text()
    assert not any(" rw-s " in line and "memfd" not in line for line in maps.splitlines())
    spilled = [fd for fd, target in files.items() if target.startswith(str(tmp_path))]
    assert len(spilled) == 1
    status = os.stat(running.proc / "fd" / spilled[0])
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_nlink == 0
    assert list(tmp_path.iterdir()) == []


def test_sockets_listen_on_one_address(running):
    loopback = "0100007F"
    ours = (os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if os.path.lexists(fd))
    assert set(listening(Path("/proc/self"), sockets(ours))) == {loopback}  # the coordinator's port
    theirs = sockets(running.descriptors().values())
    assert listening(running.proc, theirs) == [loopback]  # the collective's port
    assert [info["address"] for info in running.infos] == ["127.0.0.1"]


def test_a_wrong_token_and_an_old_generation_are_refused_and_counted(running):
    place = {"host": "127.0.0.1", "port": running.coordinator.port(), "rank": 0, "world": 2}
    with pytest.raises(PermissionError) as wrong:
        core.Member(**place, token=core.new_token(), generation=4)
    with pytest.raises(PermissionError) as old:
        core.Member(**place, token=running.token, generation=3)
    assert running.coordinator.refused() == 2
    assert running.token not in str(wrong.value) + str(old.value)
