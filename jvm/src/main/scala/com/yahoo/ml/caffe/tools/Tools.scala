package com.yahoo.ml.caffe.tools

import hearth.PythonDriver

/** Main class for spark-submit that runs one of CaffeOnSpark's converters, with the converter's
  * flags.
  */
sealed abstract class Tool(name: String) {
  def main(args: Array[String]): Unit = PythonDriver.run(name, args)
}

object Binary2DataFrame extends Tool("Binary2DataFrame")
object Binary2Sequence extends Tool("Binary2Sequence")
object CocoDataSetConverter extends Tool("CocoDataSetConverter")
object Embedding2Caption extends Tool("Embedding2Caption")
object Image2Embedding extends Tool("Image2Embedding")
object LMDB2DataFrame extends Tool("LMDB2DataFrame")
object LMDB2Sequence extends Tool("LMDB2Sequence")
object Vocab extends Tool("Vocab")
