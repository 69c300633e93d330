"""The name of this process's user."""

from __future__ import annotations

import getpass
import os


def user_name() -> str:
    """Like getpass.getuser(), but returns the id of a user without a name, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # getpass raises OSError since Python 3.13
        return str(os.getuid())
