"""Marks between rows, for programs that fill the queues of a TFManager themselves."""


class Marker:
    """Something in a queue that is not a row."""


class EndPartition(Marker):
    """The rows of a partition end here."""
