"""The main job, which a wheel carries as hearth.demo: LeNet learns handwritten digits on Spark."""
