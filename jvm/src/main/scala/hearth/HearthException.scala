package hearth

import scala.jdk.CollectionConverters._
import scala.util.Try

/** A failure of a run, and where it occurred. The message is one sentence for the user.
  *
  * Unknown fields have default values. The cause is Spark's exception if there is one, or Python's
  * stack trace in the case of a bug in Hearth.
  */
final class HearthException private[hearth] (
    message: String, fields: Map[String, Any], cause: Throwable = null)
    extends RuntimeException(message, cause) {

  /** `invalid_argument`, `not_found`, `data_loss`, `unavailable`, `deadline_exceeded`, ... */
  val code: String = text("code", "internal")

  /** The rank of a training, or the id of a cluster's node; -1 if several or none have failed. */
  val rank: Int = number("rank")

  /** The node of a cluster, for example `worker:0`. */
  val node: String = text("node", "")
  val host: String = text("host", "")

  /** The layer in which the failure occurred. */
  val layer: String = text("layer", "")
  val iteration: Int = number("iteration")

  /** True if a process was lost or stopped responding instead of reporting an error. */
  val lost: Boolean = fields.get("lost").contains(true)

  private def text(name: String, default: String): String =
    fields.get(name).collect { case value: String => value }.getOrElse(default)

  private def number(name: String): Int =
    fields.get(name).collect { case value: Number => value.intValue }.getOrElse(-1)
}

object HearthException {
  // Prefix of the failure's JSON, which hearth.native.failure writes into the text of a task's
  // exception.
  private val Mark = "hearth-failure: "

  /** Extracts the failure from an exception that Spark throws while it evaluates a DataFrame. */
  def find(error: Throwable): Option[HearthException] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).flatMap(inText(_, error)).nextOption()

  /** An error for invalid input of a program, with the code `invalid_argument`. */
  def refused(message: String): HearthException = apply("invalid_argument", message)

  /** Like refused(), for use in a Spark task; find() extracts it from Spark's exception. */
  def refusedInTask(message: String): Exception = {
    val fields = Json.write(Map("text" -> message, "code" -> "invalid_argument"))
    new IllegalArgumentException(s"$message\n$Mark$fields")
  }

  private def inText(error: Throwable, whole: Throwable): Option[HearthException] = {
    val text = String.valueOf(error.getMessage)
    val start = text.indexOf(Mark)
    if (start < 0) None else Try(of(text.substring(start + Mark.length), whole)).toOption
  }

  /** Converts a failure that Python sends as JSON. */
  private[hearth] def of(json: String, cause: Throwable): HearthException = {
    val fields = Json.read(json).asInstanceOf[java.util.Map[String, Any]].asScala.toMap
    new HearthException(String.valueOf(fields("text")), fields, cause)
  }

  private[hearth] def apply(code: String, message: String, lost: Boolean = false) =
    new HearthException(message, Map("code" -> code, "lost" -> lost))
}
