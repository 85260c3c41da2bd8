# SPDX-License-Identifier: Apache-2.0
"""What `velo vm` says while it works; a program's own output goes elsewhere."""

import sys


def say(text: str) -> None:
    """A line to people."""
    print(f"velo vm: {text}", file=sys.stderr, flush=True)
