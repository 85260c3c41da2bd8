# SPDX-License-Identifier: Apache-2.0
"""velo's queue beside the others that Python programs use between processes."""
