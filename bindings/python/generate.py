# SPDX-License-Identifier: Apache-2.0
"""Write the C source of the extension module `velo._velo`, from the public headers and calls.h.

The build runs this. cffi turns declarations into a module that works with every Python from 3.11
on (the stable ABI), so that one binary serves them all. The declarations come from the headers
themselves: the compiler checks them once more against the same headers.
"""

import argparse
import contextlib
import re
import sys
from pathlib import Path

HEADERS = ("velo.h", "rma.h", "bcast.h")
# The one structure of the system that the headers use, and what comes from the generated spec.h.
BESIDE = """
struct iovec { void *iov_base; size_t iov_len; };
#define VELO_ADDRESS_VPID_BITS ...
#define VELO_NODES ...
#define VELO_PY_OTHER ...
#define VELO_PY_TAG_SHIFT ...
"""
# A constant that cffi can ask the compiler for: an integer, perhaps in brackets, or another name.
CONSTANT = re.compile(r"#define (VELO_\w+) +(?:\(?-?\d+u?\)?|UINT32_MAX)\s*$")


def declarations(text: str) -> str:
    """What cffi is to know of a header: its types, its calls, and its integer constants."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    text = re.sub(r"^static inline.*?^}", "", text, flags=re.DOTALL | re.MULTILINE)
    text = text.replace("\\\n", " ")
    lines = []
    for line in text.splitlines():
        if constant := CONSTANT.match(line):
            lines.append(f"#define {constant[1]} ...")
        elif not line.startswith("#"):
            lines.append(line.replace("VELO_API ", ""))
    return "\n".join(line for line in lines if line.strip()) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("include", type=Path, help="the folder of velo.h")
    parser.add_argument("-o", dest="output", type=Path, required=True, help="the C source to write")
    args = parser.parse_args()
    try:
        from cffi import FFI
    except ImportError:
        print("generate.py: cffi is missing: pip install cffi", file=sys.stderr)
        return 1
    calls = Path(__file__).with_name("calls.h").read_text(encoding="utf-8")
    ffi = FFI()
    ffi.cdef(BESIDE)
    for name in HEADERS:
        ffi.cdef(declarations((args.include / name).read_text(encoding="utf-8")))
    # Of a function that is written out, everything up to its body.
    ffi.cdef(re.sub(r"^static (.*?)\n{.*?^}", r"\1;", re.sub(r"/\*.*?\*/|^#.*?$", "", calls,
             flags=re.DOTALL | re.MULTILINE), flags=re.DOTALL | re.MULTILINE))  # fmt: skip
    includes = "".join(f"#include <velo/{name}>\n" for name in HEADERS)
    ffi.set_source("velo._velo", includes + calls)
    args.output.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.redirect_stdout(None):
        ffi.emit_c_code(str(args.output))
    args.output.touch()  # cffi leaves a file alone that would stay the same.
    return 0


if __name__ == "__main__":
    sys.exit(main())
