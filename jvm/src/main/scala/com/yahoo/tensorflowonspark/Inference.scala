package com.yahoo.tensorflowonspark

import hearth.PythonDriver

/** Main class for spark-submit: applies a SavedModel to TFRecord files and writes JSON lines. */
object Inference {
  def main(args: Array[String]): Unit = PythonDriver.run("Inference", args)
}
