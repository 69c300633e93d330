package com.yahoo.ml.caffe

import java.lang.reflect.InvocationTargetException

import hearth.HearthException
import org.apache.spark.sql.{DataFrame, SparkSession}

/** Finds user-defined sources by the `source_class` of a layer. */
private[caffe] object UserSource {
  private type Source = DataSource[_, _]

  /** Makes the source; returns None if the driver has no class of that name.
    *
    * @throws HearthException if the class is not a valid source
    */
  def make(name: String, conf: Config, layerId: Int, isTrain: Boolean): Option[Source] =
    find(name).map { found =>
      try
        found.getConstructor(classOf[Config], classOf[Int], classOf[Boolean])
          .newInstance(conf, Int.box(layerId), Boolean.box(isTrain))
      catch {
        case _: NoSuchMethodException =>
          throw refused(name, "has no public constructor (Config, Int, Boolean)")
        case _: InstantiationException => throw refused(name, "is abstract")
        case error: InvocationTargetException => throw error.getCause
      }
    }

  /** True if the driver has a class of that name; Python asks if it has no such module. */
  def has(name: String): Boolean = find(name).isDefined

  /** Called by Python: returns the rows of an existing class.
    *
    * @param settings the settings of a Config, as a JSON object by name
    */
  def frame(
      name: String, settings: String, layerId: Int, isTrain: Boolean, spark: SparkSession): DataFrame =
    make(name, Config.of(spark.sparkContext, settings), layerId, isTrain).get.makeFrame(spark)

  private def find(name: String): Option[Class[_ <: Source]] = {
    val loader =
      Option(Thread.currentThread.getContextClassLoader).getOrElse(getClass.getClassLoader)
    val found: Option[Class[_]] =
      try Some(Class.forName(name, false, loader))
      catch {
        case _: ClassNotFoundException => None
        case error: LinkageError => throw refused(name, s"cannot be loaded ($error)")
      }
    found.map { kind =>
      if (!classOf[Source].isAssignableFrom(kind))
        throw refused(name, "is not a subclass of com.yahoo.ml.caffe.DataSource")
      try if (kind.getMethods.exists(_.getName == "nextBatch"))
          throw refused(name, "has a nextBatch(), which nothing calls: the trainers make minibatches " +
            "of its rows, as the layer's transform_param says; remove it, and give rows by makeRDD() " +
            "or makeFrame()")
      catch { case error: LinkageError => throw refused(name, s"cannot be loaded ($error)") }
      kind.asSubclass(classOf[Source])
    }
  }

  private def refused(name: String, why: String) =
    HearthException.refused(s"source_class $name $why")
}
