# SPDX-License-Identifier: Apache-2.0
"""The figures of the VELO and EXTOLL papers."""
