"""Gathers in one archive the requirements for building Hearth on a GPU machine without packages.

`gather.py BUILD ARCHIVE`: headers and libraries of the Debian packages installed here, oneDNN,
versions.json, and the programs of BUILD if it has them. tools/gpu/prepare.sh calls it.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

LIBRARIES = "usr/lib/x86_64-linux-gnu"
PACKAGES = (
    "libfmt-dev", "libspdlog-dev", "nlohmann-json3-dev", "libcli11-dev", "libgtest-dev",
    "libgmock-dev", "libssl-dev", "libjpeg62-turbo-dev", "libpng-dev", "zlib1g-dev",
    "libxxhash-dev", "liblmdb-dev", "libleveldb-dev", "libhdf5-dev", "libcurl4-openssl-dev",
)  # fmt: skip
WANTED = re.compile(
    r"^/usr/include/|/cmake/|/pkgconfig/|\.so$|/lib(gtest|gmock)(_main)?\.a$|/hdf5/serial/include/"
)
UNWANTED = re.compile(r"fortran|hdf5.*_(hl|cpp).*\.so$|hdf5_?(hl|cpp).*\.so$|\.mod$")
# The other machine has other, newer C and C++ runtimes.
RUNTIME = re.compile(
    r"/(libc|libm|libpthread|libdl|librt|libstdc\+\+|libgcc_s|libgomp|libmvec|libresolv|"
    r"ld-linux[^.]*)[-.]"
)
TESTS = ("hearth/caffe/hearth_caffe_test",)


def output(*command: str) -> str:
    """The command's output; "" if it fails."""
    return subprocess.run(command, capture_output=True, text=True).stdout


def copy_packages(home: Path) -> None:
    """Copies the packages' headers, CMake files and links to libraries below home/usr."""
    for name in sorted(set(output("dpkg", "-L", *PACKAGES).split("\n"))):
        source = Path(name)
        if not WANTED.search(name) or UNWANTED.search(name) or not source.is_file():
            continue
        target = home / name[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)


def copy_libraries(home: Path) -> None:
    """Copies the links' targets and the libraries that they load, each also under its soname."""
    links = [Path("/", link.relative_to(home)) for link in home.rglob("*.so")]
    found = {link.resolve() for link in links if link.exists()}
    for library in list(found):
        loaded = re.findall(r"=> (/\S+)", output("ldd", str(library)))
        found |= {Path(name).resolve() for name in loaded if not RUNTIME.search(name)}
    folder = home / LIBRARIES
    for library in sorted(found):
        if RUNTIME.search(str(library)):
            continue
        shutil.copy2(library, folder / library.name)
        soname = re.search(r"SONAME\s+(\S+)", output("objdump", "-p", str(library)))
        if soname and not (folder / soname[1]).exists():
            (folder / soname[1]).symlink_to(library.name)


def copy_onednn(home: Path) -> str:
    """Gathers oneDNN's headers, library and CMake files; returns the version."""
    packages = home / "lib" / "python3" / "site-packages"
    for name in ("onednn-cpu-gomp", "onednn-devel-cpu-gomp"):
        distribution = importlib.metadata.distribution(name)
        for file in distribution.files or ():
            text = str(file).rsplit("../", 1)[-1]
            inside = ".dist-info/" in text
            if file.name != "libdnnl.so.3" and file.suffix not in (".h", ".hpp") and not inside:
                continue
            at = packages / text if inside else home / ("lib" if ".so" in text else "") / text
            at.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate().resolve(), at)
    return importlib.metadata.version("onednn-cpu-gomp")


def copy_build(build: Path, home: Path) -> None:
    """The modules, the program and the tests of the build folder, if it has them."""
    if not list((build / "native").glob("_caffe.*.so")):
        return
    shutil.copytree(build / "native", home / "native")
    (home / "tests").mkdir()
    for test in TESTS:
        shutil.copy2(build / test, home / "tests")


def strip(home: Path) -> None:
    """Strips what only debuggers and static linking read."""
    for path in home.rglob("*"):
        binary = ".so" in path.name or path.name in ("hearth", "hearth_caffe_test")
        if binary and path.is_file() and not path.is_symlink():
            output("strip", "--strip-unneeded", str(path))


def main() -> None:
    build, archive = Path(sys.argv[1]), Path(sys.argv[2])
    home = archive.parent / "carry"
    shutil.rmtree(home, ignore_errors=True)
    system = home / "system"
    (system / LIBRARIES).mkdir(parents=True)
    copy_packages(system)
    copy_libraries(system)
    versions = {
        "commit": output("git", "rev-parse", "--short", "HEAD").strip(),
        "system": platform.freedesktop_os_release()["PRETTY_NAME"],
        "onednn": copy_onednn(home / "onednn"),
    }
    copy_build(build, home)
    strip(home)
    (home / "versions.json").write_text(json.dumps(versions, indent=1) + "\n")
    with tarfile.open(archive, "w:xz", preset=1) as tar:
        tar.add(home, "carry")
    megabytes = archive.stat().st_size / 2**20
    if megabytes > 40:
        sys.exit(f"gather: {archive} has {megabytes:.0f} MiB, more than the 40 that may travel")
    print(f"carry: {archive} ({megabytes:.0f} MiB), {versions}")


if __name__ == "__main__":
    main()
