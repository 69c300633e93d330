"""The errors that python/hearth raises are HearthErrors; hearth/errors.py explains the rule."""

import ast
import builtins
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "hearth"
# Built-in errors that may be raised: for wrong calls, missing overrides and the interpreter, or
# because hearth catches them.
PLAIN = {
    "AttributeError", "EOFError", "ImportError", "KeyError", "KeyboardInterrupt", "LookupError",
    "NotImplementedError", "OSError", "SystemExit", "TypeError",
}  # fmt: skip
# By file: classes that another API's documentation names.
OF_OTHERS = {
    "horovod/errors.py": {"HostsUpdatedInterrupt"},
    "horovod/torch/adasum.py": {"AssertionError"},
    "horovod/torch/optimizer.py": {"AssertionError"},
}
# Errors that never leave hearth.
INTERNAL = {"Damaged", "Lost", "NotReplaced"}

TREES = {
    str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}


def name_of(node):
    """The last part of a class's name, as in `raise tf.errors.OpError(...)`."""
    node = node.func if isinstance(node, ast.Call) else node
    return getattr(node, "id", getattr(node, "attr", None))


def is_exception(name):
    kind = getattr(builtins, name or "", None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


def raised(tree):
    """(class, line) of each raised built-in exception."""
    for node in ast.walk(tree):
        name = name_of(node.exc) if isinstance(node, ast.Raise) and node.exc else None
        if is_exception(name):
            is_abstract = name == "NotImplementedError" and not isinstance(node.exc, ast.Call)
            yield ("abstract" if is_abstract else name), node.lineno


def wrong(tree, file=""):
    allowed = (PLAIN - {"NotImplementedError"}) | {"abstract"} | OF_OTHERS.get(file, set())
    return [f"{file}:{line} raises {name}" for name, line in raised(tree) if name not in allowed]


def test_no_plain_error_is_raised():
    assert [line for file, tree in TREES.items() for line in wrong(tree, file)] == []


def test_a_plain_error_is_noticed():
    assert wrong(ast.parse("raise ValueError('x')")) == [":1 raises ValueError"]
    assert wrong(ast.parse("raise NotImplementedError('x')")) == [":1 raises NotImplementedError"]
    assert wrong(ast.parse("raise NotImplementedError")) == []
    assert wrong(ast.parse("raise invalid('x') from None\nraise error\nraise")) == []


def test_classes_of_exceptions_derive_from_hearth_error():
    classes = [
        (file, node.name, {name_of(base) for base in node.bases})
        for file, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    exceptions, ours = set(filter(is_exception, dir(builtins))), {"HearthError"}
    for _ in range(8):  # at least the depth of the class tree
        exceptions |= {name for _, name, bases in classes if bases & exceptions}
        ours |= {name for _, name, bases in classes if bases & ours}
    for file, name, _ in classes:
        if name in exceptions - INTERNAL - OF_OTHERS.get(file, set()):
            assert name in ours, f"{file}: {name} is no HearthError"


def is_text(node):
    """Whether the node is `str(error)`, `failure.text` or `event["text"]`."""
    if isinstance(node, ast.Call) and name_of(node) == "str" and node.args:
        return name_of(node.args[0]) in {"error", "failure", "cause", "exception", "each"}
    key = node.slice.value if isinstance(getattr(node, "slice", None), ast.Constant) else None
    return "text" in (getattr(node, "attr", None), key)


def searched(tree):
    """Lines that search an error's text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            texts = node.comparators
        elif isinstance(node, ast.Call) and name_of(node) in {"startswith", "endswith"}:
            texts = [node.func.value]
        else:
            continue
        if any(map(is_text, texts)):
            yield node.lineno


def test_no_text_of_an_error_is_searched():
    assert [f"{file}:{line}" for file, tree in TREES.items() for line in searched(tree)] == []


def test_a_search_in_a_text_is_noticed():
    for code in ("'lost' in str(error)", "NULL not in failure.text", "LATE in event['text']",
                 "str(error).startswith('iteration ')"):  # fmt: skip
        assert list(searched(ast.parse(code))) == [1], code
    assert list(searched(ast.parse("'lost' in failure"))) == []
