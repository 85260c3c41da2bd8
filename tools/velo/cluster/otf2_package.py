# SPDX-License-Identifier: Apache-2.0
"""Where the Python package of OTF2 comes from."""

import importlib
import sys
from typing import Any

from velo.errors import VeloError

# Debian's python3-otf2: a private environment of Python does not look there.
SYSTEM_PACKAGES = "/usr/lib/python3/dist-packages"


def load_otf2() -> Any:
    """The package otf2 with its reader and its writer, and as `error_type` what they raise."""
    for more in ([], [SYSTEM_PACKAGES]):
        before = list(sys.path)
        sys.path += more
        try:
            otf2 = importlib.import_module("otf2")
            for part in ("reader", "writer"):
                importlib.import_module(f"otf2.{part}")
            otf2.error_type = importlib.import_module("_otf2").Error  # type: ignore[attr-defined]
            return otf2
        except ModuleNotFoundError:
            pass
        finally:
            sys.path[:] = before
    raise VeloError(
        "the Python package otf2 is not installed; 'apt-get install python3-otf2' (Debian) or "
        "'pip install otf2' installs it"
    )
