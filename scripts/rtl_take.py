#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copy one block and all it needs into a folder of its own, ready for another project.

The folder has the sources, those that spec/ generates among them, in one `rtl` folder; `files.f`,
their order for any tool; `Bender.yml`, a package for Bender; and `velo_BLOCK.core`, one for
FuseSoC. The lists are made from the block's files.f, which stays the one source: rtl/TAKING.md.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = re.compile(r'define VELO_VERSION_TEXT "(\d+\.\d+\.\d+)')

BENDER = """\
# SPDX-License-Identifier: Apache-2.0
package:
  name: velo_{block}
sources:
  - include_dirs:
      - rtl
    files:
{files}
"""

CORE = """\
CAPI=2:
# SPDX-License-Identifier: Apache-2.0
name: "velo:rtl:{block}:{version}"
description: "VELO: {block}"
filesets:
  rtl:
    files:
{files}
    file_type: systemVerilogSource
targets:
  default: &default
    filesets:
      - rtl
  lint:
    <<: *default
    default_tool: verilator
    toplevel: {top}
    tools:
      verilator:
        mode: lint-only
        verilator_options:
          - -Wno-MULTITOP
          - -Wno-fatal
"""


def sources(block: str) -> tuple[list[Path], list[Path]]:
    """The block's files in order, and its headers."""
    listing = subprocess.run(
        [ROOT / "scripts" / "rtl", "files", block], check=True, capture_output=True, text=True
    ).stdout.split()
    files = [ROOT / line for line in listing if not line.startswith("+")]
    folders = [ROOT / line.removeprefix("+incdir+") for line in listing if line.startswith("+")]
    headers = [header for folder in folders for header in sorted(folder.glob("*.svh"))]
    return files, headers


def take(block: str, folder: Path, top: str | None) -> list[str]:
    """Fill the folder; the names of the files in it."""
    files, headers = sources(block)
    names = [path.name for path in [*headers, *files]]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SystemExit(f"rtl take: two files have one name: {', '.join(twice)}")
    target = folder / "rtl"
    target.mkdir(parents=True)
    for path in [*headers, *files]:
        shutil.copyfile(path, target / path.name)
    shutil.copyfile(ROOT / "LICENSES" / "Apache-2.0.txt", folder / "LICENSE")
    listed = [f"rtl/{path.name}" for path in files]
    (folder / "files.f").write_text("\n".join(["+incdir+rtl", *listed]) + "\n")
    (folder / "Bender.yml").write_text(
        BENDER.format(block=block, files="\n".join(f"      - {name}" for name in listed))
    )
    included = [
        f"      - rtl/{path.name}: {{ is_include_file: true, file_type: systemVerilogSource }}"
        for path in headers
    ]
    version = VERSION.search((ROOT / "include" / "velo" / "velo.h").read_text(encoding="utf-8"))
    assert version
    core = CORE.format(
        block=block,
        version=version[1],
        top=top or files[-1].stem,
        files="\n".join([*included, *(f"      - {name}" for name in listed)]),
    )
    (folder / f"velo_{block}.core").write_text(core)
    return names


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], prog="rtl take")
    parser.add_argument("block", help="a folder of rtl/ with a files.f, such as velo or link")
    parser.add_argument("folder", type=Path, help="where to; must not exist, or be empty")
    parser.add_argument("--top", help="where FuseSoC's lint begins (default: the last module)")
    options = parser.parse_args()
    if not (ROOT / "rtl" / options.block / "files.f").exists():
        parser.error(f"there is no rtl/{options.block}/files.f")
    if options.folder.exists() and any(options.folder.iterdir()):
        parser.error(f"{options.folder} is not empty")
    names = take(options.block, options.folder, options.top)
    print(f"rtl take: {len(names)} files of {options.block} in {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
