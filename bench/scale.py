#!/usr/bin/env python3
"""Measures the constants of tools/simulate_scale.py, and the times with which it is compared.

`bench/scale.py --json docs/scale.json`. Ranks are processes on emulated hosts
(tests/hosts/emulated_hosts.py, which needs root). The links are so slow that they limit large
arrays, and not this machine's two cores. The constants come from 2 and 16 ranks only; the model
must then predict all-reduces of 2 to 64 ranks (best of the rounds). The file is written after each
shape.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from datetime import date
from pathlib import Path

from hearth.native import _core

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "hosts"))

from emulated_hosts import Link, Network, why_not
from rank_processes import RankProcesses

TIMEOUT_S = 60.0
RATE = "200mbit"
# Bytes, and consecutive calls: for direct exchange, halving and doubling, and the ring.
SIZES = [(4, 50), (4 << 10, 20), (256 << 10, 5), (4 << 20, 1)]
# Hosts, and ranks per host.
SHAPES = [(2, 1), (16, 1), (1, 2), (4, 1), (8, 1), (4, 2), (32, 1), (8, 4), (64, 1)]
_OF_CONSTANTS = 3  # the constants come from the first three shapes
_PROGRAM = Path(__file__).with_name("wire_rank.py")

Row = dict[str, float]


def measure(
    shape: tuple[int, int], rate: str, sizes: list[tuple[int, int]], rounds: int
) -> list[Row]:
    """The best time of an all-reduce between the hosts, in seconds, for each size."""
    hosts, per_host = shape
    with Network(hosts, Link(rate)) as network:
        ranks = RankProcesses(network, "timed", per_host, TIMEOUT_S, program=_PROGRAM)
        talks = ranks.next()
        if any("talks" not in line for line in talks):
            raise RuntimeError(f"the ranks did not connect: {talks}")
        connect_s = max(line["connect_s"] for line in talks)
        rows = []
        for size, calls in sizes:
            asked = {"bytes": size, "calls": calls}
            took = [max(line["seconds"] for line in ranks.ask(asked)) for _ in range(rounds)]
            row = {"hosts": hosts, "per_host": per_host, "bytes": size, "seconds": min(took)}
            rows.append({**row, "connect_s": connect_s})
            print(f"{hosts} x {per_host}, {size} bytes: {min(took) * 1e3:.4g} ms", flush=True)
    return rows


def join_s(ranks: int) -> float:
    """Seconds per rank of a rendezvous whose ranks are threads of this process."""
    token = _core.new_token()
    coordinator = _core.Coordinator(world=ranks, token=token)

    def join(rank: int) -> None:
        address = {"host": coordinator.host(), "port": coordinator.port(), "token": token}
        member = _core.Member(**address, rank=rank, world=ranks)
        member.reserve("{}")
        member.done()

    threads = [threading.Thread(target=join, args=(rank,)) for rank in range(ranks)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    coordinator.close()
    return took / ranks


def constants(rows: list[Row], fast: Row) -> Row:
    """See Constants in tools/scale_model.py. `fast`: large arrays over a link without a limit."""
    cores = os.cpu_count() or 1

    def row(hosts: int, per_host: int, size: int) -> Row:
        wanted = (hosts, per_host, size)
        return next(r for r in rows if (r["hosts"], r["per_host"], r["bytes"]) == wanted)

    large = SIZES[-1][0]
    two, many = row(2, 1, 4)["seconds"], row(16, 1, 4 << 10)["seconds"]
    # Two ranks, each on its core: the time of one message. Each end is assumed to take half.
    message = latency = two / 2
    # Halving and doubling takes 8 steps for 16 ranks; the cores execute each step of all ranks.
    switch = (many / 8 - latency) * min(cores, 16) / 16 - message
    small, shared = row(1, 2, 4)["seconds"], row(1, 2, large)["seconds"]
    connected = row(16, 1, 4)["connect_s"] - row(2, 1, 4)["connect_s"]
    return {
        "latency_s": latency,
        "link_bytes_s": large / (row(2, 1, large)["seconds"] - 2 * latency),
        "message_s": message,
        "switch_s": max(0.0, switch),
        "byte_s": fast["seconds"] / fast["bytes"],
        "memory_bytes_s": 2 * large / (shared - small),
        "barrier_s": small / 2,
        "join_s": join_s(64),
        "peer_s": max(0.0, connected) / 14 * min(cores, 16) / 16,
        "cores": cores,
    }


def main() -> None:
    """Measures and writes the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True, help="where to write what was measured")
    parser.add_argument("--machine", default="", help="what the processor is, for the tables")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if reason := why_not():
        sys.exit(f"bench/scale.py: {reason}")
    rows: list[Row] = []
    for number, shape in enumerate(SHAPES, 1):
        rows += measure(shape, RATE, SIZES, options.rounds)
        if number == _OF_CONSTANTS:
            fast = measure((2, 1), "", [SIZES[-1]], options.rounds)[0]
            found = {
                "date": date.today().isoformat(),
                "machine": options.machine or f"{os.cpu_count()} cores",
                "rate": RATE,
                "constants": constants(rows, fast),
                "measured": rows,
            }
        if number >= _OF_CONSTANTS:
            options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
