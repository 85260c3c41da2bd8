# SPDX-License-Identifier: Apache-2.0
"""The simulated cluster: describe it, run programs on it, see what they did, predict from it."""
