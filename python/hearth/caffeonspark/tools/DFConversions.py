"""Captions of images as DataFrames: from COCO's files to the input of a net with an LSTM."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hearth.caffeonspark.flags import FlagError
from hearth.caffeonspark.tools.captions import caption, embed
from hearth.caffeonspark.tools.images import read_batches
from hearth.files.uri import whole_uri
from hearth.spark.session import as_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from hearth.caffeonspark.tools.Vocab import Vocab

_CAPTIONS = "id long, height int, width int, file string, url string, caption string"
_IMAGE = "id string, data struct<height:int,width:int,image:binary>, label int"
_SENTENCES = ("input_sentence", "cont_sentence", "target_sentence")
_EMBEDDING = _IMAGE + "".join(f", {name} array<int>" for name in _SENTENCES)


class DFConversions:
    """CaffeOnSpark's conversions of captions. `sc`: a SparkContext or SparkSession."""

    def __init__(self, sc: Any = None):
        self._spark = as_session(sc)

    def Coco2ImageCaptionFile(self, src: str, clusterSize: int = 1) -> DataFrame:
        """The captions of a COCO json file (any URI that Spark reads), in `clusterSize` partitions.

        Columns: id (the caption's, or the image's if the file has no annotations), height and width
        of the image, its file and url, and caption.

        Raises:
            FlagError: the file is not a COCO caption file.
        """
        text = self._spark.read.text(src, wholetext=True).collect()
        try:
            rows = _caption_rows(json.loads(text[0].value if text else ""))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise FlagError(f"{src} is not a file of COCO captions: {reason}") from error
        return self._spark.createDataFrame(rows, _CAPTIONS).repartition(clusterSize, "id")

    def Image2Embedding(self, imageRootFolder: str, imageCaptionDF: DataFrame) -> DataFrame:
        """The images only: columns id, data (height, width and bytes of the file), label (0)."""
        return self._embedded(imageRootFolder, imageCaptionDF, None, 0)

    def ImageCaption2Embedding(
        self, imageRootFolder: str, imageCaptionDF: DataFrame, vocab: Vocab, captionLength: int
    ) -> DataFrame:
        """Image2Embedding()'s columns, and each caption as input_sentence, cont_sentence and
        target_sentence: lists of `captionLength` numbers from captions.embed().

        Raises:
            FlagError: captionLength is less than 2.
        """
        if captionLength < 2:
            raise FlagError(f"-captionLength is {captionLength}; it must be at least 2")
        return self._embedded(imageRootFolder, imageCaptionDF, vocab.ids, captionLength)

    def Embedding2Caption(
        self, embeddingDF: DataFrame, vocab: Vocab, embeddingColumn: str, captionColumn: str
    ) -> DataFrame:
        """Adds a column of captions, converted from a column of lists of numbers."""
        from pyspark.sql.types import StringType, StructField, StructType

        fields = [*embeddingDF.schema.fields, StructField(captionColumn, StringType())]
        say = partial(_said, vocab.words, embeddingColumn, captionColumn)
        return embeddingDF.mapInArrow(say, StructType(fields))

    def _embedded(
        self, root: str, captions: DataFrame, ids: Mapping[str, int] | None, length: int
    ) -> DataFrame:
        schema = _IMAGE if ids is None else _EMBEDDING
        whole = whole_uri(root, self._spark)
        return captions.mapInArrow(partial(_embed, whole, ids, length), schema)


def _caption_rows(coco: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    images = {
        image["id"]: (
            image.get("height"),
            image.get("width"),
            image["file_name"],
            image.get("coco_url", image.get("url", "")),
        )
        for image in coco["images"]
    }
    if "annotations" not in coco:
        return [(int(number), *image, "") for number, image in images.items()]
    notes = coco["annotations"]
    return [(int(note["id"]), *images[note["image_id"]], note["caption"]) for note in notes]


def _embed(
    root: str, ids: Mapping[str, int] | None, length: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in read_batches(root, "file", batches):
        sizes = (batch.column(name).cast(pa.int32()) for name in ("height", "width"))
        parts = [*sizes, batch.column("data")]
        columns = {
            "id": batch.column("id").cast(pa.string()),
            "data": pa.StructArray.from_arrays(parts, names=["height", "width", "image"]),
            "label": pa.array([0] * len(batch), pa.int32()),
        }
        if ids is not None:
            rows = [embed(text or "", ids, length) for text in batch.column("caption").to_pylist()]
            for name, lists in zip(_SENTENCES, zip(*rows, strict=True), strict=True):
                columns[name] = pa.array(lists, pa.list_(pa.int32()))
        yield pa.RecordBatch.from_pydict(columns)


def _said(
    words: list[str], source: str, target: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        said = [caption(ids or (), words) for ids in batch.column(source).to_pylist()]
        columns = [*batch.columns, pa.array(said, pa.string())]
        yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, target])
