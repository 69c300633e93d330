"""The demo: trains LeNet on handwritten digits with Spark; installed by the wheel as
hearth.demo."""
