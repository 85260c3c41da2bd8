# SPDX-License-Identifier: Apache-2.0
"""Memory of the library, lent as memoryviews that end."""

from velo._lease import Lease


class Lent:
    """A memoryview of the library's memory, and its end.

    `memoryview.release()` does not reach slices that were made of the view. The lease below counts
    them: the memory goes back only when nobody can see it any more.
    """

    __slots__ = ("_lease", "view")

    def __init__(self, owner: object, address: int, len_bytes: int, *, readonly: bool) -> None:
        self._lease = Lease(owner, address, len_bytes, readonly)
        self.view = memoryview(self._lease)

    def end(self) -> None:
        """Take the view back. BufferError while a slice or an array of it is alive."""
        self.view.release()  # An array of the view itself shows up here, a slice below.
        try:
            self._lease.end()
        except BufferError:
            self.view = memoryview(self._lease)
            raise
