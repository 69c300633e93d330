package programs

import com.yahoo.ml.caffe.{Config, DataSource, ImageDataSource}
import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{Row, SparkSession}

/** The images of the table that the layer names, as CaffeOnSpark's samples. */
class DigitsOfAnRdd(conf: Config, layerId: Int, isTrain: Boolean)
    extends ImageDataSource(conf, layerId, isTrain) {
  override def makeRDD(
      sc: SparkContext): RDD[(String, String, Int, Int, Int, Boolean, Array[Byte])] =
    Tables.rows(layer, "memory_data_param").map { row =>
      val Row(id: String, label: Int, image: Array[Byte]) = (row: @unchecked)
      (id, label.toString, 1, 28, 28, true, image)
    }
}

/** Like DigitsOfAnRdd, for a CoSData layer: a value for each top. */
class PairsOfAnRdd(conf: Config, layerId: Int, isTrain: Boolean)
    extends DataSource[(String, Array[Any]), AnyRef](conf, layerId, isTrain, null) {
  override def makeRDD(sc: SparkContext): RDD[(String, Array[Any])] =
    Tables.rows(layer, "cos_data_param").map(row => (row.getString(0), Array(row(2), row(1))))
}

object Tables {
  def rows(layer: java.util.Map[String, Object], parameter: String): RDD[Row] = {
    val fields = layer.get(parameter).asInstanceOf[java.util.Map[String, Object]]
    val table = SparkSession.builder().getOrCreate().read.parquet(fields.get("source").toString)
    table.select("id", "label", "image").rdd
  }
}

/** Samples of a wrong type. */
class Words(conf: Config, layerId: Int, isTrain: Boolean)
    extends DataSource[String, AnyRef](conf, layerId, isTrain) {
  override def makeRDD(sc: SparkContext): RDD[String] = sc.parallelize(Seq("one", "two"))
}

class MakesNothing(conf: Config, layerId: Int, isTrain: Boolean)
    extends DataSource[String, AnyRef](conf, layerId, isTrain)

class MakesBatches(conf: Config, layerId: Int, isTrain: Boolean)
    extends Words(conf, layerId, isTrain) {
  def nextBatch(sampleIds: Array[String], data: AnyRef): Boolean = data != sampleIds
}

class HasNoConstructor(conf: Config) extends Words(conf, 0, true)

class IsNoSource
