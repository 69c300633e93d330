"""TensorFlow and Keras programs written for Horovod run with only a changed import. Also covers the
API calls that other tests leave out.
"""

from __future__ import annotations

import importlib.util

import pytest
from horovod_ranks import Ranks, horovod_ranks

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(
        importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"
    ),
]
ranks = horovod_ranks

# Variables of the programs: rows, a folder, and check(hvd, weights), which they call at the end.
START = """
import contextlib
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
images = np.random.RandomState(0).rand(64, 6).astype("float32")
labels = (images.sum(1) > 3).astype("int64")

def check(hvd, weights):
    every = hvd.allgather_object([np.asarray(weight).tolist() for weight in weights])
    assert every[0] == every[1]

def run(program):
    given = {"np": np, "images": images, "labels": labels, "folder": folder, "check": check}
    with contextlib.redirect_stdout(sys.stderr):
        exec(compile(program, program.strip().split("\\n")[0], "exec"), given)
"""

TAPE = """
# A loop of TensorFlow 2, with a checkpoint of rank 0
import tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
gpus = tf.config.experimental.list_physical_devices("GPU")
if gpus:
    tf.config.experimental.set_visible_devices(gpus[hvd.local_rank()], "GPU")
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().shuffle(64).batch(8)
model = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"),
                             tf.keras.layers.Dense(2, activation="softmax")])
loss = tf.losses.SparseCategoricalCrossentropy()
opt = tf.optimizers.Adam(0.01 * hvd.size())
checkpoint = tf.train.Checkpoint(model=model)

@tf.function
def training_step(images, labels, first_batch):
    with tf.GradientTape() as tape:
        loss_value = loss(labels, model(images, training=True))
    tape = hvd.DistributedGradientTape(tape)
    grads = tape.gradient(loss_value, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    # The optimizer has its variables now.
    if first_batch:
        hvd.broadcast_variables(model.variables, root_rank=0)
        own = opt.variables
        hvd.broadcast_variables(own() if callable(own) else own, root_rank=0)
    return loss_value

losses = []
for batch, (x, y) in enumerate(dataset.take(120 // hvd.size())):
    losses.append(float(hvd.allreduce(training_step(x, y, batch == 0), name="loss")))
assert np.mean(losses[-10:]) < np.mean(losses[:10]), losses
if hvd.rank() == 0:
    checkpoint.save(f"{folder}/tape")
check(hvd, model.get_weights())
"""

TAPE_ELASTIC = """
# The same, elastic
import tensorflow as tf
import horovod.tensorflow as hvd

hvd.init()
lr = 0.001
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(8)
model = tf.keras.Sequential([tf.keras.layers.Dense(2, activation="softmax")])
loss = tf.losses.SparseCategoricalCrossentropy()
optimizer = tf.optimizers.Adam(lr * hvd.size())

def training_step(x, y, allreduce=True):
    with tf.GradientTape() as tape:
        value = loss(y, model(x, training=True))
    if allreduce:
        tape = hvd.DistributedGradientTape(tape)
    grads = tape.gradient(value, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))

for x, y in dataset.take(1):
    training_step(x, y, allreduce=False)  # makes the variables
failures, begins = [], []

@hvd.elastic.run
def train(state):
    begins.append(state.batch)
    for batch, (x, y) in enumerate(dataset.skip(state.batch).take(12 - state.batch)):
        training_step(x, y)
        state.batch += 1
        if state.batch == 7 and not failures:
            failures.append(1)
            hvd.allreduce(tf.ones(2 + hvd.rank()))  # fails on all ranks
        if state.batch % 5 == 0:
            state.commit()

def on_state_reset():
    optimizer.learning_rate.assign(lr * hvd.size())

state = hvd.elastic.TensorFlowKerasState(model, optimizer, batch=0)
state.register_reset_callbacks([on_state_reset])
train(state)
assert begins == [0, 5] and state.batch == 12, (begins, state.batch)
check(hvd, model.get_weights())

weights = tf.Variable([1.0 + hvd.rank()])
kept = hvd.elastic.TensorFlowState([weights], step=3)
kept.sync()
assert weights.numpy() == [1.0]
weights.assign([9.0])
kept.step = 4
kept.restore()
assert weights.numpy() == [1.0] and kept.step == 3
"""

FIT = """
# model.fit with the callbacks
import tensorflow as tf
KERAS
import HVD as hvd

hvd.init()
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().shuffle(64).batch(8)
model = keras.Sequential([keras.layers.Dense(8, activation="relu"),
                          keras.layers.Dense(2, activation="softmax")])
scaled_lr = 0.01 * hvd.size()
opt = keras.optimizers.Adam(scaled_lr)
opt = hvd.DistributedOptimizer(opt, backward_passes_per_step=1, average_aggregated_gradients=True)
model.compile(loss="sparse_categorical_crossentropy", optimizer=opt, metrics=["accuracy"])
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=scaled_lr, warmup_epochs=2, verbose=1),
]
if hvd.rank() == 0:
    callbacks.append(keras.callbacks.ModelCheckpoint(folder + "/checkpoint-{epoch}.keras"))
fitted = model.fit(dataset, steps_per_epoch=40 // hvd.size(), epochs=3, callbacks=callbacks,
                   verbose=0)
assert fitted.history["loss"][-1] < fitted.history["loss"][0]
assert abs(fitted.history["lr"][1] - scaled_lr) < 1e-6
score = hvd.allreduce(model.evaluate(images, labels, verbose=0)[1])
assert 0 <= score <= 1
if hvd.rank() == 0:
    again = hvd.load_model(f"{folder}/checkpoint-3.keras")
    assert all(map(np.array_equal, again.get_weights(), model.get_weights()))
check(hvd, model.get_weights())
"""

FIT_ELASTIC = """
# model.fit, elastic
import tensorflow as tf
KERAS
import HVD as hvd

hvd.init()
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(8)
model = keras.Sequential([keras.layers.Dense(2, activation="softmax")])
opt = hvd.DistributedOptimizer(keras.optimizers.SGD(0.01 * hvd.size()))
model.compile(loss="sparse_categorical_crossentropy", optimizer=opt)
model.fit(dataset, steps_per_epoch=1, epochs=1, verbose=0)  # makes the variables
failures, begins, ends = [], [], []
state = hvd.elastic.KerasState(model, batch=0, epoch=0)

class Fails(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if state.epoch == 1 and not failures:
            failures.append(1)
            hvd.allreduce(np.ones(2 + hvd.rank()))

@hvd.elastic.run
def train(state):
    begins.append(state.epoch)
    model.fit(dataset, steps_per_epoch=4, epochs=3 - state.epoch, verbose=0, callbacks=[
        Fails(), hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.MetricAverageCallback(), hvd.elastic.UpdateBatchStateCallback(state),
        hvd.elastic.UpdateEpochStateCallback(state), hvd.elastic.CommitStateCallback(state)])

train(state)
assert begins == [0, 1] and state.epoch == 3, (begins, state.epoch)
check(hvd, model.get_weights())
"""


def changed(program, keras="", hvd=""):
    text = program.replace("KERAS", keras).replace("HVD", hvd)
    return text.replace("import horovod.", "import hearth.horovod.")


def programs_of(keras, hvd):
    programs = [changed(each) for each in (TAPE, TAPE_ELASTIC)]
    return [*programs, *(changed(each, keras, hvd) for each in (FIT, FIT_ELASTIC))]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", ["keras", pytest.param("tf_keras", marks=pytest.mark.long)])
def test_programs_of_horovod_run_by_their_imports(ranks, tmp_path, case):
    if case == "keras":
        programs = programs_of("import keras", "horovod.keras")
        start = START
    else:
        pytest.importorskip("tf_keras")
        programs = programs_of("from tensorflow import keras", "horovod.tensorflow.keras")
        start = f"os.environ['TF_USE_LEGACY_KERAS'] = '1'\n{START}"
    program = "".join(f"run({each!r})\nsay('ran')\n" for each in programs)
    ranks.append(Ranks("tensorflow", tmp_path, program, start=start))
    for each in programs:
        assert [ranks[0].say(rank) for rank in range(2)] == ["ran", "ran"], each


CALLS = """
import threading
import hearth.horovod.tensorflow as hvd
import hearth.horovod.keras as hk
from hearth.horovod import current
hvd.init()
failed, invalid = tf.errors.FailedPreconditionError, tf.errors.InvalidArgumentError

# Ranks and sizes.
for op, function in ((hvd.rank_op, hvd.rank), (hvd.size_op, hvd.size),
                     (hvd.local_rank_op, hvd.local_rank), (hvd.local_size_op, hvd.local_size)):
    equal(tf.function(op)(), function())
assert (hvd.cross_rank(), hvd.cross_size(), hvd.is_homogeneous()) == (0, 1, True)
assert hvd.gloo_built() and hvd.gloo_enabled() and not hvd.mpi_enabled() and not hvd.nccl_built()
assert hvd.is_initialized() and hk.is_initialized()
raised(ValueError, hvd.init, comm=object())

# Types that are only moved; empty and scalar tensors.
for kind in (tf.bool, tf.int8, tf.int16, tf.uint16, tf.uint8):
    own = tf.cast([[rank, 1]], kind)
    both = hvd.allgather(own)
    assert both.dtype == kind
    equal(both, np.asarray(tf.cast([[0, 1], [1, 1]], kind)))
    equal(hvd.broadcast(own, 1), np.asarray(tf.cast([[1, 1]], kind)))
equal(hvd.allreduce(tf.constant(rank + 1.0), op=hvd.Sum), 3.0)
equal(hvd.allgather(tf.constant(rank)), [0, 1])
equal(hvd.allreduce(tf.zeros([0, 3])), np.zeros((0, 3)))
equal(hvd.allgather(tf.ones([rank, 2])), np.ones((1, 2)))
equal(hvd.alltoall(tf.constant([2 * rank, 2 * rank + 1])), [rank, 2 + rank])
rows, sent = hvd.alltoall(tf.constant([7.0]), [1 - rank, rank])  # nothing for one of the two
equal(rows, [7.0])
raised(ValueError, hvd.reducescatter, tf.constant(1.0))
raised(ValueError, hvd.reducescatter, tf.ones(2), op=hvd.Max)
equal(hvd.reducescatter(tf.constant([2.0, 4.0, 6.0])), [[2.0, 4.0], [6.0]][rank])
first, second = hvd.grouped_reducescatter([tf.ones(2), tf.ones([2, 1])], op=hvd.Sum)
equal(first, [2.0])
equal(second, [[2.0]])
equal(hvd.allreduce(tf.constant([1, 2]), average=True), [1, 2])
equal(hvd.allreduce(tf.constant([1, 2]), average=False), [2, 4])

# Variables and objects.
variables = [tf.Variable([float(rank)]), tf.Variable(rank, dtype=tf.int64)]
assert hvd.broadcast_(variables, 1)[0] is variables[0]
equal(variables[0], [1.0])
equal(variables[1], 1)
assert hvd.broadcast_object({"of": rank}, 1, name="object") == {"of": 1}
assert hvd.broadcast_object_fn(root_rank=1)([rank]) == [1]
assert hvd.allgather_object("of" * rank, name="all") == ["", "of"]

# Names: one that is in flight, and ranks that disagree on what it is.
if rank == 0:
    late = threading.Thread(target=hvd.allreduce, args=(tf.ones(2),), kwargs={"name": "twice"})
    late.start()
    while not any("twice" in name for _, name in list(current.engine()._pending)):
        time.sleep(0.001)
    assert "twice" in raised(invalid, hvd.allreduce, tf.ones(2), name="twice")
    hvd.broadcast_object(0)
    late.join()
else:
    hvd.broadcast_object(0)
    hvd.allreduce(tf.ones(2), name="twice")
raised(failed, hvd.allreduce, tf.ones(2), op=[hvd.Sum, hvd.Max][rank], name="two ops")
raised(failed, hvd.allreduce, tf.ones(2), prescale_factor=1.0 + rank, name="two factors")

# Process sets.
only = hvd.add_process_set([1])
assert (only.size(), only.included()) == (1, rank == 1)
if rank == 1:
    equal(hvd.allreduce(tf.ones(2), op=hvd.Sum, process_set=only), [1, 1])
    assert hvd.broadcast_object("own", 1, process_set=only) == "own"
    hvd.barrier(process_set=only)
    raised(ValueError, hvd.broadcast, tf.ones(2), 0, process_set=only)
raised(ValueError, hvd.add_process_set, [0, 1])
raised(ValueError, hvd.add_process_set, [2])
assert hvd.remove_process_set(only) and not hvd.remove_process_set(only)
raised(ValueError, hvd.allreduce, tf.ones(2), process_set=only)
hvd.barrier()

# Tapes.
weight, own = tf.Variable([2.0]), tf.Variable([3.0])
def grads(persistent=False, **options):
    with tf.GradientTape() as tape:
        loss = (rank + 1.0) * tf.reduce_sum(weight) + (rank + 1.0) * tf.reduce_sum(own)
    tape = hvd.DistributedGradientTape(tape, **options)
    tape.register_local_source(own)
    return [each.numpy().tolist() for each in tape.gradient(loss, [weight, own])]
assert grads() == [[1.5], [(rank + 1) / 2]]
assert grads(scale_local_gradients=False) == [[1.5], [rank + 1.0]]
assert grads(op=hvd.Sum) == [[3.0], [(rank + 1) / 2]]
assert grads(gradient_predivide_factor=4.0, num_groups=1)[0] == [1.5]
assert grads(compression=hvd.Compression.fp16, groups=[[weight]])[0] == [1.5]
raised(ValueError, grads, op=hvd.Sum, gradient_predivide_factor=2.0)
table = tf.Variable(tf.zeros([3, 1]))
for dense in (False, True):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [rank, 2]))
    found = hvd.DistributedGradientTape(tape, sparse_as_dense=dense).gradient(loss, table)
    assert isinstance(found, tf.IndexedSlices) != dense
    equal(tf.convert_to_tensor(found), [[0.5], [0.5], [1.0]])
raised(TypeError, hvd.DistributedOptimizer, tf.compat.v1.train.GradientDescentOptimizer(0.1))

# Keras' functions take values and give arrays.
for found, expected in (
    (hk.allreduce([1.0, rank]), [1.0, 0.5]), (hk.allreduce(3.0, op=hk.Sum), 6.0),
    (hk.allreduce([1.0], prescale_factor=2.0, postscale_factor=4.0), [8.0]),
    (hk.allgather([[rank]]), [[0], [1]]), (hk.broadcast([rank], 1), [1]),
    (hk.reducescatter([1.0, 3.0]), [[1.0], [3.0]][rank]),
):
    assert isinstance(found, np.ndarray | np.generic), type(found)
    equal(found, expected)
raised(RuntimeError, hk.broadcast_global_variables, 0)
say("ok")

hvd.shutdown()
assert not hvd.is_initialized()
raised(ValueError, hvd.rank)
hvd.init()
equal(hvd.allreduce(tf.ones(1), op=hvd.Sum), [2.0])
say("again")
"""


def test_the_other_calls_of_the_api_behave_as_horovod_documents(ranks, tmp_path):
    ranks.append(Ranks("tensorflow", tmp_path, CALLS, start=START))
    for each in ("ok", "again"):
        assert [ranks[0].say(rank) for rank in range(2)] == [each, each]
