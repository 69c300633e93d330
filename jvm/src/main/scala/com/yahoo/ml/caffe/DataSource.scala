package com.yahoo.ml.caffe

import hearth.{HearthException, PythonDriver}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame, SparkSession}

/** The rows of a net's data layer, read lazily.
  *
  * A user-defined class, which a layer names by `source_class`, has a public constructor (Config,
  * Int, Boolean) and overrides makeRDD or makeFrame. These are called on the driver, once for each
  * training, test or extraction. Spark may compute the rows more than once, for example after a
  * restart, so the rows must be the same each time; their order may differ. Unlike in CaffeOnSpark,
  * there is no `nextBatch`, because the trainers make the minibatches.
  *
  * @tparam T1 type of the elements of makeRDD
  * @tparam T2 not used
  * @param layerId the layer's index in conf.netParam
  * @param STOP_MARK not used
  */
abstract class DataSource[T1, T2](
    val conf: Config, val layerId: Int, val isTrain: Boolean, val STOP_MARK: T1)
    extends Serializable {

  def this(conf: Config, layerId: Int, isTrain: Boolean) =
    this(conf, layerId, isTrain, null.asInstanceOf[T1])

  /** Returns the samples in CaffeOnSpark's form: (id, label, channels, height, width, encoded,
    * bytes) for a MemoryData layer, or (id, values) with one value per top for a CoSData layer.
    */
  def makeRDD(sc: SparkContext): RDD[T1] =
    throw HearthException.refused(
      s"source_class ${getClass.getName} overrides neither makeRDD() nor makeFrame()")

  /** Returns the rows. For a CoSData layer, they have a column for each top, named as in
    * `cos_data_param`. For a MemoryData layer, they have the columns `data` and `label`, and
    * optionally `channels`, `height`, `width` and `encoded`. A column `id` identifies the rows.
    */
  def makeFrame(spark: SparkSession): DataFrame =
    SampleRows.frame(spark, makeRDD(spark.sparkContext), layer)

  /** The layer in the net's prototxt, as a map from field names to values. */
  def layer: java.util.Map[String, Object] =
    conf.netParam.get("layer").asInstanceOf[java.util.List[java.util.Map[String, Object]]].get(layerId)

  /** The rows of this source; None if they are the rows that the layer's `source` names. */
  private[caffe] def rows: Option[DataFrame] = Some(makeFrame(SparkSession.builder().getOrCreate()))

  /** The source in the form in which it is sent to Python; `frame` is the index of its DataFrame in
    * the request, if it has one.
    */
  private[caffe] final def asked(frame: Option[Int]): Map[String, Any] =
    Map("config" -> conf.asked, "training" -> isTrain, "frame" -> frame)
}

object DataSource {

  /** Returns the source that the data layer of the TRAIN (or TEST) net names by `source_class` and
    * `source`. If the class is user-defined, returns an object of that class.
    *
    * @throws hearth.HearthException if there is no such layer, the `source_class` is unknown, or
    * `source` is missing
    */
  def getSource(conf: Config, isTraining: Boolean): DataSource[_, _] = {
    val (layerId, named) = fedLayer(conf, isTraining)
    UserSource.make(named, conf, layerId, isTraining)
      .getOrElse(checked(new Declared(conf, layerId, isTraining, None)))
  }

  /** Like getSource, with the rows of `frame` instead of the layer's `source`. */
  def fromDataFrame(conf: Config, frame: DataFrame, isTraining: Boolean): DataSource[_, _] =
    checked(new Declared(conf, fedLayer(conf, isTraining)._1, isTraining, Some(frame)))

  /** A source with the rows of a DataFrame or of the files that the layer names. */
  private final class Declared(
      conf: Config, layerId: Int, isTrain: Boolean,
      @transient private[caffe] override val rows: Option[DataFrame])
      extends DataSource[Any, Any](conf, layerId, isTrain)

  /** The index and the `source_class` of the layer that is fed by rows. */
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
