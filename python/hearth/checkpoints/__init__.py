"""Folders of sealed checkpoints on any file system, independent of the framework."""
