# SPDX-License-Identifier: Apache-2.0
"""Refuses the interpreters that the binding does not work in, before a compiled part is loaded.

The package imports this first, however it is reached: `velo.Port`, `velo.binding`, or a queue that
another process has pickled.
"""

import sys

# Such a Python (3.13.5 does) takes modules of the stable ABI for its own, although its objects have
# another shape, and reads them wrong.
if "t" in sys.abiflags:
    raise ImportError(
        "velo does not work in a free-threaded Python, which has no stable ABI: use the "
        "Python with the GIL, and processes in place of threads"
    )

try:
    import velo._turn  # noqa: F401  It finds out where it is loaded, before cffi's module is.
except ImportError as error:
    if "loading in subinterpreters" in str(error):
        raise ImportError(
            "velo works in Python's main interpreter only, not in a sub-interpreter: use "
            "processes, or threads of the main interpreter"
        ) from error
    raise
