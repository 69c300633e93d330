package com.yahoo.tensorflowonspark

import hearth.PythonDriver
import org.apache.spark.SparkContext
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types.{BinaryType, StructType}

/** Reads TFRecord files of tf.train.Example as DataFrames and writes DataFrames as such files. */
object DFUtil {

  /** Returns the rows of a folder of TFRecord files. Fields in `schemaHint` get the types given
    * there, others the types that saveAsTFRecords has recorded or, if it has recorded none, the
    * types in the first example.
    */
  def loadTFRecords(inputDir: String, schemaHint: StructType = new StructType)(
      implicit @annotation.unused sc: SparkContext): DataFrame = {
    val binary = schemaHint.filter(_.dataType == BinaryType).map(_.name)
    val arguments = Map[String, Any]("folder" -> inputDir, "binary" -> binary)
    val frame = PythonDriver.call("tensorflow.load", arguments).frame
    val hinted = schemaHint.map(field => field.name -> field.dataType).toMap
    frame.select(frame.schema.toSeq.map { field =>
      hinted.get(field.name).fold(col(s"`${field.name}`"))(kind =>
        col(s"`${field.name}`").cast(kind).as(field.name))
    }: _*)
  }

  /** Writes the rows to a new folder, with one file per partition. */
  def saveAsTFRecords(df: DataFrame, outputDir: String): Unit = {
    PythonDriver.call("tensorflow.save", Map("folder" -> outputDir), df)
    ()
  }
}
