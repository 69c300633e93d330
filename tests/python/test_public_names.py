"""Public packages can be explored with dir(), help(), type checkers and editors."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGES = ["caffeonspark", "cluster", "data", "ml", "tensorflow", "torch"]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def tree_of(module: str) -> ast.Module:
    return ast.parse(Path(find_spec(module).origin).read_text())


def typed(package: str) -> dict[str, str]:
    """The package's imports under TYPE_CHECKING, as {name: module}."""
    [block] = [
        node
        for node in tree_of(package).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {alias.name: node.module for node in block.body for alias in node.names}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_lists_its_public_names_alone_and_tells_type_checkers_their_homes(package):
    found = import_module(f"hearth.{package}")
    assert dir(found) == sorted(found.__all__)
    homes = {
        name: home if home[0] != "." else f"hearth.{package}{home}"
        for home, names in found._HOMES.items()
        for name in names.split()
    }
    assert typed(f"hearth.{package}") == homes


def functions(name: str, node: ast.stmt) -> Iterator[tuple[str, ast.ClassDef | Function]]:
    """Yields a public function or class, and the class's public methods."""
    if not isinstance(node, ast.ClassDef | Function):
        return
    yield name, node
    if isinstance(node, ast.ClassDef):
        for inner in node.body:
            if isinstance(inner, Function) and (inner.name[0] != "_" or inner.name == "__init__"):
                yield f"{name}.{inner.name}", inner


def lacking(node: ast.ClassDef | Function) -> list[str]:
    """The docstrings and types that a class or function lacks."""
    described = ast.get_docstring(node) or node.name == "__init__"  # the class may describe it
    lacks = [] if described else ["docstring"]
    if isinstance(node, Function):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        lacks += [
            f"type of {argument.arg}"
            for argument in arguments
            if argument.annotation is None and argument.arg not in ("self", "cls")
        ]
        if node.returns is None and node.name != "__init__":
            lacks.append("type of its result")
    return lacks


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_docstring_and_types(package):
    lacks = {}
    for name, home in typed(f"hearth.{package}").items():
        for node in tree_of(home).body:
            if getattr(node, "name", None) == name:
                lacks |= {key: what for key, f in functions(name, node) if (what := lacking(f))}
    assert lacks == {}


def test_help_describes_the_classes_of_a_package():
    program = "import hearth.cluster; help(hearth.cluster)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "class Cluster(" in done.stdout
    assert "_HOMES" not in done.stdout
    assert "on_demand" not in done.stdout
