package hearth

import java.net.InetAddress
import java.security.SecureRandom
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, ExecutionException}
import java.util.concurrent.{LinkedBlockingQueue, TimeUnit, TimeoutException}

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd}
import org.apache.spark.sql.{DataFrame, SparkSession}
import py4j.ClientServer

/** The Python process that runs the driver's logic: trainings, tests and extractions. It accesses
  * this JVM's Spark sessions and DataFrames through py4j, over an authenticated loopback
  * connection. It always ends when the JVM ends, because its standard input is a pipe from the JVM.
  * Thread-safe.
  */
final class PythonDriver private (python: DriverPython) extends AutoCloseable {
  private val inbox = new LinkedBlockingQueue[Option[Request]]
  private val began = new CompletableFuture[Unit]
  private val pending = ConcurrentHashMap.newKeySet[Request]()
  private val secret = PythonDriver.newSecret()
  @volatile private var closing = false
  private val server = PythonDriver.serve(new Inbox(inbox, began), secret)
  private val process =
    try python.start(server.getJavaServer.getListeningPort, secret)
    catch { case error: Throwable => server.shutdown(); throw error }
  private val hook = new Thread(() => { process.destroyForcibly(); () }, "hearth-python-end")
  Runtime.getRuntime.addShutdownHook(hook)
  process.onExit.thenRun(() => end())

  def isAlive: Boolean = process.isAlive

  /** Returns Python's answer. Waits without a limit, because a training may take days.
    *
    * @throws HearthException if the request fails, or the process cannot be started or has ended
    * @throws InterruptedException if this thread is interrupted; the request's jobs are cancelled
    */
  def call(request: Request): Request.Answer = {
    pending.add(request)
    inbox.put(Some(request))
    if (!process.isAlive) end() // otherwise the request would never be answered
    try {
      awaitBegin()
      request.answer.get()
    } catch {
      case error: ExecutionException => throw PythonDriver.rethrown(error.getCause)
      case error: InterruptedException =>
        request.cancel()
        throw error
    } finally pending.remove(request)
  }

  private def awaitBegin(): Unit =
    try began.get(PythonDriver.BeginSeconds, TimeUnit.SECONDS)
    catch {
      case _: TimeoutException =>
        throw HearthException("deadline_exceeded",
          s"the driver's Python, ${python.program}, has not begun within " +
            s"${PythonDriver.BeginSeconds} s")
    }

  private def end(): Unit = {
    val status = process.waitFor()
    val reason =
      if (began.isDone && !began.isCompletedExceptionally)
        HearthException("unavailable",
          if (closing) "the Spark application has ended"
          else s"the driver's Python process was lost (status $status)",
          lost = !closing)
      else python.earlyEnd(status)
    began.completeExceptionally(reason)
    pending.asScala.foreach { request =>
      request.cancelJobs()
      request.answer.completeExceptionally(reason)
    }
    server.shutdown()
  }

  /** Ends the process and makes pending calls fail. */
  override def close(): Unit = {
    closing = true
    inbox.put(None)
    if (!process.waitFor(PythonDriver.EndSeconds, TimeUnit.SECONDS)) process.destroyForcibly()
    Try(Runtime.getRuntime.removeShutdownHook(hook)) // fails if the JVM is shutting down
    ()
  }
}

/** The queue from which Python takes its requests; take() returns null at the end. */
final class Inbox private[hearth] (
    requests: LinkedBlockingQueue[Option[Request]], began: CompletableFuture[Unit]) {
  def take(): Request = {
    began.complete(())
    requests.take().orNull
  }
}

/** Calls into Python, used by the public classes. Internal. */
object PythonDriver {
  private val BeginSeconds = 120L
  private val EndSeconds = 5L
  private val SecretBytes = 32

  private var current: Option[(SparkContext, PythonDriver)] = None
  private var ofProgram: Option[PythonDriver] = None

  /** Returns Python's answer to the request with that name. Uses the session of `frames`, else the
    * active one. Throws as PythonDriver.call does.
    */
  def call(name: String, arguments: Map[String, Any], frames: DataFrame*): Request.Answer = {
    val session = frames.headOption.map(_.sparkSession).getOrElse(SparkSession.builder().getOrCreate())
    val request = new Request(name, Json.write(arguments), frames.toArray, session)
    of(session.sparkContext).call(request)
  }

  /** Runs a command line in a separate process, which creates its SparkContext.
    *
    * @throws HearthException if the command fails; the message is one line for the user
    */
  def run(program: String, flags: Array[String]): Unit =
    try {
      val driver = new PythonDriver(new DriverPython(new SparkConf().getOption(_)))
      val arguments = Json.write(Map("flags" -> flags))
      synchronized { ofProgram = Some(driver) }
      try driver.call(new Request(s"program.$program", arguments, Array.empty, null))
      finally driver.close()
      ()
    } catch {
      case error: HearthException =>
        if (error.getCause == null) error.setStackTrace(Array.empty) // the message says everything
        throw error
    }

  /** Returns the process of a SparkContext. The process lives as long as the context, because
    * features() is evaluated lazily. If a command line's process has created the context, that
    * process also serves user-defined sources.
    */
  private def of(context: SparkContext): PythonDriver = synchronized {
    ofProgram.filter(_.isAlive).getOrElse(ofContext(context))
  }

  private def ofContext(context: SparkContext): PythonDriver =
    current match {
      case Some((`context`, driver)) if driver.isAlive => driver
      case _ =>
        val driver = new PythonDriver(new DriverPython(context.getConf.getOption(_)))
        context.addSparkListener(new SparkListener {
          override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit =
            new Thread(() => driver.close(), "hearth-python-close").start()
        })
        current = Some((context, driver))
        driver
    }

  private def newSecret(): String = {
    val bytes = new Array[Byte](SecretBytes)
    new SecureRandom().nextBytes(bytes)
    bytes.map(byte => f"$byte%02x").mkString
  }

  /** Starts a server whose threads do not keep the JVM alive. They are daemon threads because a
    * daemon thread starts them.
    */
  private def serve(inbox: Inbox, secret: String): ClientServer = {
    val built = new CompletableFuture[ClientServer]
    val builder = new ClientServer.ClientServerBuilder(inbox)
      .authToken(secret)
      .javaPort(0)
      .javaAddress(InetAddress.getLoopbackAddress)
    val starter = new Thread(() =>
      try built.complete(builder.build()) // build() also starts the server
      catch { case error: Throwable => built.completeExceptionally(error) }, "hearth-python-server")
    starter.setDaemon(true)
    starter.start()
    built.get()
  }

  private def rethrown(error: Throwable): Throwable = error match {
    // Replaces the stack trace by the caller's.
    case known: HearthException => known.fillInStackTrace()
    case other => other
  }
}
