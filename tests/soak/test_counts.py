"""The row counters of the soak tests and the randomized fault tests."""

import json

import counted_feed
import counted_steps
from counted_net import CountedNet, Tally


def record(net, generation, name, *lines):
    (net.folder / f"{generation:04d}-{name}").write_text("".join(f"{line}\n" for line in lines))


def test_rolled_back_steps_do_not_count(tmp_path):
    net = CountedNet(tmp_path / "net", rows=4, batch=1, max_iter=4)
    record(net, 0, "a", "0 0", "1 2", "2 0")
    record(net, 0, "b", "0 1", "1 3")
    record(net, 1, "a", "1 3", "2 1", "3 3")  # resumes from a snapshot after iteration 1
    record(net, 1, "b", "1 2", "2 0", "3 2")
    with open(net.folder / "0001-b", "a", encoding="ascii") as file:
        file.write("4 1")  # a kill left this incomplete
    assert [sorted(ids) for ids in net.learned()] == [[0, 1], [2, 3], [0, 1], [2, 3]]
    assert net.tally() == Tally(epochs=2, lost=0, doubled=0)


def test_missing_and_repeated_rows_are_counted(tmp_path):
    net = CountedNet(tmp_path / "net", rows=4, batch=2, max_iter=4)
    record(net, 0, "a", "0 0 1", "1 2 3", "2 0 1", "3 1 3", "4 2 2")
    assert net.tally() == Tally(epochs=2, lost=1, doubled=2)


def test_rows_of_all_lives_of_the_nodes_are_counted(tmp_path):
    (tmp_path / "model-worker0").write_text(json.dumps([1, [0, 1, 2], [5]]))
    (tmp_path / "model-worker1").write_text(json.dumps([0, [], [3, 5]]))
    assert counted_feed.tally(tmp_path, rows=3, epochs=2) == Tally(2, lost=1, doubled=1)


def note(folder, life, rank, begin, *steps):
    recorder = counted_steps.Recorder(str(folder), life, rank, begin)
    for step in steps:
        recorder.note(*step)


def test_a_start_takes_back_the_steps_behind_its_checkpoint(tmp_path):
    note(tmp_path, 0, 0, 0, (1, 0, [0]), (2, 0, [2]), (3, 1, [3]))
    note(tmp_path, 0, 1, 0, (1, 0, [1]), (2, 0, [3]))
    note(tmp_path, 1, 0, 1, (2, 0, [2, 3]), (3, 1, [0, 1]), (4, 1, [2, 3]))
    with open(tmp_path / "00001-0", "a", encoding="ascii") as file:
        file.write("[5, 1, [0")  # a kill left this incomplete
    assert counted_steps.tally(tmp_path, rows=4, epochs=2) == Tally(2, lost=0, doubled=0)
    assert counted_steps.progress(tmp_path) == (1, 1, 4)
    note(tmp_path, 2, 0, 3, (4, 1, [1, 2]))
    assert counted_steps.tally(tmp_path, rows=4, epochs=2) == Tally(2, lost=1, doubled=1)


def test_iterations_are_assigned_to_the_run_whose_update_counts(tmp_path):
    net = CountedNet(tmp_path / "net", rows=4, batch=1, max_iter=4)
    record(net, 0, "a", "0 0", "1 2", "2 0")
    record(net, 1, "a", "2 1", "3 3")
    assert net.learned_by_run() == [[[0], [2]], [[1], [3]]]
