# SPDX-License-Identifier: Apache-2.0
"""Jobs and ports on this machine: run a job and watch it, show ports, clean up after the dead."""
