# SPDX-License-Identifier: Apache-2.0
"""The papers of VELO, EXTOLL and DIMMnet-2 on the simulated hardware: their figures (`velo paper`)
and their method to predict how a program would run on other hardware (`velo predict`)."""
