"""Ranks as processes on emulated hosts, and the coordinator on the driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from emulated_hosts import Network

from hearth.native import _core

_HERE = Path(__file__).resolve().parent


class RankProcesses:
    """Rank r runs on host r // `per_host`. Closing the network ends the processes."""

    def __init__(
        self,
        network: Network,
        work: str,
        per_host: int = 1,
        timeout_s: float = 20,
        *,
        heartbeat_timeout_s: float = 10,
        version: int = 4,
        environment: Mapping[str, str] | None = None,
        program: Path = _HERE / "rank.py",
    ) -> None:
        world = len(network.hosts) * per_host
        driver = network.address(-1, version)
        variables = {**os.environ, **(environment or {})}
        rendezvous = {"token": _core.new_token(), "world": world}
        self._coordinator = network.driver.popen([sys.executable, str(_HERE / "coordinator.py")])
        limits = {"heartbeat_timeout_s": heartbeat_timeout_s, "bind_host": driver}
        self._tell(self._coordinator, {**rendezvous, **limits})
        rendezvous |= {"host": driver, "port": int(self._coordinator.stdout.readline())}
        self._ranks = []
        for rank in range(world):
            host = rank // per_host
            process = network.hosts[host].popen([sys.executable, str(program)], env=variables)
            self._ranks.append(process)
            job = {"address": network.address(host, version), "work": work, "timeout_s": timeout_s}
            self._tell(process, {**job, "rendezvous": {**rendezvous, "rank": rank}})

    def next(self) -> list[dict[str, object]]:
        """The next line of every rank, or {} for a rank that has ended."""
        return [json.loads(rank.stdout.readline() or "{}") for rank in self._ranks]

    def tell(self, rank: int, what: dict[str, object] | None = None) -> None:
        """Sends a line to a rank that waits for one."""
        self._tell(self._ranks[rank], what or {})

    def ask(self, what: dict[str, object]) -> list[dict[str, object]]:
        """Sends the same line to every rank; returns the next line of each."""
        for rank in range(len(self._ranks)):
            self.tell(rank, what)
        return self.next()

    @staticmethod
    def _tell(process: subprocess.Popen[str], what: dict[str, object]) -> None:
        process.stdin.write(json.dumps(what) + "\n")
        process.stdin.flush()
