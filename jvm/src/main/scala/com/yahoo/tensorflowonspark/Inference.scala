package com.yahoo.tensorflowonspark

import hearth.PythonDriver

/** spark-submit's main class: applies a SavedModel to TFRecord files and writes JSON lines. */
object Inference {
  def main(args: Array[String]): Unit = PythonDriver.run("Inference", args)
}
