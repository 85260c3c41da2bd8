# SPDX-License-Identifier: Apache-2.0
"""The packed structs of the hardware's packages, for tests: fields to a number and back."""

from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pyslang.driver

ROOT = Path(__file__).resolve().parents[1]
# Each before those that import it. A block that was copied out of the tree, or its tests, has not all.
PACKAGES = [
    "build/rtl/velo_pkg.sv",
    "rtl/htax/rtl/htax_pkg.sv",
    "rtl/common/rtl/velo_secded_pkg.sv",
    "rtl/common/rtl/velo_net_pkg.sv",
    "rtl/node/rtl/velo_host_pkg.sv",
    "rtl/regfile/rtl/velo_regfile_pkg.sv",
    "build/rtl/pcie_pkg.sv",
    "rtl/pcie/rtl/velo_pcie_pkg.sv",
]


@cache
def _compilation() -> Any:
    driver = pyslang.driver.Driver()
    driver.addStandardArgs()
    sources = " ".join(str(ROOT / name) for name in PACKAGES if (ROOT / name).is_file())
    assert driver.parseCommandLine(f"slang {sources}")
    assert driver.processOptions() and driver.parseAllSources()
    return driver.createCompilation()


class Struct:
    """One type, by its name in a package: Struct("velo_regfile_pkg", "link_state_t")."""

    def __init__(self, package: str, name: str):
        self.package, self.name = package, name

    @cached_property
    def fields(self) -> dict[str, tuple[int, int]]:
        """By name, the highest first: the lowest bit, and how many there are."""
        struct = _compilation().getPackage(self.package).find(self.name).targetType.type
        return {
            field.name: (field.bitOffset, field.type.bitWidth) for field in struct.canonicalType
        }

    @cached_property
    def bits(self) -> int:
        return sum(bits for _, bits in self.fields.values())

    def pack(self, **values: int) -> int:
        """Fields that are not named are zero."""
        number = 0
        for name, value in values.items():
            lsb, bits = self.fields[name]
            assert 0 <= value < 1 << bits, name
            number |= value << lsb
        return number

    def unpack(self, port: Any) -> dict[str, int]:
        """The fields of a port of this type."""
        assert len(port) == self.bits
        return self.unpack_bits(int(port.value))

    def unpack_bits(self, value: int) -> dict[str, int]:
        """The fields of a number: of a field that is a struct itself, for example."""
        return {name: value >> lsb & (1 << bits) - 1 for name, (lsb, bits) in self.fields.items()}
