"""Displays rows and nets in notebooks: CaffeOnSpark's display functions."""

from __future__ import annotations

import html
import struct
import tempfile
import zlib
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hearth.tools.draw_net import read_net, to_dot, write_image

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["get_image", "get_np_array", "image_tag", "show_captions", "show_df", "show_network"]

_KINDS = {b"\x89PNG": "png", b"\xff\xd8": "jpeg", b"GIF8": "gif"}


class Html(str):
    """HTML that a notebook displays as a cell's result, like IPython's class."""

    @property
    def data(self) -> str:
        """The text itself."""
        return str(self)

    def _repr_html_(self) -> str:
        return str(self)


def get_np_array(row: Any) -> np.ndarray:
    """The gray image in `data` of a row with `height` and `width`."""
    return np.frombuffer(row.data, np.uint8).reshape((row.height, row.width))


def image_tag(np_array: np.ndarray) -> str:
    """A gray image (height, width) of bytes as an HTML element."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    height, width = np_array.shape
    lines = b"".join(b"\0" + line.tobytes() for line in np_array.astype("uint8"))  # 0: no filter
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return get_image(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(kind, data) for kind, data in chunks))


def get_image(image: Any) -> str:
    """An image file's bytes, which may be Spark's array<byte>, as an HTML element."""
    if isinstance(image, list):
        data = bytes(byte & 0xFF for byte in image)
    else:
        data = bytes(image)
    kind = next((kind for head, kind in _KINDS.items() if data.startswith(head)), "svg+xml")
    return f"<img src='data:image/{kind};base64,{b64encode(data).decode()}' />"


def show_df(df: DataFrame, nrows: int = 10) -> Html:
    """The first rows as a table: id, label and the image in `data`, as pixels or a file."""
    rows = [(row.id, row.label, _image_tag(row)) for row in df.take(nrows)]
    return _table(("Index", "Label", "Image"), rows)


def show_captions(df: DataFrame, nrows: int = 10) -> Html:
    """The first rows as a table: id, the image file in `data.image`, and `prediction`."""
    rows = [(row.id, row.prediction, get_image(row.data.image)) for row in df.take(nrows)]
    return _table(("Image Id", "Prediction", "Image"), rows)


def show_network(input_net_proto_file: str, rankdir: str = "LR") -> Html:
    """The net of a prototxt file as an image; `rankdir`: LR, TB, BT or RL.

    Raises:
        FileNotFoundError: the file does not exist, or Graphviz is not installed.
        ValueError: the file is not a net.
    """
    dot = to_dot(read_net(Path(input_net_proto_file).read_text(encoding="utf-8")), rankdir)
    with tempfile.TemporaryDirectory(prefix="hearth-net-") as folder:
        path = Path(folder) / "net.svg"
        write_image(dot, str(path))
        return Html(f"<body>{get_image(path.read_bytes())}</body>")


def _image_tag(row: Any) -> str:
    data = bytes(row.data)
    is_file = any(data.startswith(head) for head in _KINDS)
    return get_image(data) if is_file else image_tag(get_np_array(row))


def _table(heads: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Html:
    """An HTML table; each row ends with an image's element."""
    lines = ["<tr>" + "".join(f"<th>{head}</th>" for head in heads) + "</tr>"]
    for *texts, image in rows:
        cells = [*(html.escape(str(text)) for text in texts), image]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return Html("<table>" + "".join(lines) + "</table>")
