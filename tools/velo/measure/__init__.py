# SPDX-License-Identifier: Apache-2.0
"""Measure velo and its peers on this machine."""
