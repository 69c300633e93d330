package com.yahoo.ml.caffe

import scala.jdk.CollectionConverters._

import hearth.{Json, PythonDriver}
import org.apache.spark.SparkContext

/** The settings of one run, read from CaffeOnSpark's flags and the prototxts that they name.
  *
  * Each setting has the same name as in CaffeOnSpark. The settings of CaffeOnSpark have members;
  * get() and set() accept all settings. All methods throw HearthException for an invalid flag,
  * value or prototxt.
  */
class Config(@transient val sc: SparkContext, args: Array[String]) extends Serializable {
  private val flags = Option(args).map(_.toSeq)
  private var changes = Vector.empty[(String, Any)]
  check()

  def this(sc: SparkContext) = this(sc, null)

  /** Returns a setting: a string, number, boolean or java.util.List, or a java.util.Map for a
    * prototxt.
    */
  def get(name: String): Any = synchronized(ask(name))

  /** Sets a setting and returns this Config. */
  def set(name: String, value: Any): Config = synchronized {
    val before = changes
    changes = before.filterNot(_._1 == name) :+ (name -> value)
    try check()
    catch { case error: Throwable => changes = before; throw error }
    this
  }

  /** The Config in the form in which it is sent to Python. */
  private[caffe] def asked: Map[String, Any] = synchronized {
    Map("flags" -> flags, "changes" -> changes.map { case (name, value) => Seq(name, value) })
  }

  private def check(): Unit = { ask(""); () }

  private def ask(name: String): Any =
    PythonDriver.call("caffe.get", Map("config" -> asked, "name" -> name)).value

  private def text(name: String): String = String.valueOf(get(name))
  private def number(name: String): Int = get(name).asInstanceOf[Number].intValue
  private def switch(name: String): Boolean = get(name).asInstanceOf[Boolean]

  def protoFile: String = text("protoFile")
  def protoFile_=(value: String): Unit = change("protoFile", value)
  def isTraining: Boolean = switch("isTraining")
  def isTraining_=(value: Boolean): Unit = change("isTraining", value)
  def isTest: Boolean = switch("isTest")
  def isTest_=(value: Boolean): Unit = change("isTest", value)
  def isFeature: Boolean = switch("isFeature")
  def isFeature_=(value: Boolean): Unit = change("isFeature", value)
  def features: Array[String] = get("features") match {
    case names: java.util.List[_] => names.asScala.map(String.valueOf(_: Any)).toArray
    case _ => Array.empty
  }
  def features_=(value: Array[String]): Unit = change("features", value)
  def label: String = text("label")
  def label_=(value: String): Unit = change("label", value)
  def modelPath: String = text("modelPath")
  def modelPath_=(value: String): Unit = change("modelPath", value)
  def outputPath: String = text("outputPath")
  def outputPath_=(value: String): Unit = change("outputPath", value)
  def outputFormat: String = text("outputFormat")
  def outputFormat_=(value: String): Unit = change("outputFormat", value)
  def devices: Int = number("devices")
  def devices_=(value: Int): Unit = change("devices", value)
  def isRddPersistent: Boolean = switch("isRddPersistent")
  def isRddPersistent_=(value: Boolean): Unit = change("isRddPersistent", value)
  def snapshotStateFile: String = text("snapshotStateFile")
  def snapshotStateFile_=(value: String): Unit = change("snapshotStateFile", value)
  def snapshotModelFile: String = text("snapshotModelFile")
  def snapshotModelFile_=(value: String): Unit = change("snapshotModelFile", value)
  def resize: Boolean = switch("resize")
  def resize_=(value: Boolean): Unit = change("resize", value)

  /** `ethernet` or `infiniband`. */
  def connection: String = text("connection")
  def connection_=(value: String): Unit = change("connection", value)
  def clusterSize: Int = number("clusterSize")
  def clusterSize_=(value: Int): Unit = change("clusterSize", value)
  def lmdb_partitions: Int = number("lmdb_partitions")
  def lmdb_partitions_=(value: Int): Unit = change("lmdb_partitions", value)
  def transform_thread_per_device: Int = number("transform_thread_per_device")
  def transform_thread_per_device_=(value: Int): Unit =
    change("transform_thread_per_device", value)

  /** Indices in netParam of the layers that are fed by rows; -1 if there is none. */
  def train_data_layer_id: Int = number("train_data_layer_id")
  def test_data_layer_id: Int = number("test_data_layer_id")

  /** The parsed prototxts, as maps from field names to values. */
  def solverParameter: java.util.Map[String, Object] = parsed("solverParameter")
  def netParam: java.util.Map[String, Object] = parsed("netParam")

  private def parsed(name: String) = get(name).asInstanceOf[java.util.Map[String, Object]]
  private def change(name: String, value: Any): Unit = { set(name, value); () }
}

private[caffe] object Config {

  /** Makes a Config from settings that Python sends, as a JSON object by name. */
  def of(sc: SparkContext, settings: String): Config = {
    val config = new Config(sc)
    val changes = Json.read(settings).asInstanceOf[java.util.Map[String, Object]]
    config.changes = changes.asScala.toVector
    config
  }
}
