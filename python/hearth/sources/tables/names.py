"""Names of tables in Spark's catalogs."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import quote

from hearth.errors import invalid

_NAME = re.compile(r"(\w|-)+(\.(\w|-)+){0,2}")


def is_name(uri: str) -> bool:
    """Whether it is the name of a table (table, schema.table, catalog.schema.table), rather than a
    path or URI."""
    return _NAME.fullmatch(uri) is not None and not os.path.exists(uri)


def location_of(uri: str, system: str, spark: Any) -> str:
    """The folder of a table that is given by its name; a path or URI as it is.

    Args:
        uri: a path, a URI or a name.
        system: the provider that Spark's catalog must have for it.
        spark: the driver's session; None: there is none.

    Raises:
        ValueError: there is no such table, or it is of another system.
    """
    if not is_name(uri):
        return uri
    if spark is None:
        raise invalid(f"{uri} is neither a folder nor, without a Spark session, a table's name")
    known = described(quoted(uri), spark)
    if known.get("Provider", "").lower() != system:
        found = known.get("Provider") or "another kind"
        raise invalid(f"the table {uri} is of {found}, not of {system}: let Spark read it")
    return known["Location"]


def quoted(name: str) -> str:
    """The name as SQL has it."""
    return ".".join(f"`{part}`" for part in name.split("."))


def described(name: str, spark: Any, partition: str = "") -> dict[str, str]:
    """What the catalog has of a table, or of a partition of it, by the names that DESCRIBE gives:
    Type, Provider, Location and others.

    Args:
        name: as SQL has it.
        partition: as SQL has it: PARTITION (day='1').

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
    below = False  # the columns, which may have any name
    for row in rows:
        below = below or row[0].startswith("# Detailed")
        if below:
            found.setdefault(row[0], row[1])
    if "Location" in found:
        found["Location"] = uri_of(found["Location"])
    return found


def uri_of(location: str) -> str:
    """A location as Hadoop's Path writes it, where nothing is encoded, as a URI of hearth.files:
    those of local files are decoded there."""
    local = location.removeprefix("file://").removeprefix("file:")
    return location if local == location else f"file:{quote(local)}"
