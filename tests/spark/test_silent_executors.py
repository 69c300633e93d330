"""An executor that does not respond: the session replaces it and is not blocked."""

import os
import signal

from faults import is_alive
from waiting import wait_until

from hearth.spark import silent_executors
from hearth.spark.silent_executors import replace_executor
from hearth.spark.slots import SlotWait, slots_now


def executors(sc, tag):
    """Process ids of the executors that ran a job with the tag, by partition."""

    def own(_):
        from hearth.cluster.task.node_process import executor_pid

        yield executor_pid()

    sc.addJobTag(tag)
    try:
        return sc.parallelize(range(2), 2).barrier().mapPartitions(own).collect()
    finally:
        sc.removeJobTag(tag)


def cleaner_asks(jvm):
    """Whether Spark's cleaner is blocked on executors that must drop a broadcast or an RDD."""
    # The cleaner handles one object at a time, possibly one of an earlier test.
    requests = {"removeBroadcast", "removeRdd"}
    threads = jvm.java.lang.Thread.getAllStackTraces().entrySet().iterator()
    while threads.hasNext():
        thread = threads.next()
        if thread.getKey().getName() == "Spark Context Cleaner":
            return any(frame.getMethodName() in requests for frame in thread.getValue())
    raise AssertionError("Spark has no cleaner")


def test_nothing_waits_for_a_replaced_executor(spark, monkeypatch):
    sc, jvm = spark.sparkContext, spark._jvm
    pids = executors(sc, "silent")
    dropped = sc._jsc.broadcast("what executors are to forget")
    # A Worker here would kill the executor after ten seconds, but the Worker of a lost host cannot.
    monkeypatch.setattr(silent_executors, "_replace", lambda *_: None)
    os.kill(pids[1], signal.SIGSTOP)
    try:
        del dropped

        def asks():
            jvm.System.gc()
            return cleaner_asks(jvm)

        # Without the replacement, the cleaner and the session's end would be blocked for two
        # minutes.
        assert wait_until(asks, 60)
        for partition, wait_s in ((0, 60.0), (1, 5.0)):
            monkeypatch.setattr(silent_executors, "_ANSWER_WAIT_S", wait_s)
            replace_executor(spark, "silent", partition, unless_it_answers=True)
        assert wait_until(lambda: not cleaner_asks(jvm), 60)
        assert wait_until(lambda: slots_now(spark) == 1, 60)  # before a new executor registers
    finally:
        os.kill(pids[1], signal.SIGKILL)
    assert wait_until(lambda: not is_alive(pids[1]), 60)
    SlotWait(spark, 2).wait()
    assert pids[0] in executors(sc, "again")  # the responsive executor is kept
