"""The names, parameters and defaults of TensorFlowOnSpark 2.2.5, and calls that need no cluster."""

import importlib
import inspect
import subprocess
import sys
import types

import pyarrow as pa
import pytest

MODULES = [
    "TFCluster", "TFNode", "TFSparkNode", "TFManager", "TFParallel", "pipeline", "dfutil", "compat",
    "gpu_info", "reservation", "util", "marker",
]  # fmt: skip

SIGNATURES = """
TFCluster.run (sc, map_fun, tf_args, num_executors, num_ps, tensorboard=False, input_mode=0, \
log_dir=None, driver_ps_nodes=False, master_node=None, reservation_timeout=600, \
queues=['input', 'output', 'error'], eval_node=False, release_port=True)
TFCluster.TFCluster.train (self, dataRDD, num_epochs=0, feed_timeout=600, qname='input')
TFCluster.TFCluster.inference (self, dataRDD, feed_timeout=600, qname='input')
TFCluster.TFCluster.shutdown (self, ssc=None, grace_secs=0, timeout=259200)
TFCluster.TFCluster.tensorboard_url (self)
TFSparkNode.TFNodeContext.__init__ (self, executor_id=0, job_name='', task_index=0, \
cluster_spec={}, defaultFS='file://', working_dir='.', mgr=None, tmp_socket=None)
TFSparkNode.TFNodeContext.absolute_path (self, path)
TFSparkNode.TFNodeContext.start_cluster_server (self, num_gpus=1, rdma=False)
TFSparkNode.TFNodeContext.export_saved_model (self, sess, export_dir, tag_set, signatures)
TFSparkNode.TFNodeContext.get_data_feed (self, train_mode=True, qname_in='input', \
qname_out='output', input_mapping=None)
TFSparkNode.TFNodeContext.release_port (self)
TFSparkNode.run (fn, tf_args, cluster_meta, tensorboard, log_dir, queues, background)
TFSparkNode.train (cluster_info, cluster_meta, feed_timeout=600, qname='input')
TFSparkNode.inference (cluster_info, feed_timeout=600, qname='input')
TFSparkNode.shutdown (cluster_info, grace_secs=0, queues=['input'])
TFSparkNode._get_manager (cluster_info, host, executor_id)
TFSparkNode._get_cluster_spec (sorted_cluster_info)
TFSparkNode._has_spark_resource_api ()
TFNode.hdfs_path (ctx, path)
TFNode.start_cluster_server (ctx, num_gpus=1, rdma=False)
TFNode.export_saved_model (sess, export_dir, tag_set, signatures)
TFNode.release_port (ctx)
TFNode.next_batch (mgr, batch_size, qname='input')
TFNode.batch_results (mgr, results, qname='output')
TFNode.terminate (mgr, qname='input')
TFNode.DataFeed.__init__ (self, mgr, train_mode=True, qname_in='input', qname_out='output', \
input_mapping=None)
TFNode.DataFeed.next_batch (self, batch_size)
TFNode.DataFeed.should_stop (self)
TFNode.DataFeed.batch_results (self, results)
TFNode.DataFeed.terminate (self)
TFManager.start (authkey, queues, mode='local')
TFManager.connect (address, authkey)
TFParallel.run (sc, map_fn, tf_args, num_executors, use_barrier=True)
compat.export_saved_model (model, export_dir, is_chief=False)
compat.disable_auto_shard (options)
compat.is_gpu_available ()
gpu_info.is_gpu_available ()
gpu_info.get_gpus (num_gpu=1, worker_index=-1, format='string')
util.single_node_env (num_gpus=1, worker_index=-1, nodes=[])
util.get_ip_address ()
util.find_in_path (path, file)
util.write_executor_id (num)
util.read_executor_id ()
reservation.Reservations.__init__ (self, required)
reservation.Reservations.add (self, meta)
reservation.Reservations.done (self)
reservation.Reservations.get (self)
reservation.Reservations.remaining (self)
reservation.MessageSocket.receive (self, sock)
reservation.MessageSocket.send (self, sock, msg)
reservation.Server.__init__ (self, count)
reservation.Server.start (self)
reservation.Server.stop (self)
reservation.Server.await_reservations (self, sc, status={}, timeout=600)
reservation.Server.get_server_ip (self)
reservation.Server.get_server_ports (self)
reservation.Server.start_listening_socket (self)
reservation.Client.__init__ (self, server_addr)
reservation.Client.register (self, reservation)
reservation.Client.get_reservations (self)
reservation.Client.await_reservations (self)
reservation.Client.request_stop (self)
reservation.Client.close (self)
dfutil.saveAsTFRecords (df, output_dir)
dfutil.loadTFRecords (sc, input_dir, binary_features=[])
dfutil.isLoadedDF (df)
dfutil.toTFExample (dtypes)
dfutil.fromTFExample (iter, binary_features=[])
dfutil.infer_schema (example, binary_features=[])
pipeline.TFEstimator.__init__ (self, train_fn, tf_args, export_fn=None)
pipeline.TFModel.__init__ (self, tf_args)
pipeline.Namespace.__init__ (self, d)
pipeline.TFParams.merge_args_params (self)
pipeline.TFTypeConverters.toDict (value)
pipeline.yield_batch (iterable, batch_size, num_tensors=1)
pipeline.single_node_env (args)
"""


@pytest.mark.parametrize("line", SIGNATURES.strip().splitlines(), ids=lambda line: line.split()[0])
def test_signatures_are_those_of_tensorflowonspark(line):
    name, _, wanted = line.partition(" ")
    module, *path = name.split(".")
    thing = importlib.import_module(f"tensorflowonspark.{module}")
    for part in path:
        thing = getattr(thing, part)
    signature = inspect.signature(thing)
    # Hearth's additional parameters are keyword-only, and are left out here.
    known = [
        parameter.replace(annotation=parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.kind is not parameter.KEYWORD_ONLY
    ]
    bare = signature.replace(parameters=known, return_annotation=signature.empty)
    assert str(bare) == wanted


# Names that are not functions, or that programs use without calling them.
NAMES = """
TFCluster: InputMode.SPARK TFCluster.cluster_meta TFCluster.server tf_status
TFManager: TFManager mgr qdict kdict _get _set _get_queue
TFNode: DataFeed
TFSparkNode: TFNodeContext TFSparkNode.mgr TFSparkNode.cluster_id
compat: tf
dfutil: loadedDF
marker: Marker EndPartition
pipeline: TFEstimator.train_fn TFModel Namespace.argv TFParams.args
reservation: TFOS_SERVER_HOST TFOS_SERVER_PORT
"""


@pytest.mark.parametrize("line", NAMES.strip().splitlines())
def test_names_of_tensorflowonspark_exist(line):
    module, names = line.split(": ")
    loaded = importlib.import_module(f"tensorflowonspark.{module}")
    for name in names.split():
        thing = loaded
        for part in name.split("."):
            assert hasattr(thing, part), name
            thing = getattr(thing, part)


def test_a_program_can_make_stages_of_the_pipelines_mixins():
    from pyspark.ml import Estimator

    from tensorflowonspark import pipeline

    params = {
        "HasBatchSize": "batch_size", "HasClusterSize": "cluster_size", "HasEpochs": "epochs",
        "HasExportDir": "export_dir", "HasGraceSecs": "grace_secs",
        "HasInputMapping": "input_mapping", "HasInputMode": "input_mode",
        "HasMasterNode": "master_node", "HasModelDir": "model_dir", "HasNumPS": "num_ps",
        "HasOutputMapping": "output_mapping", "HasProtocol": "protocol", "HasReaders": "readers",
        "HasSignatureDefKey": "signature_def_key", "HasSteps": "steps", "HasTagSet": "tag_set",
        "HasTensorboard": "tensorboard", "HasTFRecordDir": "tfrecord_dir",
    }  # fmt: skip
    assert len(params) == 18
    kinds = [getattr(pipeline, name) for name in params]
    stage = type("Stage", (Estimator, pipeline.TFParams, *kinds), {"_fit": None})()
    for name, param in params.items():
        value = {"input_mapping": {"a": "b"}, "output_mapping": {"c": "d"}}.get(param)
        if value is None:
            kind = str if param[-3:] in ("dir", "ode", "col", "key", "set") else int
            value = 1 if param == "input_mode" else True if param == "tensorboard" else kind(7)
        camel = name.removeprefix("Has")
        assert getattr(stage, f"set{camel}")(value) is stage
        assert getattr(stage, f"get{camel}")() == value
    stage.setDriverPSNodes(True)
    stage.args = pipeline.Namespace({"a": 1, "batch_size": 3})
    merged = stage.merge_args_params()
    assert (merged.a, merged.batch_size, merged.driver_ps_nodes) == (1, 7, True)
    with pytest.raises(ValueError, match=r"InputMode.TENSORFLOW is not possible in a pipeline"):
        stage.setInputMode(0)


def test_nodes_of_a_cluster_that_the_program_made_itself_are_refused():
    from tensorflowonspark import TFSparkNode

    meta = {
        "id": 1, "cluster_template": {"chief": [0]}, "num_executors": 1, "default_fs": "file://",
        "working_dir": ".", "server_addr": ("localhost", 1), "release_port": True,
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"cluster_meta was not created by TFCluster\.run"):
        TFSparkNode.run(print, {}, meta, False, None, ["input"], False)([0])
    node = {"executor_id": 0, "host": "h", "job_name": "worker", "task_index": 0, "authkey": b"x"}
    for call in (lambda: TFSparkNode.train([node], meta), lambda: TFSparkNode.inference([node])):
        with pytest.raises(ValueError, match=r"names no node of a running cluster that takes rows"):
            call()


def test_constants_are_those_of_tensorflowonspark():
    from tensorflowonspark import TFCluster, gpu_info, marker

    assert (TFCluster.InputMode.TENSORFLOW, TFCluster.InputMode.SPARK) == (0, 1)
    assert (gpu_info.AS_STRING, gpu_info.AS_LIST, gpu_info.MAX_RETRIES) == ("string", "list", 3)
    assert issubclass(marker.EndPartition, marker.Marker)
    assert TFCluster.tf_status == {}


def test_importing_the_package_loads_neither_tensorflow_nor_torch_nor_the_core():
    imports = ", ".join(MODULES)
    code = f"""
from tensorflowonspark import {imports}
import sys, tensorflowonspark, hearth.tensorflowonspark.TFCluster as own
assert tensorflowonspark.TFCluster is own
loaded = {{"tensorflow", "torch", "keras", "hearth.native._core"}} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("default_fs", "path", "wanted"),
    [
        ("file://", "hdfs://foo/bar", "hdfs://foo/bar"),
        ("file://", "viewfs://foo/bar", "viewfs://foo/bar"),
        ("file://", "/foo/bar", "file:///foo/bar"),
        ("file://", "foo/bar", "file:///work/dir/foo/bar"),
        ("hdfs://nn:8020", "file:///foo", "file:///foo"),
        ("hdfs://nn:8020", "/foo", "hdfs://nn:8020/foo"),
        ("hdfs://nn:8020", "foo", "hdfs://nn:8020/user/me/foo"),
        ("viewfs://vfs", "foo", "viewfs://vfs/user/me/foo"),
        ("s3a://bucket", "foo", "s3a://bucket/foo"),
    ],
)
def test_paths_are_taken_from_the_default_file_system(default_fs, path, wanted, monkeypatch):
    from tensorflowonspark import TFNode

    monkeypatch.setattr("getpass.getuser", lambda: "me")
    context = types.SimpleNamespace(defaultFS=default_fs, working_dir="/work/dir")
    assert TFNode.hdfs_path(context, path) == wanted


def test_functions_of_tensorflow_1_name_their_replacement():
    from tensorflowonspark import TFNode, TFSparkNode

    for call in (
        lambda: TFSparkNode.TFNodeContext().start_cluster_server(),
        lambda: TFNode.export_saved_model(None, "", "", {}),
        lambda: TFNode.next_batch(None, 1),
        lambda: TFNode.batch_results(None, []),
        lambda: TFNode.terminate(None),
    ):
        with pytest.raises(NotImplementedError, match="DEPRECATED"):
            call()


def test_a_feed_over_a_managers_queue_returns_its_items():
    from tensorflowonspark import TFManager, TFNode

    manager = TFManager.start("abc", ["input", "output"])
    try:
        queue = manager.get_queue("input")
        for row in [*range(10), None]:
            queue.put(row)
        feed = TFNode.DataFeed(manager)
        assert feed.next_batch(2) == [0, 1]
        assert feed.next_batch(4) == [2, 3, 4, 5]
        assert not feed.should_stop()
        assert feed.next_batch(10) == [6, 7, 8, 9]
        assert feed.should_stop()
    finally:
        manager.shutdown()


def test_a_manager_can_be_reached_with_its_key_only():
    from multiprocessing import AuthenticationError

    from tensorflowonspark import TFManager

    manager = TFManager.start(b"right", ["control"], "remote")
    try:
        manager.set("state", "running")
        other = TFManager.connect(manager.address, b"right")
        other.get_queue("control").put(None)
        assert manager.get_queue("control").get() is None
        with pytest.raises(AuthenticationError):
            TFManager.connect(manager.address, b"wrong")
    finally:
        manager.shutdown()


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ((2, 0, None, False), {"worker": [0, 1]}),
        ((4, 1, "chief", True), {"ps": [0], "chief": [1], "evaluator": [2], "worker": [3]}),
        ((1, 0, "master", False), {"master": [0]}),
    ],
)
def test_roles_take_ids_in_order(arguments, wanted):
    from hearth.tensorflowonspark import roles

    assert roles.make_template(*arguments) == wanted


@pytest.mark.parametrize("arguments", [(2, 2, None, False), (1, 1, "chief", False)])
def test_roles_that_do_not_add_up_are_refused(arguments):
    from hearth.tensorflowonspark import roles

    with pytest.raises(AssertionError):
        roles.make_template(*arguments)


def test_columns_of_numbers_and_lists_become_arrays_without_a_copy():
    from hearth.rows.columns import column_to_numpy

    numbers = pa.array([1.5, 2.5, 3.5], pa.float32())
    array = column_to_numpy(numbers, "x")
    assert array.__array_interface__["data"][0] == numbers.buffers()[1].address
    for kind in (pa.list_(pa.float32()), pa.list_(pa.float32(), 2), pa.large_list(pa.float32())):
        lists = pa.array([[9, 9], [1, 2], [3, 4]], kind).slice(1)
        array = column_to_numpy(lists, "x")
        assert array.tolist() == [[1, 2], [3, 4]]
        assert array.base is not None
        start = lists.values.buffers()[1].address
        assert array.__array_interface__["data"][0] == start + 8


@pytest.mark.parametrize(
    "rows", [[], [1], list(range(5000)), [b"x" * 5_000_000, 1, (None, {"a": 2})]]
)
def test_pickles_of_any_size_are_reassembled_from_chunks(rows):
    import pickle

    from hearth.rows.pickles import batches_of_pickles, pickle_rows

    back, pieces = [], []
    for batch in map(pa.record_batch, batches_of_pickles(pickle_rows(rows))):
        for piece, last in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            assert len(piece) <= 2 << 20
            pieces.append(piece)
            if last:
                back += pickle.loads(b"".join(pieces))
                pieces = []
    assert back == rows
    assert not pieces


@pytest.mark.parametrize("count", [0, -1])
def test_parallel_runs_of_no_instance_are_refused(count):
    from tensorflowonspark import TFParallel

    with pytest.raises(ValueError, match=f"num_executors is {count}: at least 1 instance must run"):
        TFParallel.run(None, print, {}, count)
