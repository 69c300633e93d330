package com.yahoo.ml.caffe

import scala.jdk.CollectionConverters._

import hearth.HearthException
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, Row, SparkSession}
import org.apache.spark.sql.types.{ArrayType, BinaryType, BooleanType, DataType, FloatType}
import org.apache.spark.sql.types.{IntegerType, StringType, StructType}

/** Converts CaffeOnSpark's samples to rows of a DataFrame with the columns that the layer names. */
private[caffe] object SampleRows {
  private type Layer = java.util.Map[String, Object]

  // Columns of a MemoryData layer, in the order of a sample.
  private val ImageSample = new StructType()
    .add("id", StringType).add("label", StringType)
    .add("channels", IntegerType).add("height", IntegerType).add("width", IntegerType)
    .add("encoded", BooleanType).add("data", BinaryType)

  private val Types = Map[String, DataType](
    "STRING" -> StringType, "INT" -> IntegerType, "FLOAT" -> FloatType,
    "INT_ARRAY" -> ArrayType(IntegerType), "FLOAT_ARRAY" -> ArrayType(FloatType),
    "ENCODED_IMAGE" -> BinaryType, "RAW_IMAGE" -> BinaryType,
    "ENCODED_IMAGE_WITH_DIM" -> new StructType()
      .add("height", IntegerType).add("width", IntegerType).add("image", BinaryType))

  /** Returns the samples as rows. The executors need this jar and the jar of the RDD's class. A
    * sample of a wrong form fails the job with an error that describes the sample.
    */
  def frame(spark: SparkSession, samples: RDD[_], layer: Layer): DataFrame = {
    val where = s"layer '${layer.get("name")}'"
    val any = samples.asInstanceOf[RDD[Any]]
    if (layer.get("type") == "CoSData") {
      val schema = schemaOf(layer)
      val tops = schema.length - 1
      spark.createDataFrame(any.map(values(_, tops, where)), schema)
    } else spark.createDataFrame(any.map(imageRow(_, where)), ImageSample)
  }

  private def schemaOf(layer: Layer): StructType = {
    val parameter = layer.get("cos_data_param").asInstanceOf[Layer]
    val tops = Option(parameter.get("top")).map(_.asInstanceOf[java.util.List[Layer]].asScala)
    tops.toSeq.flatten.foldLeft(new StructType().add("id", StringType)) { (schema, top) =>
      val kind = Option(top.get("type")).fold("STRING")(_.toString)
      schema.add(String.valueOf(top.get("name")), Types(kind))
    }
  }

  private def imageRow(sample: Any, where: String): Row = sample match {
    case sample: Product if sample.productArity == ImageSample.length => Row.fromTuple(sample)
    case other =>
      throw wrong(other, where, "a tuple (id, label, channels, height, width, encoded, bytes)")
  }

  private def values(sample: Any, tops: Int, where: String): Row = sample match {
    case (id, values: Array[_]) if values.length == tops => Row.fromSeq(id +: values.toSeq)
    case other => throw wrong(other, where, s"a pair (id, array of $tops values)")
  }

  private def wrong(sample: Any, where: String, wanted: String): Exception = {
    val kind = Option(sample).fold("null")(_.getClass.getName)
    HearthException.refusedInTask(
      s"makeRDD() of $where gave a $kind where each element is $wanted")
  }
}
