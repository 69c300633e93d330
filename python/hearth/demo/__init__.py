"""The demo: trains LeNet on handwritten digits with Spark."""
