"""Public functions and methods of python/hearth have a docstring, which may be inherited."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "hearth"
# Other packages' base classes, which document the methods that subclasses override.
DOCUMENTED_BASES = {"FSSpecHandler", "FileIO", "FileSystemHandler", "RawIOBase", "Work"}
# Methods of Keras' Callback, also in classes that get this base class once Keras is imported.
EVENT = re.compile(r"on_(train|epoch|batch|train_batch)_(begin|end)$")


def is_public(path):
    return not any(part.startswith("_") and part != "__init__.py" for part in path.parts)


def classes_of(trees):
    """The package's classes by name; several classes may have the same name."""
    found = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def base_names(node):
    return [ast.unparse(base).rpartition(".")[2] for base in node.bases]


def inherits(node, method, classes):
    """Whether a base class has a docstring for this method."""
    for base in base_names(node):
        if base in DOCUMENTED_BASES:
            return True
        for other in classes.get(base, []):
            own = [each for each in other.body if getattr(each, "name", "") == method]
            if any(ast.get_docstring(each) for each in own) or inherits(other, method, classes):
                return True
    return False


def is_accessory(function):
    """Setters and overloads share the docstring of their property or implementation."""
    texts = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any(text.endswith((".setter", "overload")) for text in texts)


def undocumented(tree, classes):
    """(line, name) of a file's functions and methods without a docstring."""
    found = []
    for owner in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))):
        if getattr(owner, "name", "").startswith("_"):
            continue
        for node in owner.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_accessory(node):
                continue
            if node.name.startswith("_") or ast.get_docstring(node):
                continue
            if isinstance(owner, ast.ClassDef) and EVENT.match(node.name):
                continue
            if isinstance(owner, ast.ClassDef) and inherits(owner, node.name, classes):
                continue
            found.append((node.lineno, node.name))
    return found


def test_every_public_function_has_a_docstring():
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if is_public(path.relative_to(PACKAGE))]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in files}
    classes = classes_of(trees.values())
    lacking = [
        f"{path.relative_to(PACKAGE.parent)}:{line} {name}"
        for path, tree in trees.items()
        for line, name in undocumented(tree, classes)
    ]
    assert not lacking, "without a docstring: " + ", ".join(lacking)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f():\n    return 1", ["f"]),
        ('def f():\n    """Says it."""', []),
        ("def _f():\n    return 1", []),
        ("class A:\n    def f(self):\n        return 1", ["f"]),
        (
            'class A:\n    def f(self):\n        """Says it."""\nclass B(A):\n    def f(self): ...',
            [],
        ),
        ("class A(Other):\n    def f(self): ...", ["f"]),
        ("class _A:\n    def f(self): ...", []),
    ],
)
def test_only_its_own_or_an_inherited_docstring_counts(text, names):
    tree = ast.parse(text)
    assert [name for _, name in undocumented(tree, classes_of([tree]))] == names
