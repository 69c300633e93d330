"""Creates an archive with which spark-submit ships Hearth to nodes that do not have it.

    hearth pack                       hearth, its engine and their libraries; nodes have Python,
                                      numpy and pyarrow
    hearth pack --no-engine           the same without Caffe's engine: megabytes
    hearth pack --environment         Python and all installed packages except Spark

Prints the archive's size and the commands that use it. `hearth pack -- -train -conf
solver.prototxt ...` or `hearth pack -- program.py ...` prints them for your program.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from hearth import native
from hearth.errors import HearthError
from hearth.tools import pack_environment
from hearth.tools.pack_archive import Entry, write_archive
from hearth.tools.pack_package import package_entries
from hearth.tools.submit_command import commands, program_of

_LARGE = 1 << 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line. Returns the exit status; a user's error is printed in one line."""
    if not any(native.DIRECTORY.glob("_core.*.so")):
        print(
            f"hearth pack: there are no compiled parts in {native.DIRECTORY}: install the wheel, "
            "or run `make build` in the checkout",
            file=sys.stderr,
        )
        return 1
    try:
        return run(sys.argv[1:] if arguments is None else arguments)
    except (HearthError, ImportError) as error:
        print(f"hearth pack: {error}", file=sys.stderr)
        return 1


def run(arguments: Sequence[str]) -> int:
    """Like main(), but raises errors."""
    flags = _parser().parse_args(list(arguments))
    program = program_of(flags.program)  # raises errors before packing, which takes minutes
    target = Path(flags.output).absolute()
    if not target.parent.is_dir():
        raise HearthError(f"-o {flags.output}: the folder {target.parent} does not exist")
    engine = not flags.no_engine
    if not flags.environment:
        _write(target, package_entries(engine))
    elif pack_environment.is_conda():
        pack_environment.pack_conda(target, flags.without)
        print(f"{target}: {_megabytes(target.stat().st_size)}, by conda-pack")
    else:
        _write(target, pack_environment.environment_entries(engine, flags.without))
        _print_largest(target)
    for what, command in commands(target, flags.environment, program).items():
        print(f"\n{what}:\n\n{command}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hearth pack",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    name = "the archive (default: %(default)s); .tar is fast but large"
    add("-o", "--output", default="hearth.tar.gz", metavar="FILE", help=name)
    add("--environment", action="store_true", help="include Python and all packages")
    add("--no-engine", action="store_true", help="omit Caffe's engine")
    without = "an installed distribution to omit from --environment (nvidia-*)"
    add("--without", action="append", default=[], metavar="NAME", help=without)
    program = "the program to submit, for the printed commands"
    add("program", nargs="*", metavar="PROGRAM", help=program)
    return parser


def _write(target: Path, entries: Iterable[Entry]) -> None:
    written = write_archive(target, entries)
    libc, version = platform.libc_ver()
    print(
        f"{target}: {_megabytes(written.packed)} ({_megabytes(written.unpacked)} unpacked), for "
        f"Python {sys.version_info.major}.{sys.version_info.minor} on {sys.platform} "
        f"{platform.machine()} with {libc} {version} or newer"
    )


def _print_largest(target: Path) -> None:
    """Prints the largest distributions, candidates for --without."""
    if target.stat().st_size < _LARGE:
        return
    largest = [
        f"{name} {_megabytes(size)}"
        for name, size in pack_environment.distribution_sizes()[:6]
        if name not in pack_environment.EXCLUDED
    ]
    print(f"The largest distributions: {', '.join(largest)}; --without omits one")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


if __name__ == "__main__":
    sys.exit(main())
