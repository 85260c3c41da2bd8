# SPDX-License-Identifier: Apache-2.0
"""velo: messages between processes at the speed of one cache line.

`import velo` gives the binding of the library: ports, connections, messages in place, remote
memory, and a queue of objects (package `velo.binding`). The modules of the `velo` command, and the
generators that the build runs, lie beside it; they neither need the binding nor load it.
"""

from __future__ import annotations

import os.path
import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# In a checkout the binding lies in bindings/python, and its compiled part in build/python. As
# pkgutil.extend_path() has it, which takes as long to import as all that a command needs.
_folders = (f"{entry or '.'}/{__name__}" for entry in sys.path)
# Cost: pathlib takes long to import.
__path__ += [path for path in _folders if path not in __path__ and os.path.isdir(path)]  # noqa: PTH112

_COMPILED = ("velo.binding", "velo._turn", "velo._velo")

if TYPE_CHECKING:
    # The command is checked without the binding, which in a checkout is elsewhere.
    from velo.binding import *  # type: ignore[import-not-found, unused-ignore]  # noqa: F403
else:  # A checker that saw this would let every name pass.

    def __getattr__(name: str) -> Any:
        # Cost: the command needs it not.
        from importlib.util import find_spec

        # A module that is not loaded yet: the import system asks here first, and then loads it.
        if name.startswith("_") or find_spec(f"{__name__}.{name}"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        binding = _binding()
        if name not in binding.__all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals().setdefault(name, getattr(binding, name))


def __dir__() -> list[str]:
    return sorted({*globals(), *_binding().__all__})


def _binding() -> Any:
    """Loaded when it is asked for: the command needs neither the library nor cffi."""
    try:
        return import_module("velo.binding")
    except ModuleNotFoundError as error:
        if error.name == "_cffi_backend":
            raise ImportError("the Python binding of velo needs cffi: pip install cffi") from error
        if error.name in _COMPILED:
            raise ImportError(
                f"the Python binding of velo is not installed beside {__file__}"
            ) from error
        raise
