package com.yahoo.ml.caffe

import hearth.{HearthException, PythonDriver}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}

/** The rows of a net's data layer, read lazily.
  *
  * A user-defined class, which a layer names by `source_class`, has a public constructor (Config, Int,
  * Boolean) and overrides makeRDD or makeFrame. They are called on the driver, once for each training,
  * test or extraction. Spark may compute the rows more than once, for example after a restart: they
  * must be the same each time, in any order. The trainers make the minibatches, so there is no
  * `nextBatch` as in CaffeOnSpark.
  *
  * @tparam T1 an element of makeRDD
  * @tparam T2 not used
  * @param layerId the layer's index in conf.netParam
  * @param STOP_MARK not used
  */
abstract class DataSource[T1, T2](
    val conf: Config, val layerId: Int, val isTrain: Boolean, val STOP_MARK: T1)
    extends Serializable {

  def this(conf: Config, layerId: Int, isTrain: Boolean) =
    this(conf, layerId, isTrain, null.asInstanceOf[T1])

  /** The samples in CaffeOnSpark's form: (id, label, channels, height, width, encoded, bytes) for a
    * MemoryData layer, (id, values) with a value per top for a CoSData layer.
    */
  def makeRDD(sc: SparkContext): RDD[T1] =
    throw HearthException.refused(
      s"source_class ${getClass.getName} overrides neither makeRDD() nor makeFrame()")

  /** The rows with a column for each top of a CoSData layer, by the name in `cos_data_param`; for a
    * MemoryData layer `data` and `label`, and may have `channels`, `height`, `width` and `encoded`. A
    * column `id` names the rows.
    */
  def makeFrame(spark: SparkSession): DataFrame =
    SampleRows.frame(spark, makeRDD(spark.sparkContext), layer)

  /** The layer of the net's prototxt, by field. */
  def layer: java.util.Map[String, Object] =
    conf.netParam.get("layer").asInstanceOf[java.util.List[java.util.Map[String, Object]]].get(layerId)

  /** The rows, if they are not those that the layer names. */
  private[caffe] def rows: Option[DataFrame] = Some(makeFrame(SparkSession.builder().getOrCreate()))

  /** For Python, with the number of its DataFrame there, if any. */
  private[caffe] final def asked(frame: Option[Int]): Map[String, Any] =
    Map("config" -> conf.asked, "training" -> isTrain, "frame" -> frame)
}

object DataSource {

  /** The rows that the TRAIN (or TEST) net's data layer names by `source_class` and `source`: an
    * object of that class, if it is user-defined.
    *
    * @throws hearth.HearthException no such layer, an unknown `source_class`, no `source`
    */
  def getSource(conf: Config, isTraining: Boolean): DataSource[_, _] = {
    val (layerId, named) = fedLayer(conf, isTraining)
    UserSource.make(named, conf, layerId, isTraining)
      .getOrElse(checked(new Declared(conf, layerId, isTraining, None)))
  }

  /** The same with the rows of `frame` instead of the layer's `source`. */
  def fromDataFrame(conf: Config, frame: DataFrame, isTraining: Boolean): DataSource[_, _] =
    checked(new Declared(conf, fedLayer(conf, isTraining)._1, isTraining, Some(frame)))

  /** A source with the rows of a DataFrame or of the files that the layer names. */
  private final class Declared(
      conf: Config, layerId: Int, isTrain: Boolean,
      @transient private[caffe] override val rows: Option[DataFrame])
      extends DataSource[Any, Any](conf, layerId, isTrain)

  /** Index and `source_class`. */
  private def fedLayer(conf: Config, isTraining: Boolean): (Int, String) = {
    val asked = Map[String, Any]("config" -> conf.asked, "training" -> isTraining)
    val layer = PythonDriver.call("caffe.fedLayer", asked).value.asInstanceOf[java.util.List[Object]]
    (layer.get(0).asInstanceOf[Number].intValue, String.valueOf(layer.get(1)))
  }

  private def checked(source: DataSource[_, _]): DataSource[_, _] = {
    val asked = source.asked(source.rows.map(_ => 0))
    PythonDriver.call("caffe.checkSource", Map("source" -> asked), source.rows.toSeq: _*)
    source
  }
}

/** A user-defined source of images: makeRDD returns (id, label, channels, height, width, encoded,
  * bytes).
  */
abstract class ImageDataSource(conf: Config, layerId: Int, isTrain: Boolean)
    extends DataSource[(String, String, Int, Int, Int, Boolean, Array[Byte]), AnyRef](
      conf, layerId, isTrain)
