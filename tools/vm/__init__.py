# SPDX-License-Identifier: Apache-2.0
"""Virtual machines whose cards are nodes of the simulated cluster."""
