"""CaffeOnSpark's tools: convert data sets to SequenceFiles and DataFrames, and captions to numbers.

Each is a module with upstream's name and flags. `python -m
hearth.caffeonspark.tools.Binary2Sequence` or `hearth Binary2Sequence` runs it, or pass the file to
spark-submit.
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
