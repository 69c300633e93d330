"""CaffeOnSpark's tools: convert data sets to SequenceFiles and DataFrames, captions to numbers.

Each is a module with upstream's name, so `python -m hearth.caffeonspark.tools.Binary2Sequence` (or
`hearth Binary2Sequence`, or the file passed to spark-submit) runs it with upstream's flags.
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
