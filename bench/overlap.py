#!/usr/bin/env python3
"""Share of communication hidden by a backward pass: a step against its backward pass.

`bench/overlap.py --json FILE`. Two emulated hosts (tests/hosts) on a link of 1 Gbit/s, so that
communication is waiting time and not another program's work. 64 MB of gradients in 32 layers; each
layer's gradients are submitted when its part of the backward pass is done, and the whole backward
pass takes as long as the communication alone. "device": a rank's thread waits for each layer, as
for a GPU. "cpu": it computes, so that both hosts' network processing shares the two cores with it.
Needs root.
"""

from __future__ import annotations

import sys
from pathlib import Path

from report import Report, alternate, arguments

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "hosts"))

from emulated_hosts import Link, Network, why_not
from rank_processes import RankProcesses

TIMEOUT_S = 60.0
NAME = "overlap/2 hosts/1gbit/64 MB in 32 layers"
CASES = {"device": ("device_step", "device_backward"), "cpu": ("step", "backward")}
_PROGRAM = Path(__file__).with_name("overlap_rank.py")


def bench(report: Report, rounds: int) -> None:
    """The rows: milliseconds of a step, and of its backward pass without communication."""
    if not report.wants(NAME):
        return
    if reason := why_not():
        print(f"bench/overlap.py: left out: {reason}", file=sys.stderr)
        return
    with Network(2, Link("1gbit")) as network:
        ranks = RankProcesses(network, "steps", timeout_s=TIMEOUT_S, program=_PROGRAM)
        talks = ranks.next()
        if any(line.get("talks") != "tcp" for line in talks):
            raise RuntimeError(f"the ranks did not connect over tcp: {talks}")

        def slowest(what: str) -> float:
            return max(line["ms"] for line in ranks.ask({"what": what}))

        slowest("calibrate")
        for case, whats in CASES.items():
            step, backward, alone = alternate(
                rounds, *(lambda w=what: slowest(w) for what in (*whats, "communication"))
            )
            how = {"unit": "ms", "higher_is_better": False, "ours": step}
            report.add(f"{NAME}/{case}", **how, peer=backward, peer_name="backward alone")
            report.add(f"{NAME}/{case}/sums", **how, peer=alone, peer_name="communication alone")


def main() -> None:
    """Runs, reports and saves the row."""
    options = arguments(__doc__ or "").parse_args()
    report = Report(options.only)
    bench(report, options.rounds)
    report.save(options.json)


if __name__ == "__main__":
    main()
