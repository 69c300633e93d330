package hearth

import java.io.File
import java.lang.ProcessBuilder.Redirect

/** Chooses the Python interpreter for the driver's process, as Spark does, and starts it. */
private[hearth] final class DriverPython(settings: String => Option[String]) {
  private val executors = setting("spark.pyspark.python")

  val program: String = setting("spark.pyspark.driver.python")
    .orElse(executors)
    .orElse(variable("PYSPARK_DRIVER_PYTHON"))
    .orElse(variable("PYSPARK_PYTHON"))
    .getOrElse("python3")

  /** Starts the interpreter as the client of the gateway at `port`. It inherits this process's
    *output.
    *
    * @throws HearthException if the interpreter does not exist
    */
  def start(port: Int, secret: String): Process = {
    val builder = new ProcessBuilder(program, "-c", DriverPython.Program)
    val environment = builder.environment
    environment.put("PYSPARK_GATEWAY_PORT", port.toString)
    environment.put("PYSPARK_GATEWAY_SECRET", secret)
    environment.put("PYSPARK_PIN_THREAD", "true")
    environment.put("PYTHONUNBUFFERED", "1")
    environment.put("PYTHONPATH", path.mkString(File.pathSeparator))
    executors.foreach(environment.put("PYSPARK_PYTHON", _))
    builder.redirectOutput(Redirect.INHERIT).redirectError(Redirect.INHERIT)
    try builder.start()
    catch {
      case error: java.io.IOException =>
        throw HearthException("not_found",
          s"the driver's Python cannot be started (${error.getMessage}): ${DriverPython.Remedy}")
    }
  }

  /** The error of an interpreter that has ended before it connected. */
  def earlyEnd(status: Int): HearthException =
    DriverPython.Missing.get(status) match {
      case Some((name, remedy)) =>
        HearthException("not_found",
          s"the driver's Python, $program, has no package $name: $remedy, or ${DriverPython.Remedy}")
      case None =>
        HearthException("unavailable",
          s"the driver's Python, $program, ended with status $status before it began: what it " +
            "wrote on standard error says why")
    }

  /** The interpreter's module path: the user's modules, Spark's Python files, and PYTHONPATH. */
  private def path: Seq[String] = {
    val users = setting("spark.submit.pyFiles").toSeq.flatMap(_.split(","))
    users.map(_.stripPrefix("file:")).filter(_.nonEmpty) ++ sparkPython ++ variable("PYTHONPATH")
  }

  private def sparkPython: Seq[String] =
    variable("SPARK_HOME").toSeq.flatMap { home =>
      Option(new File(home, "python/lib").listFiles).toSeq.flatten
        .filter(_.getName.endsWith(".zip")).map(_.getPath).sorted
    }

  private def setting(name: String) = settings(name).filter(_.nonEmpty)
  private def variable(name: String) = sys.env.get(name).filter(_.nonEmpty)
}

private object DriverPython {
  val Remedy = "name one that has it by spark.pyspark.driver.python or spark.pyspark.python " +
    "(or PYSPARK_DRIVER_PYTHON, PYSPARK_PYTHON)"

  /** Required packages, by the exit status of a process that does not find the package. */
  val Missing = Map(
    98 -> ("hearth", "install hearth-spark there"),
    97 -> ("pyspark", "set SPARK_HOME, or install pyspark there in the version of this Spark"))

  val Program: String =
    """import sys
      |try:
      |    from hearth.jvm import __main__ as hearth_jvm
      |    status = hearth_jvm.main()
      |except ModuleNotFoundError as error:
      |    name = (error.name or "").partition(".")[0]
      |    if name not in ("hearth", "py4j", "pyspark"):
      |        raise
      |    status = 98 if name == "hearth" else 97
      |sys.exit(status)
      |""".stripMargin
}
