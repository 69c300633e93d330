"""Nets and solvers in the form and at the sizes of CaffeOnSpark's examples."""

from __future__ import annotations

import re
from pathlib import Path

NETS = Path(__file__).resolve().parents[2] / "examples" / "nets"
_LAYER = re.compile(r"(?ms)^layer \{\n.*?^\}\n")
_SIZES = {
    "caffenet": "channels: 3 height: 227 width: 227",
    "cifar10_quick": "channels: 3 height: 32 width: 32",
    "lenet": "channels: 1 height: 28 width: 28",
}
_MEANS = "mean_value: 104 mean_value: 117 mean_value: 123"


def body_of(name: str) -> str:
    """A net of examples/nets without its inputs."""
    layers = _LAYER.findall((NETS / f"{name}.prototxt").read_text())
    return "".join(layer for layer in layers if 'type: "Input"' not in layer)


def memory_net(
    name: str, kind: str, sources: tuple[str, str], batches: tuple[int, int], transform: str
) -> str:
    """The net with MemoryData layers for TRAIN and TEST, as in lenet_memory, cifar10_quick, ..."""
    size = _SIZES[name]
    layers = [
        f"""layer {{ name: "data" type: "MemoryData" top: "data" top: "label"
  include {{ phase: {phase} }}
  source_class: "com.yahoo.ml.caffe.{kind}"
  memory_data_param {{ source: "{source}" batch_size: {batch} {size} share_in_parallel: false }}
  transform_param {{ {transform} }} }}
"""
        for phase, source, batch in zip(("TRAIN", "TEST"), sources, batches, strict=True)
    ]
    return "".join(layers) + body_of(name)


def lenet_cos_net(sources: tuple[str, str]) -> str:
    """LeNet fed by CoSData layers: raw images, labels as text with three axes of size 1."""
    layers = [
        f"""layer {{ name: "data" type: "CoSData" top: "data" top: "label"
  include {{ phase: {phase} }}
  source_class: "com.yahoo.ml.caffe.DataFrameSource"
  cos_data_param {{ source: "{source}" batch_size: 64
    top {{ name: "data" type: RAW_IMAGE channels: 1 height: 28 width: 28
      transform_param {{ scale: 0.00390625 }} }}
    top {{ name: "label" type: STRING channels: 1 height: 1 width: 1 }} }} }}
"""
        for phase, source in zip(("TRAIN", "TEST"), sources, strict=True)
    ]
    return "".join(layers) + body_of("lenet")


def lrcn_net(source: str, words: int, length: int) -> str:
    """CaffeNet and two LSTM layers of 1,000 units, with stages that select their variants."""
    sentences = "".join(
        f"""    top {{ name: "{name}" type: INT_ARRAY channels: {length} sample_num_axes: 1
      transpose: true }}
"""
        for name in ("cont_sentence", "input_sentence", "target_sentence")
    )
    tops = "".join(
        f' top: "{name}"'
        for name in ("data", "label", "cont_sentence", "input_sentence", "target_sentence")
    )
    text = "".join(
        f"""layer {{ name: "data" type: "CoSData"{tops}
  include {{ {rule} }}
  source_class: "com.yahoo.ml.caffe.DataFrameSource"
  cos_data_param {{ source: "{source}" batch_size: 1
    top {{ name: "data" type: ENCODED_IMAGE_WITH_DIM channels: 3 height: 256 width: 256
      out_channels: 3 out_height: 227 out_width: 227
      transform_param {{ mirror: true crop_size: 227 {_MEANS} }} }}
    top {{ name: "label" type: INT channels: 1 height: 1 width: 1 }}
{sentences} }} }}
"""
        for rule in ("phase: TRAIN not_stage: 'trainval'", "phase: TEST stage: 'test-on-train'")
    )
    text += 'layer { name: "silence" type: "Silence" bottom: "label" }\n'
    return text + _in_two_forms(body_of("caffenet")) + _LSTMS.replace("WORDS", str(words))


def _in_two_forms(caffenet: str) -> str:
    """The convolutional net twice, without losses: frozen in stage freeze-convnet, trainable
    otherwise.
    """
    text = ""
    for layer in _LAYER.findall(caffenet):
        if re.search(r'type: "(SoftmaxWithLoss|Accuracy)"', layer):
            continue
        if "param { lr_mult" not in layer:
            text += layer
            continue
        frozen = re.sub(r"param \{ lr_mult: \d.*?\}", "param { lr_mult: 0 }", layer)
        for form, rule in ((frozen, "include"), (layer, "exclude")):
            text += form[: form.rindex("}")] + f'  {rule} {{ stage: "freeze-convnet" }}\n}}\n'
    return text


_UNIFORM = 'weight_filler { type: "uniform" min: -0.08 max: 0.08 }'
_LSTM = f"recurrent_param {{ num_output: 1000 {_UNIFORM} }}"
_LSTMS = f"""
layer {{ name: "embedding" type: "Embed" bottom: "input_sentence" top: "embedded"
  param {{ lr_mult: 1 }}
  embed_param {{ bias_term: false input_dim: WORDS num_output: 1000 {_UNIFORM} }} }}
layer {{ name: "lstm1" type: "LSTM" bottom: "embedded" bottom: "cont_sentence" bottom: "fc8"
  top: "lstm1" include {{ stage: "unfactored" }} {_LSTM} }}
layer {{ name: "lstm2" type: "LSTM" bottom: "lstm1" bottom: "cont_sentence" top: "lstm2"
  include {{ stage: "unfactored" stage: "2-layer" }} {_LSTM} }}
layer {{ name: "lstm1" type: "LSTM" bottom: "embedded" bottom: "cont_sentence" top: "lstm1"
  include {{ stage: "factored" }} {_LSTM} }}
layer {{ name: "lstm2" type: "LSTM" bottom: "lstm1" bottom: "cont_sentence" bottom: "fc8"
  top: "lstm2" include {{ stage: "factored" }} {_LSTM} }}
layer {{ name: "predict" type: "InnerProduct" bottom: "lstm1" top: "predict"
  exclude {{ stage: "2-layer" }} inner_product_param {{ num_output: WORDS axis: 2 {_UNIFORM} }} }}
layer {{ name: "predict" type: "InnerProduct" bottom: "lstm2" top: "predict"
  include {{ stage: "2-layer" }} inner_product_param {{ num_output: WORDS axis: 2 {_UNIFORM} }} }}
layer {{ name: "cross_entropy_loss" type: "SoftmaxWithLoss" bottom: "predict"
  bottom: "target_sentence" top: "cross_entropy_loss" loss_weight: 20
  loss_param {{ ignore_label: -1 }} softmax_param {{ axis: 2 }} }}
layer {{ name: "accuracy" type: "Accuracy" bottom: "predict" bottom: "target_sentence"
  top: "accuracy" include {{ phase: TEST }} accuracy_param {{ axis: 2 ignore_label: -1 }} }}
"""

LENET_SOLVER = """
test_iter: 2 test_interval: 10 base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005
lr_policy: "inv" gamma: 0.0001 power: 0.75 display: 100 max_iter: 81
snapshot: 5000 snapshot_prefix: "mnist_lenet" solver_mode: GPU random_seed: 1
"""
CIFAR_SOLVER = """
test_iter: 2 test_interval: 20 base_lr: 0.001 momentum: 0.9 weight_decay: 0.004
lr_policy: "fixed" display: 100 max_iter: 40
snapshot: 40 snapshot_format: HDF5 snapshot_prefix: "cifar10_quick" solver_mode: GPU random_seed: 1
"""
REFERENCE_SOLVER = """
test_iter: 0 test_interval: 0 base_lr: 0.01 lr_policy: "step" gamma: 0.1 stepsize: 100000
display: 20 max_iter: 1 momentum: 0.9 weight_decay: 0.0005
snapshot: 10000 snapshot_prefix: "bvlc_reference_caffenet" solver_mode: CPU
snapshot_after_train: false
"""
LRCN_SOLVER = """
train_state: { stage: 'freeze-convnet' stage: 'factored' stage: '2-layer' }
test_iter:0
test_state: { stage: 'freeze-convnet' stage: 'factored' stage: '2-layer' stage: 'test-on-train' }
test_interval: 0 base_lr: 0.01 lr_policy: "step" gamma: 0.5 stepsize: 20000
display: 1 max_iter: 1 momentum: 0.9 weight_decay: 0.0000
snapshot: 5000 snapshot_prefix: "lrcn_coco" solver_mode: CPU random_seed: 1701
average_loss: 100 clip_gradients: 10 snapshot_after_train: false
"""
