"""`hearth draw`: content and DOT source of the image."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from program import run

from hearth.tools import draw_net

NET = """name: "net"
layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  data_param { batch_size: 64 } }
layer { name: "c" type: "Convolution" bottom: "data" top: "c"
  param { lr_mult: 1 } param { lr_mult: 2 }
  convolution_param { num_output: 20 kernel_h: 3 kernel_w: 5 stride: 2 } }
layer { name: "r" type: "ReLU" bottom: "c" top: "c" }
layer { name: "p" type: "Pooling" bottom: "c" top: "p"
  pooling_param { pool: AVE global_pooling: true } }
layer { name: "acc\\"uracy" type: "Accuracy" bottom: "p" bottom: "label" top: "a"
  include { phase: TEST } }
"""


def nodes(dot: str, shape: str) -> list[str]:
    return re.findall(rf'label="((?:[^"\\]|\\.)*)", shape={shape}', dot)


def test_layers_are_boxes_and_blobs_octagons() -> None:
    dot = draw_net.to_dot(draw_net.read_net(NET))
    assert nodes(dot, "octagon") == ["data", "label", "c", "p", "a"]
    assert nodes(dot, "box") == [
        r"d\n(Data)",
        r"c\n(Convolution)\nkernel 3x5 stride 2 pad 0",
        r"r\n(ReLU)",
        r"p\n(AVE Pooling)\nglobal",
        r"acc\"uracy\n(Accuracy)",
    ]


def test_edges_run_from_bottoms_over_layers_to_tops() -> None:
    dot = draw_net.to_dot(draw_net.read_net(NET))
    edges = re.findall(r"  (\w+) -> (\w+)(?: \[label=\"(.*)\"\])?;", dot)
    assert ("layer_0", "blob_0", "batch 64") in edges
    assert ("blob_0", "layer_1", "") in edges
    assert ("layer_1", "blob_2", "20") in edges
    # An in-place layer has edges from and to its blob.
    assert ("blob_2", "layer_2", "") in edges
    assert ("layer_2", "blob_2", "") in edges


def test_a_phase_excludes_layers_of_the_other() -> None:
    names = {
        phase: [layer["name"] for layer in draw_net.read_net(NET, phase)["layer"]]
        for phase in draw_net.PHASES
    }
    assert names["TRAIN"] == ["d", "c", "r", "p"]
    assert names["TEST"] == ["c", "r", "p", 'acc"uracy']
    assert names["ALL"] == ["d", "c", "r", "p", 'acc"uracy']


def test_old_nets_are_drawn_too() -> None:
    net = draw_net.read_net('layers { name: "c" type: RELU bottom: "x" top: "c" }')
    assert nodes(draw_net.to_dot(net), "box") == [r"c\n(ReLU)"]


def test_multipliers_and_direction_are_on_request() -> None:
    net = draw_net.read_net(NET)
    assert "lr mult" not in draw_net.to_dot(net)
    upright = draw_net.to_dot(net, rankdir="TB", display_lr=True)
    assert "rankdir=TB" in upright
    assert "c (Convolution) kernel 3x5 stride 2 pad 0 lr mult 1, 2" in upright


def test_the_program_writes_an_image(tmp_path: Path) -> None:
    (tmp_path / "net.prototxt").write_text(NET)
    said = run("draw", "net.prototxt", "net.svg", "-rankdir", "TB", cwd=tmp_path)
    assert "Drawing net to net.svg" in said
    svg = ElementTree.parse(tmp_path / "net.svg")
    texts = [node.text for node in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert "label" in texts
    assert any("Convolution" in (text or "") for text in texts)
    run("draw", "net.prototxt", "net.png", cwd=tmp_path)
    assert (tmp_path / "net.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("net", "image", "said"),
    [
        ("none.prototxt", "net.svg", "none.prototxt"),
        ("bad.prototxt", "net.svg", "did you mean"),
        ("net.prototxt", "net.mp3", "net.mp3"),
        ("net.prototxt", "no/folder/net.svg", "no/folder/net.svg"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, net: str, image: str, said: str) -> None:
    (tmp_path / "net.prototxt").write_text(NET)
    (tmp_path / "bad.prototxt").write_text('layer { nmae: "a" }')
    error = run("draw", net, image, cwd=tmp_path, status=1)
    assert said in error
    assert len(error.strip().splitlines()) == 1


def test_without_graphviz_the_error_names_the_alternative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    dot = draw_net.to_dot(draw_net.read_net(NET))
    with pytest.raises(FileNotFoundError, match="apt-get install graphviz"):
        draw_net.write_image(dot, str(tmp_path / "net.svg"))
    draw_net.write_image(dot, str(tmp_path / "net.dot"))
    assert (tmp_path / "net.dot").read_text() == dot
