"""Python programs that run as ranks beside each other and print lines of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any


class RankPrograms:
    """Processes that run the same program; end() them."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, code: str, given: object, environment: Mapping[str, str] | None = None) -> None:
        """One more of them, with `given` as its first argument, as JSON."""
        self.processes.append(
            subprocess.Popen(
                [sys.executable, "-c", code, json.dumps(given)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
            )
        )

    def say(self, rank: int) -> Any:
        """The next line of a rank; fails the test when it ended without one."""
        line = self.processes[rank].stdout.readline()
        assert line, self.processes[rank].stderr.read()[-4000:]
        return json.loads(line)

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()
