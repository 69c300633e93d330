package hearth

import java.util.concurrent.{CompletableFuture, TimeUnit}
import java.util.concurrent.atomic.AtomicLong

import scala.util.Try

import org.apache.spark.SparkContext
import org.apache.spark.sql.{DataFrame, SparkSession}

/** One call into the Python driver, made in the caller's thread and answered by a Python thread.
  * Python calls the request's public methods through py4j.
  *
  * @param arguments JSON, in which a DataFrame is represented by its index in `frames`
  * @param session null if there is none yet
  */
final class Request private[hearth] (
    val name: String, val arguments: String, val frames: Array[DataFrame],
    val session: SparkSession) {

  private val context: Option[SparkContext] = Option(session).map(_.sparkContext)
  private val inherited = Request.Inherited.map(key =>
    key -> context.map(_.getLocalProperty(key)).orNull)
  private[hearth] val answer = new CompletableFuture[Request.Answer]

  /** The tag of this request's Spark jobs. */
  private[hearth] val tag = s"hearth-jvm-${Request.numbers.incrementAndGet}"

  /** Applies the caller's job properties to this thread: group, pool and tags. */
  def begin(): Unit = context.foreach { spark =>
    inherited.foreach { case (key, value) => spark.setLocalProperty(key, value) }
    spark.addJobTag(tag)
  }

  /** Completes the request with JSON or a DataFrame. */
  def succeed(json: String, frame: DataFrame): Unit =
    answer.complete(Request.Answer(Json.read(json), frame))

  /** Completes the request with a failure's fields as JSON. `trace` is Python's stack trace if the
    * failure is a bug, else "".
    */
  def fail(json: String, trace: String, cause: Throwable): Unit = {
    val shown = if (cause == null && trace.nonEmpty) new RuntimeException(trace) else cause
    answer.completeExceptionally(HearthException.of(json, shown))
  }

  /** Cancels the running Spark jobs of this request, and those that it still starts, until Python
    * has answered. Returns at once.
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

  /** Cancels the running Spark jobs of this request. */
  private[hearth] def cancelJobs(): Unit = context.foreach { spark =>
    Try(spark.cancelJobsWithTag(tag)) // fails if the context is stopping
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
