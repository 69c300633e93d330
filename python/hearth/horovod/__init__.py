"""Horovod's API on Hearth's collective: programs for Horovod run after changing an import.

    import hearth.horovod.torch as hvd            # instead of horovod.torch
    import hearth.horovod.tensorflow as hvd       # ... horovod.tensorflow
    import hearth.horovod.keras as hvd            # ... horovod.keras
    import hearth.horovod.spark                   # ... horovod.spark

run() starts ranks on this machine. docs/horovod_api.md lists each call. Importing this package
loads no framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hearth import on_demand
from hearth.horovod import paths

if TYPE_CHECKING:
    from hearth.horovod.errors import HorovodInternalError as HorovodInternalError
    from hearth.horovod.errors import HostsUpdatedInterrupt as HostsUpdatedInterrupt
    from hearth.horovod.launcher import run as run
    from hearth.horovod.process_sets import ProcessSet as ProcessSet
    from hearth.horovod.process_sets import add_process_set as add_process_set
    from hearth.horovod.process_sets import global_process_set as global_process_set
    from hearth.horovod.process_sets import remove_process_set as remove_process_set

_HOMES = {
    ".launcher": "run",
    ".errors": "HorovodInternalError HostsUpdatedInterrupt",
    ".process_sets": "ProcessSet add_process_set remove_process_set global_process_set",
}
paths.install()
if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_demand(__name__, _HOMES)
