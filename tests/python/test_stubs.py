"""The compiled modules' type stubs name everything in the modules."""

from __future__ import annotations

import ast
import importlib

import pytest

from hearth import native


@pytest.mark.parametrize("name", ["_core", "_caffe"])
def test_a_stub_names_everything_in_its_module(name: str) -> None:
    module = importlib.import_module(f"hearth.native.{name}")
    tree = ast.parse((native.DIRECTORY / f"{name}.pyi").read_text())
    named = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            named |= {alias.asname or alias.name for alias in node.names}
    public = {key for key in vars(module) if not key.startswith("_")}
    assert public - named == set()
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for key, node in classes.items():
        stubbed = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        methods = {key for key in vars(getattr(module, key)) if not key.startswith("_")}
        assert methods - stubbed == set(), key
