package hearth

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.json.JsonReadFeature
import com.fasterxml.jackson.databind.json.JsonMapper

/** Converts between JSON and the values that are exchanged with Python: strings, numbers,
  * booleans, and sequences and maps of these. Internal.
  */
object Json {
  // Accepts NaN because means may be NaN, which Python writes. Text after the first value is
  // ignored.
  private val mapper =
    JsonMapper.builder().enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS).build()

  def write(value: Any): String = mapper.writeValueAsString(plain(value))

  /** Returns maps and lists of java.util. */
  def read(text: String): Object = mapper.readValue(text, classOf[Object])

  private def plain(value: Any): Any = value match {
    case map: Map[_, _] => map.map { case (key, item) => key.toString -> plain(item) }.asJava
    case items: Array[_] => items.toSeq.map(plain).asJava
    case items: Iterable[_] => items.map(plain).toSeq.asJava
    case Some(item) => plain(item)
    case None => null
    case other => other
  }
}
