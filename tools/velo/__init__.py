# SPDX-License-Identifier: Apache-2.0
"""The `velo` command, and the generators that the build runs."""
