#!/usr/bin/env python3
"""Prints ResNet-50 (He et al., CVPR 2016) as prototxt: `python resnet50.py [BATCH] > net.prototxt`.

The stride of a block that halves its image is in the 3x3 convolution, as in torchvision; the
published Caffe model has it in the first 1x1 convolution.
"""

from __future__ import annotations

import sys
from typing import Any

from hearth.caffe import layers as L
from hearth.caffe import params as P
from hearth.caffe.net_spec import NetSpec

# Blocks of each stage; the first convolution of a stage has 64, 128, 256, 512 outputs.
STAGES = [3, 4, 6, 3]


def convolution(bottom: Any, outputs: int, kernel: int, stride: int = 1) -> Any:
    """Convolution without a bias, batch normalization, scale and shift."""
    conv = L.Convolution(
        bottom, num_output=outputs, kernel_size=kernel, stride=stride, pad=kernel // 2,
        bias_term=False, weight_filler={"type": "msra"}, param={"lr_mult": 1, "decay_mult": 1},
    )  # fmt: skip
    norm = L.BatchNorm(conv, param=[{"lr_mult": 0, "decay_mult": 0}] * 3)
    return L.Scale(norm, bias_term=True, param=[{"lr_mult": 1, "decay_mult": 0}] * 2)


def block(bottom: Any, width: int, stride: int, project: bool) -> Any:
    """A bottleneck: 1x1, 3x3 and 1x1 convolutions, added to the identity or a projection."""
    inner = L.ReLU(convolution(bottom, width, 1), in_place=True)
    inner = L.ReLU(convolution(inner, width, 3, stride), in_place=True)
    outer = convolution(inner, 4 * width, 1)
    beside = convolution(bottom, 4 * width, 1, stride) if project else bottom
    return L.ReLU(L.Eltwise(outer, beside, operation=P.Eltwise.SUM), in_place=True)


def resnet50(batch: int = 32, classes: int = 1000) -> str:
    """The net as prototxt: inputs `data`, batch x 3 x 224 x 224, and `label`, batch."""
    net = NetSpec()
    net.data = L.Input(shape={"dim": [batch, 3, 224, 224]})
    net.label = L.Input(shape={"dim": [batch]})
    top = L.ReLU(convolution(net.data, 64, 7, 2), in_place=True)
    top = L.Pooling(top, pool=P.Pooling.MAX, kernel_size=3, stride=2, pad=1,
                    round_mode=P.Pooling.FLOOR)  # fmt: skip
    for stage, blocks in enumerate(STAGES):
        for index in range(blocks):
            stride = 2 if stage > 0 and index == 0 else 1
            top = block(top, 64 << stage, stride, project=index == 0)
    top = L.Pooling(top, pool=P.Pooling.AVE, global_pooling=True)
    net.scores = L.InnerProduct(
        top, num_output=classes, weight_filler={"type": "xavier"},
        param=[{"lr_mult": 1, "decay_mult": 1}, {"lr_mult": 1, "decay_mult": 0}],
    )  # fmt: skip
    net.loss = L.SoftmaxWithLoss(net.scores, net.label)
    return f'name: "ResNet-50"\n{net.to_proto()}'


if __name__ == "__main__":
    print(resnet50(*(int(word) for word in sys.argv[1:2])))
