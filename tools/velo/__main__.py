# SPDX-License-Identifier: Apache-2.0
"""`python -m velo`: the velo command."""

import gc
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - The system chose the interpreter.
    sys.exit(f"velo: Python 3.11 or newer is needed; {sys.executable} is {sys.version.split()[0]}")

# Cost: a tenth of a short command. Modules that load make no garbage, and what is loaded stays.
gc.disable()
from velo import tree  # noqa: E402 - See above.
from velo.cli import main  # noqa: E402

if sys.flags.no_site:
    sys.meta_path.append(tree.Packages)

gc.freeze()
gc.enable()

if __name__ == "__main__":
    sys.exit(main())
