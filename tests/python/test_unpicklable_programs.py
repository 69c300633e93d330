"""If a main function cannot be pickled, the error names the variable."""

from __future__ import annotations

import threading
from functools import partial
from types import SimpleNamespace

import pytest

from hearth.cluster.task.node_job import NodeProgram

lock = threading.Lock()


def uses_a_global(args, ctx):
    lock.acquire()


def helper():
    return lock


def calls_a_helper(args, ctx):
    helper()


def with_a_closure():
    guard = threading.Lock()

    def main(args, ctx):
        guard.acquire()

    return main


class Trainer:
    def __init__(self):
        self.lock = threading.Lock()

    def main(self, args, ctx):
        pass


def fine(args, ctx):
    pass


def wrapper(function, args, ctx):
    function(args, ctx)


@pytest.mark.parametrize(
    ("function", "args", "words"),
    [
        (uses_a_global, None, r"the variable 'lock' of uses_a_global\(\), a _thread\.lock"),
        (calls_a_helper, None, r"the variable 'lock' of helper\(\), a _thread\.lock"),
        (with_a_closure(), None, r"the variable 'guard' of with_a_closure\.\S+main\(\), a _thread"),
        (Trainer().main, None, r"the object of the method Trainer\.main\(\), a \S+\.Trainer"),
        (fine, {"guard": lock}, r"the item 'guard', a _thread\.lock"),
        (fine, SimpleNamespace(guard=lock), r"the attribute 'guard', a _thread\.lock"),
        (partial(wrapper, uses_a_global), None, r"the variable 'lock' of uses_a_global\(\)"),
        (partial(wrapper, fine, lock), None, r"an argument, a _thread\.lock"),
    ],
)
def test_the_error_names_the_variable(function, args, words, monkeypatch):
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(__import__(__name__))
    try:
        with pytest.raises(TypeError, match=f"because of {words}.*inside the main function"):
            NodeProgram(function, args).pickled()
    finally:
        cloudpickle.unregister_pickle_by_value(__import__(__name__))
