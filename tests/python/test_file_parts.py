"""Parts of files that lie elsewhere: each row read once, near its block, in equal shares."""

import os
import queue
import random
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from table_files import ROWS, TABLE, WRITERS, write_parquet, write_records

from hearth import HearthError
from hearth.cluster import file_feed, file_plans
from hearth.cluster.context import NodeContext
from hearth.cluster.file_plans import FilePlans
from hearth.cluster.file_shares import FileShares
from hearth.cluster.roles import fed_nodes
from hearth.rows import far_listing
from hearth.rows.far_reader import read_parts
from hearth.rows.file_parts import Block, Part, StoredFile, packed, shares, unpacked

MIB = 1 << 20


def stored(name, size, hosts, block=128 * MIB):
    """A file whose i-th block lies on the i-th of `hosts`, in turn."""
    begins = range(0, size, block)
    blocks = [
        Block(begin, min(begin + block, size), frozenset(hosts[i % len(hosts)]))
        for i, begin in enumerate(begins)
    ]
    return StoredFile(name, size, tuple(blocks))


def covered(files, parts):
    """Whether each byte of each file is in exactly one part."""
    for file in files:
        mine = sorted((p.begin, p.end) for share in parts for p in share if p.uri == file.uri)
        at = 0
        for begin, end in mine:
            if begin != at:
                return False
            at = end
        if at != file.size:
            return False
    return True


@pytest.mark.parametrize("whole", [False, True])
def test_random_layouts_are_covered_in_equal_shares_and_always_the_same(whole):
    random.seed(5)
    for _ in range(20):
        hosts = [f"h{i}" for i in range(random.randint(1, 9))]
        nodes = [frozenset({random.choice(hosts), "x"}) for _ in range(random.randint(1, 7))]
        files = [
            stored(f"f{i}", random.randint(0, 900) * MIB, [random.sample(hosts, 1)])
            for i in range(random.randint(1, 40))
        ]
        parts = shares(files, nodes, whole)
        assert covered(files, parts)
        assert parts == shares(list(reversed(files)), nodes, whole)
        loads = [sum(part.bytes for part in share) for share in parts]
        largest = max(part.bytes for share in parts for part in share) if whole else 0
        fair = sum(loads) / len(nodes)
        assert max(loads) <= fair + max(fair / 8, largest, 2 * MIB)


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [(0, 400)],  # the end is missing
        [(300, 700)],
        [(500, 1000), (0, 500)],  # in another order
        [(0, 600), (400, 1000)],  # overlapping
        [(0, 1000), (1000, 1500)],  # one that is still written
        [(0, 0), (0, 1000), (200, 300)],
    ],
)
def test_each_byte_is_in_one_part_whatever_is_told_of_blocks(blocks, monkeypatch):
    monkeypatch.setattr("hearth.rows.file_parts._LEAST_BYTES", 10)
    told = tuple(Block(begin, end, frozenset({"a"})) for begin, end in blocks)
    files = [StoredFile("f", 1000, told)]
    for whole in (False, True):
        assert covered(files, shares(files, [frozenset({"a"}), frozenset({"b"})], whole))


def test_all_is_read_near_where_each_host_has_its_part():
    nodes = [frozenset({f"h{i}", f"10.0.0.{i}"}) for i in range(4)]
    files = [stored(f"f{i}", 512 * MIB, [[f"10.0.0.{i}", "far"]]) for i in range(4)]
    for whole in (False, True):
        parts = shares(files, nodes, whole)
        assert [share[0].uri for share in parts] == ["f0", "f1", "f2", "f3"]
        assert all(part.near for share in parts for part in share)
    # Three copies of each block: whoever has few of them is served first.
    hosts = [[f"h{i}", f"h{(i + 1) % 4}", f"h{(i + 2) % 4}"] for i in range(4)]
    parts = shares([stored("f", 64 * 128 * MIB, hosts)], nodes, False)
    assert all(part.near for share in parts for part in share)
    assert {sum(part.bytes for part in share) for share in parts} == {16 * 128 * MIB}


def test_a_host_with_everything_shares_it():
    nodes = [frozenset({"a"}), frozenset({"b"})]
    parts = shares([stored("f", 1024 * MIB, [["a"]])], nodes, False)
    assert [sum(part.bytes for part in share) for share in parts] == [512 * MIB, 512 * MIB]
    assert [{part.near for part in share} for share in parts] == [{True}, {False}]


class Cluster:
    """A driver's thread and its nodes in this process; `hosts` of the blocks are made up."""

    def __init__(self, monkeypatch, roles, hosts=None):
        monkeypatch.setattr(file_feed, "CORE_SCHEMES", ("file",))
        real = far_listing.list_stored

        def listed(session, uri):
            files = real(session, uri)
            place = hosts or (lambda _: [])
            return [replace(f, blocks=(Block(0, f.size, frozenset(place(f.uri))),)) for f in files]

        monkeypatch.setattr(file_plans, "list_stored", listed)
        self.files = queue.SimpleQueue()
        self.watch = self
        names = [role for role, count in roles.items() for _ in range(count)]
        self.nodes = [
            {"executor_id": i, "job_name": role, "host": f"10.0.0.{i}", "host_name": f"h{i}"}
            | {"port": 1}
            for i, role in enumerate(names)
        ]
        self.shares = [FileShares(lambda e, i=i: self.files.put((i, e))) for i in range(len(names))]
        self.plans = FilePlans(object())
        self.thread = self.plans.serve(self, self.nodes)

    def broadcast(self, answer):
        self.shares[answer["to"]].answer(answer)

    def contexts(self):
        spec = file_plans.roles.cluster_spec(self.nodes)
        seen = {}
        for i, node in enumerate(self.nodes):
            role = node["job_name"]
            seen[role] = seen.get(role, -1) + 1
            context = NodeContext(i, role, seen[role], spec, "file://", ".")
            context.mgr = type("Manager", (), {"files": self.shares[i]})
            yield context

    def end(self):
        self.files.put(None)
        self.thread.join(60)
        assert not self.thread.is_alive()


@pytest.mark.parametrize("write", WRITERS)
def test_the_nodes_read_each_row_once_per_epoch(write, tmp_path, monkeypatch):
    write(tmp_path)
    monkeypatch.setattr("hearth.rows.file_parts._LEAST_BYTES", 100)
    cluster = Cluster(monkeypatch, {"chief": 1, "ps": 1, "worker": 2})
    seen, readers = [], 0
    for node in cluster.contexts():
        if node.role == "ps":
            with pytest.raises(HearthError, match="takes no rows"):
                node.get_file_feed(tmp_path.as_uri())
            continue
        feed = node.get_file_feed(tmp_path.as_uri(), ["id", "x"], epochs=2)
        mine = []
        while not feed.should_stop():
            mine += feed.next_batch(64)
        assert all(row[1][0] == row[0] for row in mine)
        readers += bool(mine)
        seen += [row[0] for row in mine]
    assert sorted(seen) == sorted([*range(ROWS)] * 2)
    assert readers == 3
    cluster.end()


def test_bytes_are_counted_by_where_they_came_from(tmp_path, monkeypatch):
    write_records(tmp_path)
    hosts = {"part-r-00000": ["h0"], "part-r-00001": ["10.0.0.1"]}
    cluster = Cluster(monkeypatch, {"worker": 2}, lambda uri: hosts.get(uri[-12:], ["other"]))
    for node in cluster.contexts():
        feed = node.get_file_feed(tmp_path.as_uri())
        while not feed.should_stop():
            feed.next_batch(100)
    cluster.end()
    sizes = {file.name: file.stat().st_size for file in tmp_path.glob("part*")}
    near = sizes["part-r-00000"] + sizes["part-r-00001"]
    assert (cluster.plans.near, cluster.plans.far) == (near, sum(sizes.values()) - near)


def test_a_row_group_that_begins_in_no_part_is_an_error(tmp_path):
    path = tmp_path / "a.parquet"
    ids = TABLE.select(["id"])
    pq.write_table(ids, path, row_group_size=500, compression="none", use_dictionary=False)
    content = path.read_bytes()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") :]
    begins_at_4, before_the_file = b"\x26\x08", b"\x26\x07"
    assert begins_at_4 in footer
    path.write_bytes(content.removesuffix(footer) + footer.replace(begins_at_4, before_the_file))
    part = Part(path.as_uri(), len(content), 0, len(content))
    with pytest.raises(ValueError, match=r"a.parquet is damaged: .* group 0 begins at byte -4"):
        list(read_parts([part], [], [], lambda size, near: None))


def test_the_files_stay_those_that_the_driver_found_first(tmp_path, monkeypatch):
    write_parquet(tmp_path)
    cluster = Cluster(monkeypatch, {"worker": 1})
    (node,) = cluster.contexts()
    node.get_file_feed(tmp_path.as_uri())
    pq.write_table(TABLE, tmp_path / "part-9.parquet")
    feed = node.get_file_feed(tmp_path.as_uri(), ["id"])
    assert sum(len(feed.next_batch(64)) for _ in range(20)) == ROWS
    first = tmp_path / "part-0.parquet"
    content, written = first.read_bytes(), first.stat().st_mtime
    pq.write_table(TABLE, first)
    with pytest.raises(ValueError, match=r"part-0.parquet has \d+ bytes instead of \d+"):
        node.get_file_feed(tmp_path.as_uri()).next_batch(1)
    first.write_bytes(content)
    os.utime(first, (written - 5, written - 5))
    with pytest.raises(ValueError, match=r"part-0.parquet was written again: nodes read the files"):
        node.get_file_feed(tmp_path.as_uri()).next_batch(1)
    first.unlink()
    with pytest.raises(FileNotFoundError, match=r"part-0.parquet"):
        node.get_file_feed(tmp_path.as_uri()).next_batch(1)
    with pytest.raises(HearthError, match="there are no files in file:///nowhere"):
        node.get_file_feed("file:///nowhere")
    cluster.end()


def test_a_restart_shares_the_same_files_over_the_new_hosts(tmp_path, monkeypatch):
    write_parquet(tmp_path)
    cluster = Cluster(monkeypatch, {"worker": 1}, lambda uri: ["h7"])
    (node,) = cluster.contexts()
    node.get_file_feed(tmp_path.as_uri())
    cluster.end()
    pq.write_table(TABLE, tmp_path / "part-9.parquet")
    cluster.nodes[0]["host_name"] = "h7"
    cluster.thread = cluster.plans.serve(cluster, cluster.nodes)
    feed = node.get_file_feed(tmp_path.as_uri(), ["id"])
    assert sum(len(feed.next_batch(64)) for _ in range(20)) == ROWS
    cluster.end()
    assert cluster.plans.near > 0
    assert cluster.plans.far == 0


def test_who_waits_hears_that_the_cluster_has_failed(monkeypatch):
    shares_of_node = FileShares(lambda event: shares_of_node.fail("node 1 was lost"))
    with pytest.raises(HearthError, match="node 1 was lost"):
        shares_of_node.ask("hdfs://a/b")
    with pytest.raises(HearthError, match="node 1 was lost"):
        shares_of_node.ask("hdfs://a/b")


def test_nodes_are_in_the_order_of_their_shares():
    nodes = [
        {"executor_id": 2, "job_name": "worker", "host": "c", "port": 1},
        {"executor_id": 0, "job_name": "ps", "host": "a", "port": 1},
        {"executor_id": 3, "job_name": "chief", "host": "d", "port": 1},
        {"executor_id": 1, "job_name": "worker", "host": "b", "port": 1},
    ]
    assert [node["executor_id"] for node in fed_nodes(nodes)] == [1, 2, 3]


def test_a_share_survives_its_way():
    parts = [Part("hdfs://a/b", 10, 2, 7, True), Part("hdfs://a/c", 3, 0, 3)]
    text = packed("hdfs://a", parts, ["hdfs://a/c"])
    assert unpacked(text) == (parts, ["hdfs://a/c"])


def test_a_share_that_no_message_holds_is_refused():
    random.seed(1)
    parts = [Part(f"hdfs://a/{random.random()}", 1, 0, 1) for _ in range(100_000)]
    with pytest.raises(ValueError, match=r"hdfs://a has 100000 parts for one node.*use more nodes"):
        packed("hdfs://a", parts, [])
