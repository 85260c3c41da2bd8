# SPDX-License-Identifier: Apache-2.0
"""MPI programs over the MPIs of this machine."""
