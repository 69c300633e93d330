package programs

import com.yahoo.ml.caffe.{CaffeOnSpark, Config, DataSource}
import com.yahoo.tensorflowonspark.{DFUtil, TFModel}
import hearth.HearthException
import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.types.StructType

/** The program of tests/spark/test_jvm.py, which reads its RESULT lines and kills processes on
  *request.
  *
  * Arguments: a short solver, its model, an endless solver, a solver that is wrong, the net's table,
  * a SavedModel, a folder for TFRecord files, the solver of a net that names DigitsOfAnRdd, and
  * solvers, separated by commas, whose nets name an invalid source.
  */
object DigitsInScala {
  def main(args: Array[String]): Unit = {
    val Array(solver, model, endless, wrong, table, saved, records, own, none) =
      (args: @unchecked)
    val sc = new SparkContext(new SparkConf().setAppName("digits in Scala"))
    val cos = new CaffeOnSpark(sc)
    val flags = Array("-model", model, "-clusterSize", "2", "-devices", "1")
    val conf = new Config(sc, Array("-conf", solver, "-features", "ip1", "-label", "label") ++ flags)

    say("settings", s"${conf.clusterSize} ${conf.modelPath} ${conf.features.mkString(",")} " +
      conf.solverParameter.get("max_iter"))
    conf.label = ""
    conf.set("label", "label")
    say("group", group(sc) { trainAndJoin(cos, conf, table) })

    say("tensorflow", tensorflow(sc, saved, records))

    val owns = new Config(sc, Array("-conf", own, "-features", "ip1") ++ flags)
    say("own", ownSource(cos, owns.set("modelPath", s"$model.own")))
    none.split(",").foreach { net =>
      val conf = new Config(sc, Array("-conf", net, "-features", "ip1") ++ flags)
      say("refused", failure(cos.features(DataSource.getSource(conf, false)).count()))
    }

    say("wrong", failure(new Config(sc, Array("-conf", wrong) ++ flags)))
    say("kept", failure(conf.devices = 0) + s"; still ${conf.devices}")

    val long = new Config(sc, Array("-conf", endless) ++ flags).set("maxRestarts", 0)
    say("kill", "a trainer")
    say("killed", failure(cos.train(DataSource.getSource(long, true))))
    say("interrupted", interrupted(sc, cos.train(DataSource.getSource(long, true))))
    say("kill", "the JVM")
    cos.train(DataSource.getSource(long, true))
  }

  private def trainAndJoin(cos: CaffeOnSpark, conf: Config, table: String): Unit = {
    val validations = cos.trainWithValidation(
      DataSource.getSource(conf, true), DataSource.getSource(conf, false))
    say("validations", s"${validations.columns.mkString(",")} ${validations.count()}")
    val means = cos.test(DataSource.getSource(conf, false))
    say("means", means.map { case (name, values) => s"$name=${values.head}" }.mkString(" "))

    val features = cos.features(DataSource.getSource(conf, false))
    val label = cos.floatarray2doubleUDF(col("label")).as("label")
    val vector = cos.floatarray2doublevectorUDF(col("ip1")).as("vector")
    features.select(col("SampleID"), label, vector).createOrReplaceTempView("features")
    val spark = SparkSession.builder().getOrCreate()
    spark.read.parquet(table).createOrReplaceTempView("rows")
    val joined = spark.sql(
      "select count(*), sum(cast(f.label = r.label as int)) from features f join rows r on SampleID = id")
    say("joined", joined.head().mkString(" "))
    say("schema", features.schema.fields.map(field => s"${field.name}:${field.dataType.sql}").mkString(" "))
  }

  /** Trains and tests with a user-defined source that returns an RDD. */
  private def ownSource(cos: CaffeOnSpark, conf: Config): String = {
    cos.train(DataSource.getSource(conf, true))
    val held = DataSource.getSource(conf, false)
    s"${held.getClass.getSimpleName} ${cos.features(held).count()} ${cos.test(held)("accuracy").head}"
  }

  /** Writes TFRecord files, reads them, and applies a SavedModel. */
  private def tensorflow(sc: SparkContext, saved: String, records: String): String = {
    implicit val context: SparkContext = sc
    val spark = SparkSession.builder().getOrCreate()
    DFUtil.saveAsTFRecords(spark.sql("select cast(id as float) as n from range(3)"), records)
    val rows = DFUtil.loadTFRecords(records, new StructType().add("n", "double"))
    val model = new TFModel().setModel(saved).setInputMapping(Map("n" -> "x"))
      .setOutputMapping(Map("doubled" -> "twice"))
    val made = model.transform(rows)
    val types = Seq(rows.schema, model.transformSchema(rows.schema)).map(_.simpleString)
    s"${types.mkString(" ")} ${made.collect().map(_.getFloat(0)).sorted.mkString(",")}"
  }

  /** Returns the number of Spark jobs that `work` runs in the caller's job group. */
  private def group(sc: SparkContext)(work: => Unit): String = {
    sc.setJobGroup("digits", "as the caller calls it")
    work
    sc.clearJobGroup()
    sc.statusTracker.getJobIdsForGroup("digits").length.toString
  }

  /** Returns the fields of the exception that `work` throws. */
  private def failure(work: => Any): String =
    try s"none, but $work"
    catch {
      case error: Exception =>
        val e = HearthException.find(error).getOrElse(error.asInstanceOf[HearthException])
        s"code=${e.code} rank=${e.rank} lost=${e.lost} host=${e.host.nonEmpty} ${e.getMessage}"
    }

  /** Runs `work` in a thread that is interrupted during a Spark job; returns the name of the
    * exception.
    */
  private def interrupted(sc: SparkContext, work: => Unit): String = {
    var end = "none"
    val thread = new Thread(() =>
      try work
      catch { case error: Throwable => end = error.getClass.getSimpleName })
    thread.start()
    while (sc.statusTracker.getActiveStageIds().isEmpty && thread.isAlive) Thread.sleep(20)
    thread.interrupt()
    thread.join()
    while (sc.statusTracker.getActiveJobIds().nonEmpty) Thread.sleep(20)
    end
  }

  private def say(name: String, text: String): Unit = println(s"RESULT $name: $text")
}
