"""`PYTHONPATH=tests python3 -m ci <what>`; the Makefile lists the targets."""

from __future__ import annotations

import sys

# Before anything else of ours is loaded, because older Pythons cannot even read it.
if sys.hexversion < 0x03090000:
    sys.exit(
        "Python 3.9 or newer starts the tooling; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.11"
    )

from ci.cli import main

sys.exit(main(sys.argv[1:]))
