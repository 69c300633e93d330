"""`python -m examples.captions`: the job of run.py."""

import sys

from examples.captions import run

if __name__ == "__main__":
    sys.exit(run.main())
