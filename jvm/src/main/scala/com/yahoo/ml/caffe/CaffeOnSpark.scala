package com.yahoo.ml.caffe

import scala.collection.immutable.ListMap
import scala.jdk.CollectionConverters._

import hearth.PythonDriver
import org.apache.spark.SparkContext
import org.apache.spark.ml.linalg.{Vector, Vectors}
import org.apache.spark.sql.{DataFrame, SparkSession, SQLContext}
import org.apache.spark.sql.expressions.UserDefinedFunction
import org.apache.spark.sql.functions.udf

/** Runs Caffe nets in Spark: trains, tests and extracts features on the executors of `sc`.
  *
  * No process is left running after a call. All methods throw hearth.HearthException, whose fields
  * describe the failure and where it occurred.
  */
class CaffeOnSpark(@transient val sc: SparkContext) extends Serializable {
  @transient val sqlContext: SQLContext = SparkSession.builder().getOrCreate().sqlContext

  /** SQL function that returns the first value of a blob. */
  val floatarray2doubleUDF: UserDefinedFunction =
    udf((values: Seq[Float]) => values.head.toDouble)

  /** SQL function that converts a blob to a vector for Spark ML. */
  val floatarray2doublevectorUDF: UserDefinedFunction =
    udf((values: Seq[Float]) => Vectors.dense(values.map(_.toDouble).toArray): Vector)

  /** Trains on `clusterSize` executors and writes the model to `modelPath`. */
  def train(source: DataSource[_, _]): Unit = {
    ask("train", "train" -> source)
    ()
  }

  /** Trains, and validates every `test_interval` iterations. Returns one row per validation, with a
    * column (array<float>) for each output blob of the TEST net.
    */
  def trainWithValidation(
      sourceTrain: DataSource[_, _], sourceValidation: DataSource[_, _]): DataFrame =
    ask("trainWithValidation", "train" -> sourceTrain, "validation" -> sourceValidation).frame

  /** Returns the mean of every output blob of the TEST net over all rows, in the net's order. */
  def test(source: DataSource[_, _]): Map[String, Seq[Double]] = {
    val means = ask("test", "source" -> source).value.asInstanceOf[java.util.List[java.util.List[_]]]
    ListMap.from(means.asScala.map { mean =>
      val values = mean.get(1).asInstanceOf[java.util.List[Number]]
      String.valueOf(mean.get(0)) -> values.asScala.map(_.doubleValue).toSeq
    })
  }

  /** Returns a DataFrame with a row for each row of `source`: `SampleID` (string) and the blobs
    * that the Config names (array<float>). It is evaluated lazily, again for each action.
    * hearth.HearthException.find extracts the failure from an exception that Spark then throws.
    */
  def features(source: DataSource[_, _]): DataFrame =
    ask("features", "source" -> source).frame

  private def ask(name: String, sources: (String, DataSource[_, _])*) = {
    val rows = sources.map { case (_, source) => source.rows }
    val frames = rows.flatten
    val asked = sources.zip(rows).map { case ((key, source), given) =>
      key -> source.asked(given.map(frame => frames.indexWhere(_ eq frame)))
    }
    PythonDriver.call(s"caffe.$name", asked.toMap, frames: _*)
  }
}

object CaffeOnSpark {

  /** Main class for spark-submit, with CaffeOnSpark's flags. */
  def main(args: Array[String]): Unit = PythonDriver.run("CaffeOnSpark", args)
}
