package com.yahoo.tensorflowonspark

import hearth.PythonDriver
import org.apache.spark.ml.Model
import org.apache.spark.ml.param.{IntParam, Param, ParamMap, ParamValidators}
import org.apache.spark.ml.util.Identifiable
import org.apache.spark.sql.{DataFrame, Dataset, Row, SparkSession}
import org.apache.spark.sql.types.StructType

/** Spark ML stage that applies a TensorFlow SavedModel to each row, in the executors' Python.
  * Throws hearth.HearthException.
  */
class TFModel(override val uid: String) extends Model[TFModel] {
  def this() = this(Identifiable.randomUID("TFModel"))

  val batchSize = new IntParam(this, "batchSize", "rows that are computed at once", ParamValidators.gt(0.0))
  val model = new Param[String](this, "model", "folder of the SavedModel, or a .keras file")
  val tag = new Param[String](this, "tag", "tag of the SavedModel")
  val inputMapping =
    new Param[Map[String, String]](this, "inputMapping", "the input tensor of each column")
  val outputMapping =
    new Param[Map[String, String]](this, "outputMapping", "the column of each output tensor")
  setDefault(batchSize -> 128, tag -> "serve", inputMapping -> Map.empty, outputMapping -> Map.empty)

  def setBatchSize(value: Int): this.type = set(batchSize, value)
  def setModel(value: String): this.type = set(model, value)
  def setTag(value: String): this.type = set(tag, value)
  def setInputMapping(value: Map[String, String]): this.type = set(inputMapping, value)
  def setOutputMapping(value: Map[String, String]): this.type = set(outputMapping, value)
  def getBatchSize: Int = $(batchSize)
  def getModel: String = $(model)
  def getTag: String = $(tag)
  def getInputMapping: Map[String, String] = $(inputMapping)
  def getOutputMapping: Map[String, String] = $(outputMapping)

  /** Returns only the outputs, one column each, evaluated lazily. */
  override def transform(dataset: Dataset[_]): DataFrame = {
    val settings = Map[String, Any](
      "batchSize" -> $(batchSize), "model" -> $(model), "tag" -> $(tag),
      "inputMapping" -> $(inputMapping), "outputMapping" -> $(outputMapping))
    PythonDriver.call("tensorflow.transform", settings, dataset.toDF()).frame
  }

  /** Loads the model in a task to get the names of its outputs. */
  override def transformSchema(schema: StructType): StructType = {
    val none = java.util.Collections.emptyList[Row]
    transform(SparkSession.builder().getOrCreate().createDataFrame(none, schema)).schema
  }

  override def copy(extra: ParamMap): TFModel = defaultCopy(extra)
}
