# SPDX-License-Identifier: Apache-2.0
"""Run `velo vm`, and see that the program in the guests did what it should.

Usage: guests.py CHECKOUT [--expect TEXT] [--hpcc RANKS] -- WORD... (of velo vm). Where guests
cannot be had (another processor or system, no mirror) it says why and is skipped, by exit code 77.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mpi"))
import hpcc

SKIPPED = 77
# What `velo vm` says where guests cannot be had; any other failure to prepare them is one.
REASONS = ("this is not Debian", "guests are x86-64", "apt has no source", "apt-get")
PREPARE_TIMEOUT_S = 900
# Options for kernels that are built here.
BUILT = ("--debug", "--races", "--large-pages")
BUILD_TIMEOUT_S = 7200
KERNELS = (*BUILT, "--arm64")
# Newer kernels were configured for a compiler that has the option.
NEWER = "KFLAGS=CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT="
SHOWN = 40
CROSS = "aarch64-linux-gnu-"


def velo(checkout: Path, *words: str) -> list[str]:
    return [str(checkout / "build" / "bin" / "velo"), "vm", *words]


def prepare(checkout: Path, options: Sequence[str] = ()) -> None:
    """Images and driver for guests with these options; the test is skipped where there are none."""
    arm64 = "--arm64" in options
    if arm64 and not shutil.which(f"{CROSS}gcc"):
        print(f"no guests here: there is no {CROSS}gcc")
        sys.exit(SKIPPED)
    ready = subprocess.run(
        velo(checkout, *options, "--prepare"), stderr=subprocess.PIPE, text=True, check=False,
        timeout=BUILD_TIMEOUT_S if set(BUILT) & set(options) else PREPARE_TIMEOUT_S,
    )  # fmt: skip
    if ready.returncode:
        is_here = not any(reason in ready.stderr for reason in REASONS)
        print(f"{'FAILED' if is_here else 'no guests here'}: {ready.stderr.strip()}")
        sys.exit(1 if is_here else SKIPPED)
    headers = subprocess.check_output(velo(checkout, *options, "--headers"), text=True).strip()
    driver_words, selftests_words = [], []
    if "--debug" in options:
        driver_words = ["VELO_KUNIT=y", f"OUT={checkout}/build/driver-debug"]
    if "--races" in options:
        driver_words = [f"OUT={checkout}/build/driver-races"]
    if "--kernel" in options:
        driver_words = [f"OUT={checkout}/build/driver-{options[-1]}", NEWER]
    if arm64:
        folder = f"{checkout}/build/driver-arm64"
        selftests_words = [f"OUT={folder}", f"CC={CROSS}gcc"]
        out = f"OUT={folder}{'-64k' if '--large-pages' in options else ''}"
        driver_words = [out, f"CC={CROSS}gcc", f"KFLAGS=CROSS_COMPILE={CROSS}"]
    for source, words in (
        ("driver", [f"KDIR={headers}", *driver_words]),
        ("driver/selftests", selftests_words),
    ):
        make = ["make", "-s", "-C", str(checkout / source), *words]
        subprocess.run(make, check=True, timeout=PREPARE_TIMEOUT_S)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--expect", help="what the program must print")
    parser.add_argument("--hpcc", metavar="RANKS", type=int, help="hpcc's checks must hold, too")
    parser.add_argument("words", nargs="+")
    args = parser.parse_args()
    options = [option for option in KERNELS if option in args.words]
    if "--kernel" in args.words:
        options += ["--kernel", args.words[args.words.index("--kernel") + 1]]
    prepare(args.checkout, options)
    with tempfile.TemporaryDirectory(prefix="velo-guests-") as name:
        here = Path(name)
        if args.hpcc:
            text = hpcc.problem(hpcc.EXAMPLE.read_text(), args.hpcc, hpcc.ORDER)
            (here / "hpccinf.txt").write_text(text, encoding="utf-8")
        done = subprocess.run(
            velo(args.checkout, "--keep", "kept", *args.words), cwd=here, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        print("\n".join(done.stdout.splitlines()[-SHOWN:]))
        failed = [f"exit code {done.returncode}"] if done.returncode else []
        if args.expect and args.expect not in done.stdout:
            failed.append(f"nowhere is '{args.expect}'")
        if args.hpcc and not failed:
            failed += hpcc.judge((here / "hpccoutf.txt").read_text(encoding="utf-8"))
        for line in failed:
            print("FAILED:", line)
        return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
