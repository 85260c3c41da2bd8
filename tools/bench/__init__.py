# SPDX-License-Identifier: Apache-2.0
"""`velo bench`: velo beside its peers, which it installs and compiles in a checkout."""
