package hearth

import java.util.concurrent.{CompletableFuture, TimeUnit}
import java.util.concurrent.atomic.AtomicLong

import scala.util.Try

import org.apache.spark.SparkContext
import org.apache.spark.sql.{DataFrame, SparkSession}

/** One call into the Python driver, made in the caller's thread and answered from a Python thread.
  * Python calls its public methods through py4j.
  *
  * @param arguments JSON; a DataFrame in it is its number in `frames`
  * @param session null if there is none yet
  */
final class Request private[hearth] (
    val name: String, val arguments: String, val frames: Array[DataFrame],
    val session: SparkSession) {

  private val context: Option[SparkContext] = Option(session).map(_.sparkContext)
  private val inherited = Request.Inherited.map(key =>
    key -> context.map(_.getLocalProperty(key)).orNull)
  private[hearth] val answer = new CompletableFuture[Request.Answer]

  /** The tag of its Spark jobs. */
  private[hearth] val tag = s"hearth-jvm-${Request.numbers.incrementAndGet}"

  /** Applies the caller's job properties to this thread: group, pool and tags. */
  def begin(): Unit = context.foreach { spark =>
    inherited.foreach { case (key, value) => spark.setLocalProperty(key, value) }
    spark.addJobTag(tag)
  }

  /** Ends it with JSON or a DataFrame. */
  def succeed(json: String, frame: DataFrame): Unit =
    answer.complete(Request.Answer(Json.read(json), frame))

  /** Ends it with a failure's fields as JSON. `trace`: Python's stack trace for a bug, else "". */
  def fail(json: String, trace: String, cause: Throwable): Unit = {
    val shown = if (cause == null && trace.nonEmpty) new RuntimeException(trace) else cause
    answer.completeExceptionally(HearthException.of(json, shown))
  }

  /** Cancels the Spark jobs of this request, including later ones, until Python has answered.
    * Returns at once.
    */
  private[hearth] def cancel(): Unit = context.foreach { spark =>
    val thread = new Thread(() =>
      while (!answer.isDone && !spark.isStopped) {
        cancelJobs()
        Try(answer.get(Request.CancelAgainMillis, TimeUnit.MILLISECONDS))
      }, "hearth-cancel")
    thread.setDaemon(true)
    thread.start()
  }

  /** Cancels its running Spark jobs. */
  private[hearth] def cancelJobs(): Unit = context.foreach { spark =>
    Try(spark.cancelJobsWithTag(tag)) // it may be stopping
  }
}

private[hearth] object Request {
  final case class Answer(value: Object, frame: DataFrame)

  // Properties that a Python thread does not inherit from the caller's thread.
  private val Inherited = Seq(
    "spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel", "spark.job.tags",
    "spark.scheduler.pool")
  private val CancelAgainMillis = 300L
  private val numbers = new AtomicLong
}
