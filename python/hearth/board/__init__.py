"""The board of a training: figures in event files, on a live page and in a report."""
