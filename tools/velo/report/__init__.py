# SPDX-License-Identifier: Apache-2.0
"""Pages, tables and plots of results."""
