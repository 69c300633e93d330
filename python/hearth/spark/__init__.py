"""Spark as the other rooms see it: sessions, what clusters ask of it, checks before a job."""
