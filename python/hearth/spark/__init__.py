"""The interface to Spark: sessions, what clusters request of Spark, checks before a job."""
