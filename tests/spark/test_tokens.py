"""Executors' logs of tasks, workers and trainers contain no token."""

import os
import secrets
from base64 import b64encode
from pathlib import Path

from faults import FaultInjector
from waiting import wait_until

from hearth.caffeonspark import CaffeOnSpark, DataSource


def executor_logs() -> dict[Path, bytes]:
    """Standard output and error of the session's executors, including ended ones.

    These are complete: Hearth has no log level that prints more.
    """
    work = Path(os.environ["SPARK_HOME"], "work")
    return {log: log.read_bytes() for log in work.glob("app-*/*/std*")}


def forms(token: str) -> list[bytes]:
    """The forms of a token in a log: text, bytes, and the base64 of both at any offset."""
    raw = bytes.fromhex(token)
    words = [token.encode(), token.upper().encode(), raw]
    for text in (raw, token.encode()):
        # Base64 encodes groups of three bytes, so there are three alignments; only full groups
        # count.
        words += [b64encode(text[skip : skip + 27]) for skip in range(3)]
    return words


def test_no_log_of_an_executor_holds_a_token_of_any_generation(spark, digits, monkeypatch):
    tokens = []
    made = secrets.token_hex

    def note(size):
        tokens.append(made(size))
        return tokens[-1]

    monkeypatch.setattr(secrets, "token_hex", note)
    settings = {"max_iter": 200, "snapshot": 20, "display": 1}
    conf = digits.config(spark, digits.solver("cos", **settings), clusterSize="2")
    injector = FaultInjector("trainer", 50)
    rows = spark.read.parquet(digits.table("raw", "train"))
    CaffeOnSpark(spark, injector).train(DataSource(spark).fromDataFrame(conf, rows, True))
    assert injector.landed
    assert [len(token) for token in tokens] == [64, 64]  # from two generations
    assert wait_until(lambda: any(b"Iteration 199" in log for log in executor_logs().values()), 60)
    logs = executor_logs()
    assert any(b"was killed by SIGKILL" in log for log in logs.values())
    words = [word for token in tokens for word in forms(token)]
    assert [str(file) for file, log in logs.items() if any(word in log for word in words)] == []
