# SPDX-License-Identifier: Apache-2.0
"""Pickles whose large buffers, such as those of numpy arrays, travel beside them."""

import pickle
from typing import Any


def dumps(obj: Any, apart_bytes: int) -> tuple[bytes, list[memoryview]]:
    """The pickle of an object, and its buffers of at least so many bytes, which are not in it."""
    buffers: list[memoryview] = []

    def keep(buffer: pickle.PickleBuffer) -> bool:
        """Take a buffer out of the pickle, or leave it in (True)."""
        try:
            raw = buffer.raw()
        except BufferError:  # It is not contiguous.
            return True
        if raw.nbytes < apart_bytes:
            return True
        buffers.append(raw)
        return False

    return pickle.dumps(obj, 5, buffer_callback=keep), buffers
