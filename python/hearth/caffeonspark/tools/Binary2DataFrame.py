"""Picture files and their labels as a DataFrame, which ImageDataFrame reads."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hearth.caffeonspark.flags import FlagError
from hearth.caffeonspark.interrupts import exit_with
from hearth.caffeonspark.tools.pictures import listed, with_pictures
from hearth.caffeonspark.tools.program import check_new, main
from hearth.files.uri import whole_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Flags that it cannot do without.
NEEDED = ("imageRoot", "labelFile", "output")


def convert(spark: SparkSession, flags: argparse.Namespace) -> str:
    """-imageRoot: folder or URI of the pictures; -labelFile: lines `NAME LABEL ID`, NAME under the
    root, LABEL a number; -output: the DataFrame, in -outputFormat (parquet).

    Its columns: SampleID string, label int, data binary. For a net, select
    `SampleID as id`, `label`, `data` (dataframe_column_select).
    """
    check_new(spark, flags.output_path)
    rows = listed(spark, flags.label_file, 3)
    odd = rows.where("try_cast(label as int) is null").limit(1).collect()
    if odd:
        name, label = odd[0].name, odd[0].label
        raise FlagError(f"-labelFile {flags.label_file}: the label of {name} is no number: {label}")
    pictures = with_pictures(rows, whole_uri(flags.image_root, spark))
    frame = pictures.selectExpr("id as SampleID", "cast(label as int) as label", "data")
    frame.write.format(flags.output_format).save(flags.output_path)
    return f"{rows.count()} pictures written to {flags.output_path} as {flags.output_format}"


if __name__ == "__main__":
    exit_with(main("Binary2DataFrame", convert, NEEDED))
