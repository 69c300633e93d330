"""CaffeOnSpark's tools: data sets to SequenceFiles and DataFrames, captions to numbers and back.

Each is a module of upstream's name, so `python -m hearth.caffeonspark.tools.Binary2Sequence` (or
`hearth Binary2Sequence`, or the file given to spark-submit) runs it with upstream's flags.
"""

NAMES = (
    "Binary2DataFrame",
    "Binary2Sequence",
    "CocoDataSetConverter",
    "Embedding2Caption",
    "Image2Embedding",
    "LMDB2DataFrame",
    "LMDB2Sequence",
    "Vocab",
)
