# SPDX-License-Identifier: Apache-2.0
"""Results of measurements: samples, records, their arithmetic, and the targets they are held to."""
