# SPDX-License-Identifier: Apache-2.0
from typing import Any

# By cffi: the calls of the headers, and those of calls.h.
ffi: Any
lib: Any
