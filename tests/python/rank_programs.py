"""Runs Python programs as parallel ranks, which print lines of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from forks import Fork, forks_with


class RankPrograms:
    """Processes of ranks that have imported `package`; end() them when they are not needed."""

    def __init__(self, package: str) -> None:
        self.processes: list[Fork] = []
        self._forks = forks_with(package)

    def start(self, code: str, given: object, more: Mapping[str, str]) -> None:
        """Starts a rank; `given` (as JSON) is its argument, and `more` extends its environment."""
        fork = self._forks.start(code, json.dumps(given), {**os.environ, **more})
        self.processes.append(fork)

    def say(self, rank: int) -> Any:
        """Reads a rank's next line; fails the test if the rank ended without printing one."""
        line = "[Gloo]"
        while line.startswith("[Gloo]"):  # PyTorch 2.8 prints gloo's connections
            line = self.processes[rank].stdout.readline()
        assert line, self.processes[rank].stderr.read()[-4000:]
        return json.loads(line)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.end()
