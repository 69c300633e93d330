"""A process of hearth.horovod.run(): one rank, which runs the function it receives."""

from __future__ import annotations

import pickle
import traceback

from hearth.errors import invalid
from hearth.horovod import basics
from hearth.horovod.launcher import is_echo
from hearth.horovod.objects import pickler
from hearth.horovod.rendezvous import launched


def main() -> None:
    """Runs the function, and sends the result to the launcher."""
    launcher = launched()
    if launcher is None:
        raise invalid("this program was not started by hearth.horovod.run()")
    try:
        func, args, kwargs = pickle.loads(launcher.program)
        data = pickler().dumps(func(*args, **kwargs))
        launcher.send({"result": len(data)}, data)
    except BaseException as error:
        text = "".join(traceback.format_exception(error))
        launcher.send({"error": text[-16384:], "is_echo": is_echo(error)})
        raise SystemExit(1) from None
    finally:
        basics.shutdown()


if __name__ == "__main__":
    main()
