package hearth

import scala.jdk.CollectionConverters._
import scala.util.Try

/** A failure of a run, and its location. The message is one sentence for the user.
  *
  * Unknown fields have their defaults. The cause is Spark's exception if there is one, or Python's
  * stack trace for a bug in Hearth.
  */
final class HearthException private[hearth] (
    message: String, fields: Map[String, Any], cause: Throwable = null)
    extends RuntimeException(message, cause) {

  /** `invalid_argument`, `not_found`, `data_loss`, `unavailable`, `deadline_exceeded`, ... */
  val code: String = text("code", "internal")

  /** The rank of a training, or the id of a cluster's node; -1 if it is not a single one. */
  val rank: Int = number("rank")

  /** `worker:0`, of a cluster. */
  val node: String = text("node", "")
  val host: String = text("host", "")

  /** The net's layer. */
  val layer: String = text("layer", "")
  val iteration: Int = number("iteration")

  /** Whether a process was lost or stopped responding, instead of reporting an error. */
  val lost: Boolean = fields.get("lost").contains(true)

  private def text(name: String, default: String): String =
    fields.get(name).collect { case value: String => value }.getOrElse(default)

  private def number(name: String): Int =
    fields.get(name).collect { case value: Number => value.intValue }.getOrElse(-1)
}

object HearthException {
  // The form in which hearth.native.failure writes it into the text of a task's exception.
  private val Mark = "hearth-failure: "

  /** The failure in an exception that Spark throws while it evaluates a DataFrame. */
  def find(error: Throwable): Option[HearthException] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).flatMap(inText(_, error)).nextOption()

  /** An error of a program's invalid input: its code is `invalid_argument`. */
  def refused(message: String): HearthException = apply("invalid_argument", message)

  /** The same in a Spark task: find() extracts it from Spark's exception. */
  def refusedInTask(message: String): Exception = {
    val fields = Json.write(Map("text" -> message, "code" -> "invalid_argument"))
    new IllegalArgumentException(s"$message\n$Mark$fields")
  }

  private def inText(error: Throwable, whole: Throwable): Option[HearthException] = {
    val text = String.valueOf(error.getMessage)
    val start = text.indexOf(Mark)
    if (start < 0) None else Try(of(text.substring(start + Mark.length), whole)).toOption
  }

  /** From Python's JSON. */
  private[hearth] def of(json: String, cause: Throwable): HearthException = {
    val fields = Json.read(json).asInstanceOf[java.util.Map[String, Any]].asScala.toMap
    new HearthException(String.valueOf(fields("text")), fields, cause)
  }

  private[hearth] def apply(code: String, message: String, lost: Boolean = false) =
    new HearthException(message, Map("code" -> code, "lost" -> lost))
}
