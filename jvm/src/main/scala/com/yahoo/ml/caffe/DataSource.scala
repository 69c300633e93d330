package com.yahoo.ml.caffe

import hearth.PythonDriver
import org.apache.spark.sql.DataFrame

/** The rows of a net's data layer. Nothing is read before it is used.
  *
  * The types are those of CaffeOnSpark's samples; rows pass no code of this JVM's here, so they
  * stand for nothing.
  */
final class DataSource[T1, T2] private (
    val conf: Config, val isTrain: Boolean, private[caffe] val rows: Option[DataFrame]) {

  /** For Python, with the number that its DataFrame has there. */
  private[caffe] def asked(frame: Int): Map[String, Any] =
    Map("config" -> conf.asked, "training" -> isTrain, "frame" -> rows.map(_ => frame))
}

object DataSource {

  /** The rows that the TRAIN (or TEST) net's data layer names by `source_class` and `source`.
    *
    * @throws hearth.HearthException no such layer, an unknown `source_class`, no `source`
    */
  def getSource(conf: Config, isTraining: Boolean): DataSource[_, _] =
    checked(new DataSource[Any, Any](conf, isTraining, None))

  /** The same with the rows of `frame` instead of the layer's `source`. */
  def fromDataFrame(conf: Config, frame: DataFrame, isTraining: Boolean): DataSource[_, _] =
    checked(new DataSource[Any, Any](conf, isTraining, Some(frame)))

  private def checked(source: DataSource[_, _]): DataSource[_, _] = {
    PythonDriver.call("caffe.checkSource", Map("source" -> source.asked(0)), source.rows.toSeq: _*)
    source
  }
}
