"""Caffe trainings and predictions as Spark jobs: ranks, their trainer processes, restarts."""
