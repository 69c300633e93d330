"""Each process of pytest marks what it starts, so that its tests find their own processes alone."""

import os
import uuid

# A worker of pytest-xdist has inherited the mark of the process above it.
if "PYTEST_XDIST_WORKER" in os.environ or "HEARTH_TEST_MARK" not in os.environ:
    os.environ["HEARTH_TEST_MARK"] = str(uuid.uuid4())
