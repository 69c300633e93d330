#!/usr/bin/env python3
"""All-reduce between emulated hosts: how much of a shaped link it uses. Needs root and iperf3.

`bench/wire.py --json FILE`. Hosts are network namespaces, links are shaped by tc
(tests/hosts/emulated_hosts.py). The unit is Gbit/s that each host sends while it receives as much.
The peer is iperf3 between two of the hosts in turn, with one stream in one direction; rows "both
ways" have one stream in each. Rows "thread" show the share of a core that the rank's thread uses
while it waits for the link.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from report import Report, alternate, arguments

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "hosts"))

from emulated_hosts import Link, Network, why_not
from rank_processes import RankProcesses

TIMEOUT_S = 60.0
BYTES = 64 << 20
# Hosts, rate, and calls in a row per round.
CASES = [(2, "1gbit", 1), (8, "1gbit", 1), (2, "10gbit", 4)]
_PROGRAM = Path(__file__).with_name("wire_rank.py")


def iperf3(network: Network, both_ways: bool = False) -> float:
    """Gbit/s that host 1 receives from host 0, by one stream of iperf3 in each direction."""
    server = network.hosts[1].popen(["iperf3", "-s", "-1", "--forceflush"])
    while "Server listening" not in server.stdout.readline():
        pass
    command = ["iperf3", "-c", network.address(1), "-t", "2", "-O", "0.5", "-J"]
    client = network.hosts[0].popen([*command, *(["--bidir"] if both_ways else [])])
    report = json.loads(client.communicate(timeout=TIMEOUT_S)[0])
    server.communicate(timeout=TIMEOUT_S)
    return report["end"]["sum_received"]["bits_per_second"] / 1e9


def bench(report: Report, rounds: int, hosts: int, rate: str, calls: int) -> None:
    """The rows of one network."""
    name = f"{rate}/{hosts} hosts/64 MB"
    if not report.wants(name):
        return
    cores: list[float] = []
    with Network(hosts, Link(rate)) as network:
        ranks = RankProcesses(network, "timed", timeout_s=TIMEOUT_S, program=_PROGRAM)
        talks = ranks.next()
        if any(line.get("talks") != "tcp" for line in talks):
            raise RuntimeError(f"the ranks did not connect over tcp: {talks}")

        def ours() -> float:
            lines = ranks.ask({"bytes": BYTES, "calls": calls})
            cores.append(max(line["cores"] for line in lines))
            sent = 2 * (hosts - 1) / hosts * BYTES * 8
            return sent / max(line["seconds"] for line in lines) / 1e9

        values = alternate(rounds, ours, lambda: iperf3(network))
        report.add(name, ours=values[0], peer=values[1], peer_name="iperf3", unit="Gbit/s")
        if rate != "1gbit":
            values = alternate(rounds, ours, lambda: iperf3(network, both_ways=True))
            names = {"name": f"{name}, both ways", "peer_name": "iperf3 --bidir"}
            report.add(**names, ours=values[0], peer=values[1], unit="Gbit/s")
    if rate == "1gbit":
        report.add(
            f"{name}, thread",
            ours=cores[1:],
            peer=[0.1],
            peer_name="the limit",
            unit="cores",
            higher_is_better=False,
        )


def main() -> None:
    """Runs all cases, reports and saves the rows."""
    options = arguments(__doc__ or "").parse_args()
    if reason := why_not():
        sys.exit(f"bench/wire.py: {reason}")
    try:
        subprocess.run(["iperf3", "--version"], check=True, capture_output=True)
    except FileNotFoundError:
        sys.exit("bench/wire.py: iperf3 is not installed (Debian: apt-get install iperf3)")
    report = Report(options.only)
    for case in CASES:
        bench(report, options.rounds, *case)
    report.save(options.json)


if __name__ == "__main__":
    main()
