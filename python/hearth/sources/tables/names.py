"""Names and locations of tables in Spark's catalogs."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import quote

from hearth.errors import invalid

_NAME = re.compile(r"(\w|-)+(\.(\w|-)+){0,2}")


def is_name(uri: str) -> bool:
    """Whether `uri` is a name (table, schema.table or catalog.schema.table), not a path or URI."""
    return _NAME.fullmatch(uri) is not None and not os.path.exists(uri)


def location_of(uri: str, system: str, spark: Any) -> str:
    """Converts a table's name to its folder; returns a path or URI unchanged.

    Args:
        uri: a path, a URI or a name.
        system: the expected provider.
        spark: the driver's session, if any.

    Raises:
        ValueError: there is no such table, or it has another provider.
    """
    if not is_name(uri):
        return uri
    if spark is None:
        raise invalid(f"{uri} is neither a folder nor, without a Spark session, a table's name")
    known = described(quoted(uri), spark)
    if known.get("Provider", "").lower() != system:
        found = known.get("Provider") or "another kind"
        raise invalid(f"table {uri} is a {found} table, not {system}: read the table with Spark")
    return known["Location"]


def quoted(name: str) -> str:
    """Quotes the name for SQL."""
    return ".".join(f"`{part}`" for part in name.split("."))


def described(name: str, spark: Any, partition: str = "") -> dict[str, str]:
    """The result of DESCRIBE EXTENDED for a table or partition: Type, Provider, Location and
    others.

    Args:
        name: the table's name, quoted for SQL.
        partition: the partition in SQL, such as PARTITION (day='1').

    Raises:
        ValueError: there is no such table or partition.
    """
    try:
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {name} {partition}").collect()
    except Exception as error:
        said = str(error).partition("\n")[0]
        named = name.replace("`", "")
        raise invalid(f"Spark has no table {named}: {said}") from error
    found: dict[str, str] = {}
    below = False  # skip the columns, which may have any name
    for row in rows:
        below = below or row[0].startswith("# Detailed")
        if below:
            found.setdefault(row[0], row[1])
    if "Location" in found:
        found["Location"] = uri_of(found["Location"])
    return found


def uri_of(location: str) -> str:
    """Converts a location of Hadoop's Path to a URI of hearth.files, in which local paths are
    percent-encoded.
    """
    local = location.removeprefix("file://").removeprefix("file:")
    return location if local == location else f"file:{quote(local)}"
