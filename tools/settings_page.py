#!/usr/bin/env python3
"""Writes docs/settings.md from the table of flags, and from the tables of Spark settings and of
environment variables below.

tests/python/test_settings_page.py fails if the page is stale, or if the code has a spark.hearth.*
setting that this file lacks.
"""

from __future__ import annotations

from pathlib import Path

from hearth.caffeonspark import flags

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"

SPARK_SETTINGS = {
    "spark.hearth.executorWait": ("300s", "how long to wait for executors that are missing"),
    "spark.hearth.minWorkersWait": (
        "1h",
        "the same with fewer than the least of `workers=(least, most)`",
    ),
    "spark.hearth.task.cpus": ("", "cores that each rank or node holds, by a resource profile"),
    "spark.hearth.task.resource.gpu.amount": ("", "GPUs that each rank or node holds, likewise"),
    "spark.hearth.coordinator.port": ("0", "first port, or range, of the driver's coordinator"),
    "spark.hearth.mesh.port": ("0", "of each rank's connections to other ranks"),
    "spark.hearth.feed.port": ("0", "of each node, for feed tasks of other hosts"),
    "spark.hearth.node.port": ("0", "of each node's own server (TensorFlow's)"),
    "spark.hearth.tokenLook": ("60s", "how often newer delegation tokens are looked for"),
}

VARIABLES = {
    "HEARTH_TRANSPORT": ("auto", "`shm`, `tcp` or `rdma` ([collective](collective.md))"),
    "HEARTH_INTERFACE": ("", "interface or address range of this host for other ranks"),
    "HEARTH_TLS": ("", "`on`: TLS 1.3; `off`: never ([security](security.md#encryption))"),
    "HEARTH_MESH_PORT": ("", "range of ports for other ranks, outside of Spark: `7400-7499`"),
    "HEARTH_STALL_SECONDS": ("30", "seconds until a waiting operation is logged; 0: never"),
    "HEARTH_TIMELINE": ("", "folder for the [timeline](seeing.md#the-timeline)"),
    "HEARTH_HDFS": ("auto", "`libhdfs` or `webhdfs` ([files](files.md))"),
    "HEARTH_WEBHDFS": ("", "addresses of WebHDFS, HttpFS or a gateway, separated by commas"),
    "HEARTH_LIBHDFS": ("", "path of `libhdfs.so`"),
    "HEARTH_MAX_RECORD_MB": ("128", "MiB that a record of a TFRecord file may have"),
    "HEARTH_DEVICE_LIBRARY": ("", "path of the library for GPUs"),
    "HEARTH_SIMULATED_GPUS": ("", "for tests: number of devices that the CPU simulates"),
}


def _shown(value: object) -> str:
    if value in ("", flags.ALL):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def page() -> str:
    """The page's text."""
    lines = [
        "# Flags and settings",
        "",
        "<!-- tools/settings_page.py writes this page. -->",
        '<div class="names" markdown>',
        "",
        "## Flags of CaffeOnSpark",
        "",
        "Of `python -m hearth.caffeonspark`; the second column is the attribute of `Config`.",
        "[More about some of them](caffeonspark.md#flags).",
        "",
        "| flag | `Config` | default | |",
        "|---|---|---|---|",
    ]
    shown = [flag for flag in flags.FLAGS if flag.help]
    for flag in sorted(shown, key=lambda flag: not flag.flag):  # settings without a flag last
        name = f"`-{flag.flag}`" if flag.flag else ""
        lines.append(_row(name, f"`{flag.name}`", _shown(flag.default), flag.help))
    lines += [
        "",
        "`hearth train` and `test` also have `--precision`, `--algorithms` and `--timeline`,",
        "`hearth extract_features` has `--precision`;",
        "`hearth COMMAND --help` lists the flags of each command.",
    ]
    for title, intro, table in (
        ("Settings of Spark", "In `spark-defaults.conf`, or by `--conf`.", SPARK_SETTINGS),
        (
            "Environment variables",
            "On executors: `--conf spark.executorEnv.NAME=VALUE`.",
            VARIABLES,
        ),
    ):
        lines += ["", f"## {title}", "", intro, "", "| name | default | |", "|---|---|---|"]
        lines += [_row(f"`{name}`", _shown(value), text) for name, (value, text) in table.items()]
    return "\n".join([*lines, "", "</div>"]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
