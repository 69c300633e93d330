"""Folders of sealed checkpoints, on any file system by URI; knows no framework."""
