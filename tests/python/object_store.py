"""The object store at the URI in HEARTH_TEST_STORE, which `make test-stores` sets."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable

from hearth.files.library_files import library_system


def object_stores() -> list[str]:
    """Parameters for fixtures: "store" if there is an object store."""
    return ["store"] if "HEARTH_TEST_STORE" in os.environ else []


def new_folder() -> str:
    """A URI in the store for a new folder."""
    return f"{os.environ['HEARTH_TEST_STORE']}/{uuid.uuid4()}"


def put_files(folder: str, files: Iterable[tuple[str, bytes]]) -> None:
    """Makes a folder of the store contain exactly these files; files with the right names stay."""
    from pyarrow.fs import FileSelector

    system, path = library_system(folder)
    system.create_dir(path, recursive=True)
    selector = FileSelector(path, allow_not_found=True, recursive=True)
    infos = [info for info in system.get_file_info(selector) if info.is_file]
    held = {info.path: system.open_input_stream(info.path).read() for info in infos}
    wanted = {f"{path}/{name}": content for name, content in files}
    for gone in held.keys() - wanted.keys():
        system.delete_file(gone)
    for name, content in wanted.items():
        if held.get(name) != content:
            with system.open_output_stream(name) as stream:
                stream.write(content)
