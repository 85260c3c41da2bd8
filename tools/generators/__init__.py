# SPDX-License-Identifier: Apache-2.0
"""Generators that the build runs: C header, SystemVerilog package and man pages."""
