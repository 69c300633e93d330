"""Markers between rows, for programs that fill the queues of a TFManager themselves."""


class Marker:
    """An element of a queue that is not a row."""


class EndPartition(Marker):
    """Marks the end of a partition's rows in a queue."""
