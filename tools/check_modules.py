#!/usr/bin/env python3
"""Checks that modules only include and import modules above them in the lists of ARCHITECTURE.md,
and that only tests include files of testing/ folders.

Prints one line per violation and per import cycle of Python modules, and exits with 1 if there is
any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

# Each module of the core and the modules it may include.
MAY_USE = {
    "base": set(),
    "settings": set(),
    "rendezvous": {"base"},
    "formats": {"base"},
    "batch": {"base", "formats"},
    "image": {"base"},
    "ring": {"base", "batch"},
    "dataset": {"base", "formats", "batch", "ring"},
    "feed": {"base", "batch", "ring"},
    "collective": {"base", "rendezvous"},
    "storage": {"base"},
    "tensorboard": {"base", "formats", "storage"},
    "caffe": {"base", "formats", "batch", "image", "dataset", "storage"},
    "trainer": {
        "base",
        "settings",
        "rendezvous",
        "formats",
        "batch",
        "image",
        "ring",
        "dataset",
        "collective",
        "storage",
        "tensorboard",
        "caffe",
    },
}
# The folders of some modules, in order. A folder's files may include files of earlier folders. ""
# stands for the module's top-level files, which any test of the module may include.
FOLDER_ORDER = {
    "collective": ["operation", "transport", "algorithms", "shared_memory", "device", ""],
    "dataset": ["order", "spool", ""],
    "trainer": ["job", "rows", "step", "", "local"],
    "caffe": [
        "proto",
        "upgrade",
        "tensor",
        "net",
        "device",
        "data",
        "kernels",
        "layers",
        "snapshot",
        "solver",
        "tools",
    ],
}
# Each subpackage of the Python package and the subpackages it may import.
_BELOW_APIS = {"native", "files", "spark", "sources", "rows"}
PYTHON_MAY_USE = {
    "errors": set(),  # all subpackages may import it
    "native": set(),
    "files": {"native"},
    "spark": {"native", "files"},
    "sources": {"native", "files", "spark"},
    "rows": {"native", "files", "spark", "sources"},
    "data": {"native", "sources", "rows"},
    "ranks": {"native", "spark"},
    "caffe_jobs": _BELOW_APIS,
    "checkpoints": {"native", "files"},
    "cluster": _BELOW_APIS | {"ranks", "data", "checkpoints", "monitoring"},
    "monitoring": {"native"},
    "tools": {"native", "files", "monitoring"},
    "caffe": {"native", "tools"},
    "caffeonspark": _BELOW_APIS | {"caffe_jobs", "monitoring"},
    "tensorflow": {"native", "files", "ranks", "checkpoints"},
    "tensorflowonspark": _BELOW_APIS | {"cluster", "tensorflow"},
    "torch": _BELOW_APIS | {"cluster", "ranks", "data", "checkpoints"},
    "ml": _BELOW_APIS
    | {"data", "cluster", "checkpoints", "monitoring", "tensorflow", "torch"}
    | {"caffe_jobs", "caffeonspark"},
    "horovod": _BELOW_APIS | {"cluster", "ranks", "torch", "tensorflow"},
    "petastorm": {"native", "files", "sources", "data", "torch"},
    "jvm": {"native", "spark", "caffeonspark", "tensorflowonspark"},
    "cli": {"native", "tools", "caffeonspark", "cluster", "doctor"},
    "doctor": {"native", "files", "spark"},
    "demo": _BELOW_APIS | {"caffeonspark"},
}
# The parts of the cluster package, in order. A part may import earlier parts. "": shared files.
CLUSTER_ORDER = ["", "node", "task", "driver"]
INCLUDE = re.compile(r'^\s*#\s*include\s+"hearth/([a-z_]+)/([^"]+)"', re.MULTILINE)


def wrong_arrows(root: Path) -> list[str]:
    """The violations in a checkout."""
    return wrong_includes(root / "hearth") + wrong_imports(root / "python" / "hearth")


def wrong_includes(root: Path) -> list[str]:
    """Returns 'FILE includes MODULE' for each include that the list does not allow."""
    wrong = []
    for path in sorted(p for p in root.rglob("*") if p.suffix in (".h", ".cc")):
        module = path.relative_to(root).parts[0]
        if module not in MAY_USE:
            wrong.append(f"{path}: {module} is not a module")
            continue
        is_support = "testing" in path.relative_to(root).parts
        if path.stem.endswith("_testing") and not is_support:
            wrong.append(f"{path} is test support: move it to {path.parent / 'testing'}")
        for used, rest in INCLUDE.findall(path.read_text()):
            if "testing/" in rest and not is_support and not path.stem.endswith("_test"):
                wrong.append(f"{path} includes {used}/{rest}, which only tests may use")
            if used != module and used not in MAY_USE[module]:
                wrong.append(f"{path} includes {used}, which {module} may not use")
            elif used == module in FOLDER_ORDER:
                wrong += _wrong_within_module(path, path.relative_to(root), rest)
    return wrong


def _wrong_within_module(path: Path, relative: Path, included: str) -> list[str]:
    module, order = relative.parts[0], FOLDER_ORDER[relative.parts[0]]
    own, used = _folder("/".join(relative.parts[1:])), _folder(included)
    for name in (own, used):
        if name not in order:
            return [f"{path}: {name or path.name} is not a folder of {module}"]
    if own == used or (used == "" and path.stem.endswith("_test")):
        return []
    if order.index(used) > order.index(own):
        return [f"{path} includes {module}/{included}, which {module}/{own} may not use"]
    return []


def _folder(file: str) -> str:
    """The module's folder that contains `file`; "" for top-level files and their test support."""
    folder = file.partition("/")[0] if "/" in file else ""
    return "" if folder == "testing" else folder


def wrong_imports(root: Path) -> list[str]:
    """Like wrong_includes(), for the package in `root`: imports anywhere in a file."""
    package = root.name
    files = {_module(root, path): path for path in root.rglob("*.py")}
    imports = {name: set(_imports(path, package, files)) for name, path in files.items()}
    wrong = []
    for name in sorted(imports):
        part = _subpackage(name)
        if part and part not in PYTHON_MAY_USE:
            wrong.append(f"{files[name]}: {part} is not a subpackage of ARCHITECTURE.md")
            continue
        allowed = PYTHON_MAY_USE.get(part, {"native"}) | {part, "", "errors"}
        wrong += [
            f"{files[name]} imports {used}, which {part or package} may not use"
            for used in sorted(imports[name])
            if _subpackage(used) not in allowed or _from_later_side(name, used)
        ]
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        wrong.append("a circle of imports: " + " -> ".join(reversed(error.args[1])))
    return wrong


def _module(root: Path, path: Path) -> str:
    parts = [root.name, *path.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _subpackage(module: str) -> str:
    """The first name below the package; empty for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def _from_later_side(module: str, used: str) -> bool:
    """Whether a module of the cluster imports a later part. The package itself may import all
    parts."""
    if _subpackage(module) != "cluster" or _subpackage(used) != "cluster" or module.count(".") == 1:
        return False
    sides = [(name.split(".")[2:] or [""])[0] for name in (module, used)]
    own, other = (CLUSTER_ORDER.index(s) if s in CLUSTER_ORDER else 0 for s in sides)
    return other > own


def _imports(path: Path, package: str, modules: dict[str, Path]) -> Iterator[str]:
    """The package's modules that a file imports, even if only for type hints."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.partition(".")[0] == package:
                while name not in modules:  # a class or function: find its module
                    name = name.rpartition(".")[0]
                yield name


def main() -> int:
    wrong = wrong_arrows(Path(__file__).resolve().parents[1])
    print("\n".join(wrong) if wrong else "modules: every include and import points the right way")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
