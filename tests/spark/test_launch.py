"""Launching, feeding and watching ranks, with a scripted trainer as a fake."""

import itertools
import json
import sys
import time

import pytest

from hearth import HearthError, data
from hearth.caffe_jobs import launch
from hearth.caffe_jobs.rank_task import run_rank
from hearth.sources.rank_rows import RankRows

# Reads its streams to the end, like a trainer, then runs the test's script.
PROGRAM = """#!{python}
import json, os, signal, socket, sys, time
import pyarrow as pa
from hearth.native._core import Member, RingReader
channel = socket.socket(fileno=int(sys.argv[3])).makefile("rw")
job = json.loads(channel.readline())
rank = job["rank"]
def send(**event):
    channel.write(json.dumps(event) + "\\n")
    channel.flush()
    if rank == 0 and event["event"] in ("progress", "validation"):
        member.send_event(json.dumps(event))
def read(stream):
    given = job["streams"][stream]
    ring, ids = RingReader.attach(given["ring_fd"], given["signal_fd"]), []
    while (entry := ring.next(60))[0] == "batch":
        ids += pa.record_batch(entry[1]).column("id").to_pylist()
    return ids
def fail(code, message):
    send(event="error", code=code, message=message)
    os._exit(1)
def join():
    global member
    member = Member(
        **job["coordinator"], token=job["token"], generation=job["generation"], rank=rank,
        world=job["world"], host_name=job["host"],
    )
    member.reserve("{{}}")
def meet(name):
    try:
        return member.all_gather(name, "0", 60)
    except HearthError as error:
        known = member.failure() or dict()
        send(**dict(known, event="error", by_peer=True, message=str(error)))
        os._exit(1)
from hearth import HearthError, data
{body}
done = dict(event="done", model="", **globals().get("outcome", {{}}))
member.done(json.dumps(done))
send(**done)
"""
JOIN_AND_READ = """
join()
outcome = {"rows": [all_ids for all_ids in member.all_gather("ids", json.dumps({
    name: read(name) for name in job["streams"]}), 60)]}
"""


@pytest.fixture
def start(spark, monkeypatch, tmp_path):
    """Runs a plan with fake trainers that execute `body`; returns (result, events).

    `before` is called first in each rank's task.
    """

    def start(body, world=2, max_restarts=0, before=None, on_event=None, **rows):
        program = tmp_path / "hearth"
        program.write_text(PROGRAM.format(python=sys.executable, body=body))
        program.chmod(0o755)
        path = str(program)

        def run_rank_with_stand_in(spec, batches):
            from hearth import native

            if before is not None:
                before()
            own, native.program = native.program, lambda: path
            try:
                yield from run_rank(spec, batches)
            finally:
                native.program = own

        monkeypatch.setattr(launch, "run_rank", run_rank_with_stand_in)
        events = []

        def listen(event):
            events.append(event)
            if on_event is not None:
                on_event(event)

        plan = launch.Plan(world, {"mode": "train"}, **rows)
        return launch.run(spark, plan, listen, max_restarts), events

    return start


def ids_by_rank(result, stream):
    return [rows.get(stream, []) for rows in result["rows"]]


def all_ids(result, stream):
    return sorted(itertools.chain.from_iterable(ids_by_rank(result, stream)))


@pytest.mark.parametrize("partitions", [1, 2, 3, 8])
def test_every_row_of_a_dataframe_reaches_one_rank(spark, start, partitions):
    frames = {"train": spark.range(0, 1000, 1, partitions)}
    result, _ = start(JOIN_AND_READ, frames=frames)
    assert all_ids(result, "train") == list(range(1000))


def test_two_streams_are_separated(spark, start):
    frames = {"train": spark.range(100), "test": spark.range(5)}
    result, _ = start(JOIN_AND_READ, frames=frames)
    assert all_ids(result, "train") == list(range(100))
    assert all_ids(result, "test") == list(range(5))


def test_files_and_rows_at_once(spark, start, tmp_path):
    spark.range(0, 10, 1, 1).write.parquet(str(tmp_path / "rows"))
    files = {"train": RankRows(data.parquet(str(tmp_path / "rows")))}
    result, _ = start(JOIN_AND_READ, files=files, frames={"test": spark.range(3)})
    assert ids_by_rank(result, "train") == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert all_ids(result, "test") == [0, 1, 2]


def files_of(spark, folder, rows):
    spark.range(0, rows, 1, 3).write.parquet(str(folder))
    return {"train": RankRows(data.parquet(str(folder)))}


def test_a_file_that_is_added_between_the_ranks_starts_is_not_read(spark, start, tmp_path):
    files = files_of(spark, tmp_path / "rows", 600)
    spark.range(600, 1000, 1, 1).write.parquet(str(tmp_path / "more"))
    more, target = str(next((tmp_path / "more").glob("part-*"))), str(tmp_path / "rows")

    def add_a_file():
        import shutil

        from pyspark import BarrierTaskContext

        rank = BarrierTaskContext.get().partitionId()
        shutil.copy(more, f"{target}/part-{rank}.parquet")

    result, _ = start(JOIN_AND_READ, before=add_a_file, files=files)
    assert [len(ids) for ids in ids_by_rank(result, "train")] == [300, 300]
    assert all_ids(result, "train") == list(range(600))


READS_OR_FAILS = """
join()
try: read("train")
except Exception as error: fail("invalid_argument", str(error))
"""


def test_a_file_that_changed_since_the_start_is_an_error_that_names_it(spark, start, tmp_path):
    files = files_of(spark, tmp_path / "rows", 600)
    changed = str(sorted((tmp_path / "rows").glob("part-*"))[1])

    def rewrite():
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"id": [1, 2, 3]}), changed)

    said = (
        r"part-00001\S* has \d+ bytes instead of \d+ \(seen from host \S+\): a run reads the files"
    )
    with pytest.raises(HearthError, match=said):
        start(READS_OR_FAILS, before=rewrite, files=files, max_restarts=1)


CLOSES_AND_SPEAKS_LATE = """
join()
if rank == 1:
    del member
    time.sleep(4)  # as on a machine that has much else to do
    fail("invalid_argument", "its own words")
meet("a")
"""


def test_the_message_of_a_lost_ranks_task_wins_even_if_late(spark, start):
    with pytest.raises(HearthError, match=r"rank 1 on host .* failed: its own words") as caught:
        start(CLOSES_AND_SPEAKS_LATE, frames={"train": spark.range(10)}, max_restarts=1)
    assert caught.value.code == "invalid_argument"


CLOSES_WHILE_ANOTHER_SPEAKS = """
join()
if rank == 0:
    del member
    channel.readline()  # until its task ends
    os._exit(1)
time.sleep(2)
fail("invalid_argument", "the words of another")
"""


def test_of_two_ranks_with_one_error_the_first_is_reported(spark, start):
    with pytest.raises(HearthError, match="the words of another") as caught:
        start(CLOSES_WHILE_ANOTHER_SPEAKS, frames={"train": spark.range(10)}, max_restarts=1)
    assert (caught.value.code, caught.value.rank) == ("invalid_argument", 1)


DIES_ONCE_THEN_READS = """
join()
own = {name: read(name) for name in job["streams"]}
if rank == 1 and job["generation"] == 0:
    os.kill(os.getpid(), signal.SIGKILL)
meet("a")
outcome = {"rows": [ids for ids in member.all_gather("ids", json.dumps(own), 60)]}
"""


def test_rows_of_ranks_do_not_depend_on_cores_after_a_loss(spark, start):
    key = "spark.sql.leafNodeDefaultParallelism"

    def lose_cores(event):
        if event["event"] == "restart":
            spark.conf.set(key, "7")

    try:
        result, events = start(
            DIES_ONCE_THEN_READS,
            max_restarts=1,
            on_event=lose_cores,
            frames={"train": spark.sql("select id from range(1000)")},
        )
    finally:
        spark.conf.unset(key)
    assert [event["event"] for event in events] == ["restart", "done"]
    assert ids_by_rank(result, "train") == [list(range(500)), list(range(500, 1000))]


KEEPS_ITS_IDS = """
join()
own = read("train")
with open(f"{folder}/{job['generation']}.{rank}", "w") as file: json.dump(own, file)
meet("a")
if rank == 1 and job["generation"] == 0:
    os.kill(os.getpid(), signal.SIGKILL)
meet("b")
"""


def test_a_restart_over_many_partitions_keeps_every_row_in_order(spark, start, tmp_path):
    body = f"folder = {str(tmp_path)!r}" + KEEPS_ITS_IDS
    start(body, max_restarts=1, frames={"train": spark.range(20000).repartition(16)})
    first, again = (
        [json.loads((tmp_path / f"{generation}.{rank}").read_text()) for rank in (0, 1)]
        for generation in (0, 1)
    )
    assert first == again
    assert sorted(itertools.chain(*again)) == list(range(20000))


def test_a_restart_reads_the_files_of_the_first_attempt(spark, start, tmp_path):
    files = files_of(spark, tmp_path / "rows", 600)
    files["test"] = files["train"]  # validation rows are pinned, too

    def add_a_file(event):
        if event["event"] == "restart":
            spark.range(600, 1000, 1, 1).write.mode("append").parquet(str(tmp_path / "rows"))

    result, _ = start(DIES_ONCE_THEN_READS, max_restarts=1, on_event=add_a_file, files=files)
    for stream in files:
        assert ids_by_rank(result, stream) == [list(range(300)), list(range(300, 600))]


def test_fewer_rows_than_ranks(spark, start):
    result, _ = start(JOIN_AND_READ, frames={"train": spark.range(1)})
    assert sorted(ids_by_rank(result, "train")) == [[], [0]]


def test_events_of_rank_0_arrive_and_its_done_event_is_the_result(start):
    body = """
join()
send(event="progress", iteration=1)
send(event="validation", iteration=10, outputs={"loss": [rank]})
if rank == 0: time.sleep(0.5)  # the others' output comes first, and is not the run's
outcome = {"of": rank}
"""
    result, events = start(body)
    assert result == {"event": "done", "model": "", "of": 0}
    assert [event["event"] for event in events] == ["progress", "validation", "done"]


def test_dropped_log_lines_are_counted(start, monkeypatch):
    from hearth.native import _core

    counts = iter([7])
    monkeypatch.setattr(_core.Coordinator, "take_dropped_log_lines", lambda _: next(counts, 0))
    _, events = start("join()", world=1)
    seen = [event["text"] for event in events if event["event"] == "log"]
    assert seen == ["7 log lines arrived too fast to be shown here; see the executors' logs"]


def test_a_trainer_may_stop_before_all_rows_were_read(spark, start):
    rows = spark.range(0, 3000000, 1, 2).selectExpr("id", "repeat('x', 100) as more")
    result, _ = start("join()", frames={"train": rows})
    assert result["event"] == "done"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        # fails before it joins: only its own task can report it
        ('if rank == 1: fail("invalid_argument", "layer conv1: odd")\njoin()\nmeet("a")',
         r"rank 1 on host \S+ failed: layer conv1: odd"),
        # fails after it joined: the coordinator reports it to the others
        ('join()\nif rank == 1: member.send_failure("layer conv1: odd"); fail("internal", "odd")\n'
         'meet("a")', r"rank 1 on host \S+ failed: layer conv1: odd"),
        ('join()\nif rank == 1: os.kill(os.getpid(), signal.SIGKILL)\nmeet("a")',
         r"rank 1 on host \S+ (went away|failed: its trainer process was killed by SIGKILL)"),
        ("sys.exit(3)", r"rank \d on host \S+ failed: its trainer process ended with status 3"),
    ],
)  # fmt: skip
def test_the_first_failure_reaches_the_driver_in_seconds(start, body, said):
    begin = time.monotonic()
    with pytest.raises(HearthError, match=said):
        start(body)
    assert time.monotonic() - begin < 60


DIES_UNTIL = """
join()
meet("a")
if rank == 1 and job["generation"] < {generation}:
    os.kill(os.getpid(), signal.SIGKILL)
meet("b")
outcome = {{"generation": job["generation"]}}
"""


def test_lost_ranks_are_replaced_in_a_new_generation(start):
    result, events = start(DIES_UNTIL.format(generation=2), max_restarts=3)
    assert result["generation"] == 2
    restarts = [event for event in events if event["event"] == "restart"]
    assert [event["generation"] for event in restarts] == [1, 2]
    assert all("rank 1" in event["reason"] for event in restarts)


def test_ranks_are_not_replaced_forever(start):
    with pytest.raises(HearthError, match=r"rank 1 on host .* \(failed after 1 restarts\)"):
        start(DIES_UNTIL.format(generation=5), max_restarts=1)


def test_finished_ranks_that_stop_responding_cost_no_result(start, monkeypatch):
    for wait in ("_EVENT_WAIT_S", "_RESULT_WAIT_S"):
        monkeypatch.setattr(launch, wait, 1.0)
    left = []
    monkeypatch.setattr(launch, "replace_silent", lambda *_, **how: left.append(how))
    body = 'join()\nmember.done(json.dumps({"event": "done", "rank": rank}))\ntime.sleep(600)'
    begin = time.monotonic()
    result, _ = start(body)
    assert result == {"event": "done", "rank": 0}
    assert left == [{"unless_they_answer": True}]
    assert time.monotonic() - begin < 300


def test_an_error_of_a_rank_is_not_retried(start):
    body = 'join()\nif rank == 1: fail("invalid_argument", "layer conv1: odd")\nmeet("a")'
    seen = []
    with pytest.raises(HearthError, match=r"rank 1 .*layer conv1: odd$"):
        start(body, max_restarts=3, on_event=seen.append)
    assert not any(event["event"] == "restart" for event in seen)


def test_unreadable_rows_fail_with_sparks_message(spark, start):
    rows = spark.range(0, 10, 1, 2).selectExpr("raise_error('no such row') as id")
    body = 'join()\ntry: read("train")\nexcept Exception as error: fail("internal", str(error))'
    with pytest.raises(Exception, match="no such row"):
        start(body, frames={"train": rows})


def test_a_failed_session_can_launch_again(spark, start):
    with pytest.raises(HearthError):
        start('join()\nif rank == 0: fail("internal", "odd")\nmeet("a")')
    result, _ = start("join()")
    assert result["event"] == "done"


def test_the_token_is_in_no_command_line_or_environment(start):
    body = """
join()
own = open("/proc/self/cmdline").read() + open("/proc/self/environ").read()
outcome = {"leaked": job["token"] in own}
"""
    result, _ = start(body)
    assert result["leaked"] is False
