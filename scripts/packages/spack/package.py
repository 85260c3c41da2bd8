# SPDX-License-Identifier: Apache-2.0
"""A recipe for Spack. In a repository of your own:

  spack repo create site && mkdir -p site/packages/velo && cp package.py site/packages/velo/
  spack repo add site && spack install velo file=/path/of/velo-1.0.0-rc1.tar.gz   # of `make dist`
"""

from spack.package import *


class Velo(CMakePackage):
    """Messages between processes at the speed of one cache line, and MPI over them."""

    license("Apache-2.0")
    # No release is published yet: the tarball of `make dist` stands beside this file, or is named.
    version("1.0.0-rc1", url="file:///velo-1.0.0-rc1.tar.gz", expand=True)

    variant("openmpi", default=True, description="Components for Open MPI 4.1 and 5.0")
    variant("libfabric", default=True, description="Provider for libfabric, ranks on several hosts")

    depends_on("c", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    # The components are built against its internal headers.
    depends_on("openmpi@4.1.0:4.1,5.0.0:5.0 +internal-headers", when="+openmpi")
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
