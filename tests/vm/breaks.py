# SPDX-License-Identifier: Apache-2.0
"""Break the driver in the ways of driver/selftests/breaks.toml, and see that the tests notice each.

Usage: breaks.py CHECKOUT [NAME...]. As it is, the driver must pass; skipped, by exit code 77, where
guests cannot be had.
"""

import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import guests

BUILD_TIMEOUT_S = 300
GUEST_TIMEOUT_S = 300


def built(checkout: Path, folder: Path, found: dict[str, str] | None) -> Path:
    """The driver with a break in it, or as it is, of a copy of its sources."""
    for name in ("spec", "tools", ".venv"):
        (folder / name).symlink_to(checkout / name)
    shutil.copytree(checkout / "driver", folder / "driver")
    if found:
        path = folder / "driver" / found["file"]
        text = path.read_text(encoding="utf-8")
        if text.count(found["text"]) != 1:
            sys.exit(f"{found['name']}: its text is not once in {found['file']}")
        path.write_text(text.replace(found["text"], found["with"]), encoding="utf-8")
    headers = subprocess.check_output(guests.velo(checkout, "--headers"), text=True).strip()
    out = folder / "out"
    make = ["make", "-s", "-C", str(folder / "driver"), f"KDIR={headers}", f"OUT={out}"]
    subprocess.run(make, check=True, timeout=BUILD_TIMEOUT_S)
    return out / "velo.ko"


def run_program(checkout: Path, driver: Path, name: str, only: str | None) -> str:
    """What a program says in a guest with this driver; `only`: the test to run, else all."""
    program = checkout / "build" / "driver" / "selftests" / name
    words = ["--nodes", "1", "--timeout", str(GUEST_TIMEOUT_S), "--driver", str(driver)]
    done = subprocess.run(
        guests.velo(checkout, *words, "--plain", "--", str(program), *([only] if only else [])),
        text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return done.stdout + f"exit code {done.returncode}\n"


def verdict(
    checkout: Path, found: dict[str, str] | None, program: str, only: str | None
) -> tuple[bool, str]:
    """Is the driver judged as it must be? And what the program said."""
    with tempfile.TemporaryDirectory(prefix="velo-breaks-") as folder:
        said = run_program(checkout, built(checkout, Path(folder), found), program, only)
    # Only that test runs. It may not come to its end: a break may stop the card for good.
    failed = "# FAILED" in said
    if found is None:
        return not failed and said.endswith("exit code 0\n"), said
    return failed, said


def main() -> int:
    checkout, *names = Path(sys.argv[1]).resolve(), *sys.argv[2:]
    listed = tomllib.loads((checkout / "driver/selftests/breaks.toml").read_text())["break"]
    chosen = [found for found in listed if not names or found["name"] in names]
    if len(chosen) < max(1, len(names)):
        sys.exit(f"there is no such break; there are {[found['name'] for found in listed]}")
    guests.prepare(checkout)
    wrong = 0
    tests = [(found.get("program", "calls"), found["by"]) for found in chosen]
    # As it is, the driver passes; if breaks are named, the tests that must notice them.
    as_it_is = {test if names else (test[0], None) for test in tests}
    runs = [
        *((None, *test) for test in sorted(as_it_is, key=str)),
        *((found, *test) for found, test in zip(chosen, tests, strict=True)),
    ]
    for found, program, only in runs:
        good, said = verdict(checkout, found, program, only)
        wrong += not good
        name = f"{found['name']}: {found['why']}" if found else "the driver as it is"
        print(f"{'ok' if good else 'FAILED'} {program} {only or 'whole'}, {name}", flush=True)
        if not good:
            print("\n".join(said.splitlines()[-guests.SHOWN :]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
