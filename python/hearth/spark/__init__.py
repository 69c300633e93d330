"""Interface to Spark: sessions, requests of clusters, checks before a job."""
