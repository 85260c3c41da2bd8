# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F405
"""A recipe for Spack. In the folder that has the tarball of `make dist`:

spack repo create site && mkdir -p site/packages/velo && cp .../spack/package.py site/packages/velo/
spack repo add site && spack install --no-checksum velo
"""

import os

from spack.package import *  # noqa: F403


class Velo(CMakePackage):
    """Messages between processes at the speed of one cache line, and MPI over them."""

    license("Apache-2.0")
    # No release is published yet: Spack takes the tarball from the folder that it is started in.
    manual_download = True
    version("1.0.0-rc1", url=f"file://{os.getcwd()}/velo-1.0.0-rc1.tar.gz")  # noqa: PTH109

    variant("openmpi", default=True, description="Components for Open MPI 4.1 and 5.0")
    variant("libfabric", default=True, description="Provider for libfabric, ranks on several hosts")

    depends_on("c", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    # The components need its internal headers (configure --with-devel-headers); an Open MPI 5
    # without them is served by the provider.
    depends_on("openmpi@4.1.0:4.1,5.0.0:5.0", when="+openmpi")
    depends_on("libfabric@1.15:2", when="+libfabric")
    depends_on("openssl", when="+libfabric")
    depends_on("pkgconfig", type="build", when="+libfabric")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define("VELO_BUILD_TESTS", False),
            self.define("VELO_BUILD_EXAMPLES", False),
            self.define("VELO_BUILD_PYTHON", False),
            self.define_from_variant("VELO_BUILD_MPI", "openmpi"),
            self.define_from_variant("VELO_BUILD_LIBFABRIC", "libfabric"),
        ]
        if self.spec.satisfies("+openmpi"):
            args.append(self.define("VELO_OPENMPI", self.spec["openmpi"].prefix))
        return args

    def test_version(self):
        """The command runs and says its version."""
        Executable(self.prefix.bin.velo)("--version")
