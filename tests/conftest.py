"""Marks the processes that each pytest process starts, so that tests find only their own. Also
makes JVMs and nodes with TensorFlow start quickly if `make test` has prepared that.
"""

import gc
import os
import signal
import uuid
from pathlib import Path

import quick_java

# A pytest-xdist worker has inherited its parent's mark.
if "PYTEST_XDIST_WORKER" in os.environ or "HEARTH_TEST_MARK" not in os.environ:
    os.environ["HEARTH_TEST_MARK"] = str(uuid.uuid4())
# Background jobs of a shell ignore SIGINT, and so would the programs that the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if (java := quick_java.home()) is not None:
    os.environ["JAVA_HOME"] = str(java)
_PATHS = [str(Path(__file__).with_name("quick_nodes")), os.environ.get("PYTHONPATH")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _PATHS))


def pytest_collection_finish() -> None:
    """Excludes all imported objects from garbage collection."""
    gc.collect()
    gc.freeze()
