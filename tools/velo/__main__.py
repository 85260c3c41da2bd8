# SPDX-License-Identifier: Apache-2.0
"""`python -m velo`: the velo command."""

import sys

from velo.cli import main

if __name__ == "__main__":
    sys.exit(main())
