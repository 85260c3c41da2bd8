# SPDX-License-Identifier: Apache-2.0
"""Debian packages beside the system: found and checked by apt, unpacked into a folder of a cache.

Nothing that is installed changes. apt works on lists and a state of its own below the cache, from
the mirror that this machine's apt has, and checks each package against its signed index. The cache
keeps the packages and their hashes (packages/NAME.SHA256SUMS): what it has needs no network.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from velo import helpers
from velo.errors import VeloError
from vm.progress import say

FETCH_TIMEOUT_S = 600
UNPACK_TIMEOUT_S = 120
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# What a running system never reads.
LEFT_OUT = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./usr/share/info")
MERGED = ("bin", "sbin", "lib", "lib64")


@dataclass(frozen=True, order=True)
class Source:
    """A suite of a mirror."""

    uri: str
    suite: str

    def line(self) -> str:
        """As sources.list has it; Debian's own keys sign each suite."""
        signed = f"[signed-by={KEYRING}] " if KEYRING.is_file() else ""
        return f"deb {signed}{self.uri} {self.suite} main\n"


@dataclass(frozen=True)
class Wanted:
    """Packages that become one folder."""

    name: str
    packages: Sequence[str]
    suites: Sequence[str] = ()
    """Of this machine's mirror, newest last; none: the release that runs here."""
    only: str = ""
    """Of the packages that apt finds, those whose names match; what they depend on stays out."""
    architecture: str = ""
    """By Debian's name; none: that of this machine."""

    def described(self) -> str:
        """What the folder was made from; another text makes it anew."""
        fields = asdict(self)
        if not self.architecture:
            del fields["architecture"]
        return json.dumps(fields, sort_keys=True)


def cache_folder() -> Path:
    """Where all that is fetched and built lies."""
    preset = os.environ.get("VELO_VM_CACHE")
    if preset:
        return Path(preset).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "velo" / "vm"


def codename() -> str:
    """The release of Debian that runs here."""
    with contextlib.suppress(OSError):
        text = Path("/etc/os-release").read_text(encoding="utf-8")
        values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        if values.get("ID") == "debian" and "VERSION_CODENAME" in values:
            return values["VERSION_CODENAME"].strip('"')
    raise VeloError(
        "velo vm makes its guests from Debian's packages, by this machine's own mirror, and this "
        "is not Debian; run it on Debian 12 or newer, or in a container of it"
    )


def sources(suites: Sequence[str]) -> list[Source]:
    """Where the suites are to be had, by what this machine's apt has its own release from."""
    listed = helpers.output(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)\t$(RELEASE)", "Created-By: Packages"],
        60,
    )
    release = codename()
    own = {release, f"{release}-updates", f"{release}-security"}
    fields = {tuple(line.split("\t")) for line in listed.splitlines()}
    known = sorted(Source(*pair) for pair in fields if len(pair) == 2 and pair[1] in own)
    mirrors = [source.uri for source in known if source.suite == release]
    if not mirrors:
        raise VeloError(
            f"apt has no source for {release}, the release that runs here; "
            "see /etc/apt/sources.list.d"
        )
    return [Source(mirrors[0], suite) for suite in suites] or known


def ensure(wanted: Wanted) -> Path:
    """The folder with these packages, unpacked; at once if the cache has it."""
    folder = cache_folder() / wanted.name
    stamp = folder / ".velo-packages"
    with locked(wanted.name):
        if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted.described():
            return folder
        archives = _fetch(wanted)
        say(f"unpacking {wanted.name}: {len(archives)} packages")
        partial = folder.with_name(folder.name + ".partial")
        shutil.rmtree(partial, ignore_errors=True)
        _unpack(archives, partial)
        (partial / stamp.name).write_text(wanted.described(), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    return folder


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Two commands that make the same thing take turns."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f".{name}.lock").open("w")
    except OSError as error:
        raise VeloError(f"cannot write to {folder}: {error.strerror}; set VELO_VM_CACHE") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another velo makes {name}; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(wanted: Wanted) -> list[Path]:
    """The packages' files, each with the hash that apt's signed index gives."""
    folder = cache_folder() / "packages"
    sums = folder / f"{wanted.name}.SHA256SUMS"
    names = _checked(sums, wanted)
    if names:
        return names
    say(f"fetching {wanted.name}: looking up its packages")
    apt = _Apt(wanted)
    chosen = apt.choose()
    size_mb = sum(size for _, _, size, _ in chosen) / 1e6
    say(f"fetching {wanted.name}: {len(chosen)} packages, {size_mb:.0f} MB")
    apt.fetch([name for name, _, _, _ in chosen], folder)
    lines = [f"{sha256}  {file}\n" for _, file, _, sha256 in chosen]
    sums.write_text(f"# {wanted.described()}\n" + "".join(lines), encoding="utf-8")
    if names := _checked(sums, wanted):
        return names
    raise VeloError(f"packages in {folder} are not those that apt's index names; remove them")


def _checked(sums: Path, wanted: Wanted) -> list[Path]:
    """The files that a list of sums names; empty if it is another's, or one differs."""
    if not sums.is_file():
        return []
    head, *lines = sums.read_text(encoding="utf-8").splitlines()
    if head != f"# {wanted.described()}":
        return []
    paths = []
    for line in lines:
        sha256, _, name = line.partition("  ")
        path = sums.parent / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            return []
        paths.append(path)
    return paths


class _Apt:
    """apt with sources and a state of its own, in which nothing is installed."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.state = cache_folder() / "apt" / wanted.name
        for name in ("lists/partial", "archives/partial"):
            (self.state / name).mkdir(parents=True, exist_ok=True)
        (self.state / "status").touch()
        (self.state / "sources.list").write_text(
            "".join(source.line() for source in sources(wanted.suites)), encoding="utf-8"
        )

    def _command(self, *words: str) -> list[str]:
        options = {
            "Dir::State": self.state,
            "Dir::State::status": self.state / "status",
            "Dir::State::lists": self.state / "lists",
            "Dir::Cache": self.state,
            "Dir::Cache::archives": self.state / "archives",
            "Dir::Etc::sourcelist": self.state / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Acquire::ForceHash": "SHA256",
            "Acquire::Languages": "none",
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
            "Acquire::Retries": "3",
            # Else apt's own user could not write below a home.
            "APT::Sandbox::User": "root",
            "APT::Get::AllowUnauthenticated": "false",
        }
        if self.wanted.architecture:
            options["APT::Architecture"] = self.wanted.architecture
            options["APT::Architectures"] = self.wanted.architecture
        return ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items()), *words]

    def choose(self) -> list[tuple[str, str, int, str]]:
        """Name, file, size and hash of each package."""
        helpers.output(self._command("update"), FETCH_TIMEOUT_S)
        install = ["install", "--no-install-recommends", *self._newest(), *self.wanted.packages]
        listed = helpers.output(self._command("--print-uris", *install), UNPACK_TIMEOUT_S)
        chosen = []
        for line in listed.splitlines():
            fields = line.split()
            if len(fields) != 4 or not fields[3].startswith("SHA256:"):
                raise VeloError(f"apt gives no SHA-256 for a package: {line}")
            name = fields[1].partition("_")[0]
            if re.match(self.wanted.only, name):
                sha256 = fields[3].removeprefix("SHA256:")
                chosen.append((name, fields[1], int(fields[2]), sha256))
        return chosen

    def fetch(self, names: Sequence[str], folder: Path) -> None:
        """Downloads the packages of these names into the folder."""
        folder.mkdir(exist_ok=True)
        download = self._command("download", *self._newest(), *names)
        helpers.output(download, FETCH_TIMEOUT_S, cwd=folder)

    def _newest(self) -> list[str]:
        """Packages of backports are taken only where one says so."""
        return [f"--target-release={suite}" for suite in self.wanted.suites[-1:]]


def _unpack(archives: Sequence[Path], folder: Path) -> None:
    """The files of the packages; their scripts do not run."""
    for name in MERGED:
        (folder / "usr" / name).mkdir(parents=True)
        (folder / name).symlink_to(f"usr/{name}")
    left_out = [f"--exclude={path}" for path in LEFT_OUT]
    extract = ["tar", "-x", "--keep-directory-symlink", *left_out, "-C", str(folder)]
    for archive in archives:
        with helpers.running(
            ["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE
        ) as reader:
            helpers.output(extract, UNPACK_TIMEOUT_S, stdin=reader.stdout)
            if reader.wait(UNPACK_TIMEOUT_S):
                raise VeloError(f"dpkg-deb cannot read {archive}")
    # A program of the cache runs with no rights but the caller's, and guests have one user alone.
    for path in folder.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
            path.chmod(stat.S_IMODE(mode) & ~(stat.S_ISUID | stat.S_ISGID))
