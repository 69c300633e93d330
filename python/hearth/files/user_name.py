"""The name of the user that this process runs as."""

from __future__ import annotations

import getpass
import os


def user_name() -> str:
    """Like getpass.getuser(); the user's number if it has no name, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # OSError: from Python 3.13 on
        return str(os.getuid())
