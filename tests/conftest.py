"""Each pytest process marks the processes it starts, so that tests find only their own;
their JVMs start quickly where `make test` has prepared that, and so do nodes with TensorFlow.
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
# A shell's job in the background ignores it, and so would the programs that tests interrupt.
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
