package hearth

import java.io.File
import java.lang.ProcessBuilder.Redirect

/** Which Python the driver's process is, as Spark itself chooses it, and how it is started. */
private[hearth] final class DriverPython(setting: String => Option[String]) {
  private val executors = setting("spark.pyspark.python")

  val program: String = setting("spark.pyspark.driver.python")
    .orElse(executors)
    .orElse(sys.env.get("PYSPARK_DRIVER_PYTHON"))
    .orElse(sys.env.get("PYSPARK_PYTHON"))
    .getOrElse("python3")

  /** Starts it, to be the client of the gateway at `port`; its output is this process's own.
    *
    * @throws HearthException there is no such program
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

  /** Why it ended before it answered. */
  def earlyEnd(status: Int): HearthException =
    if (status == DriverPython.NoHearth)
      HearthException("not_found",
        s"the driver's Python, $program, has no package hearth: install hearth-spark there, " +
          s"or ${DriverPython.Remedy}")
    else
      HearthException("unavailable",
        s"the driver's Python, $program, ended with status $status before it began: what it " +
          "wrote on standard error says why")

  /** The user's modules, Spark's own Python, and what the environment says. */
  private def path: Seq[String] = {
    val users = setting("spark.submit.pyFiles").toSeq.flatMap(_.split(",")).filter(_.nonEmpty)
    users ++ sparkPython ++ sys.env.get("PYTHONPATH").filter(_.nonEmpty)
  }

  private def sparkPython: Seq[String] =
    sys.env.get("SPARK_HOME").toSeq.flatMap { home =>
      Option(new File(home, "python/lib").listFiles).toSeq.flatten
        .filter(_.getName.endsWith(".zip")).map(_.getPath).sorted
    }
}

private object DriverPython {
  val NoHearth = 98
  val Remedy = "name one that has it by spark.pyspark.driver.python or spark.pyspark.python " +
    "(or PYSPARK_DRIVER_PYTHON, PYSPARK_PYTHON)"

  /** A package that is missing is told by the status: words would have to be guessed at. */
  val Program: String =
    s"""import sys
       |try:
       |    from hearth.jvm import __main__ as hearth_jvm
       |except ModuleNotFoundError as error:
       |    if (error.name or "").partition(".")[0] != "hearth":
       |        raise
       |    sys.exit($NoHearth)
       |sys.exit(hearth_jvm.main())
       |""".stripMargin
}
