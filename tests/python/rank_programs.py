"""Runs Python programs as ranks in parallel; they print lines of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from forks import Fork, forks_with


class RankPrograms:
    """Processes that run the same program, which has `package` imported; end() them."""

    def __init__(self, package: str) -> None:
        self.processes: list[Fork] = []
        self._forks = forks_with(package)

    def start(self, code: str, given: object, more: Mapping[str, str]) -> None:
        """One more of them, with `given` as its first argument, as JSON, and `more` environment."""
        fork = self._forks.start(code, json.dumps(given), {**os.environ, **more})
        self.processes.append(fork)

    def say(self, rank: int) -> Any:
        """The next line of a rank; fails the test when it ended without one."""
        line = "[Gloo]"
        while line.startswith("[Gloo]"):  # PyTorch 2.8 reports gloo's connections there
            line = self.processes[rank].stdout.readline()
        assert line, self.processes[rank].stderr.read()[-4000:]
        return json.loads(line)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.end()
