# SPDX-License-Identifier: Apache-2.0
"""The hosts of a job: which they are, how they are reached, and whether velo is on each."""

import itertools
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from velo import tree
from velo.errors import UsageError, VeloError

LISTS = {"H", "host"}
FILES = {"hostfile", "machinefile", "default-hostfile"}
# Files of hosts that schedulers name.
FILE_VARIABLES = ("OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile",
                  "PBS_NODEFILE", "PE_HOSTFILE")  # fmt: skip
COUNT_VARIABLES = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES")
# The command by which mpirun reaches hosts: its parameter, and the variable that sets that. Open
# MPI 5 takes the option of 4.1, too, and not its variable.
AGENT = {
    "ompi4": (("plm_rsh_agent",), "OMPI_MCA_plm_rsh_agent"),
    "ompi5": (("plm_ssh_agent", "plm_rsh_agent"), "PRTE_MCA_plm_ssh_agent"),
}
PARAMETERS = ("mca", "omca", "prtemca")
"""Options that set a parameter, of Open MPI or of its runtime."""
# Open MPI's own: the first that is there.
AGENTS = "ssh : rsh"
PATIENCE_S = 30.0
NOT_THERE = 127
# $0 is velo-info, the others are files that have to be there.
ASK_VERSION = (
    f'for file in "$0" "$@"; do [ -e "$file" ] || {{ echo "$file"; exit {NOT_THERE}; }}; done; '
    'exec "$0" --version'
)
UNREACHABLE = 255
"""What ssh ends with if it does not get there."""
HERE = {"localhost", "127.0.0.1", "::1"}
HOSTS_AT_ONCE = 32


class Hosts(NamedTuple):
    """The other hosts of a job, as far as they have names."""

    names: Sequence[str]
    agent: Sequence[str]
    """The command that runs another on a host: ssh."""
    files: Sequence[Path] = ()
    """What of velo a rank there needs."""

    def check(self) -> None:
        """Complain if a host is not reached, or has no velo, or another one, where this one is."""
        # Cost: slow to import, and only jobs on several hosts need it.
        from velo import helpers

        program = tree.find("velo-info")
        own = helpers.output([program, "--version"], PATIENCE_S).strip()
        files = [str(path) for path in (program, *self.files)]
        for name, done in self._on_each(["sh", "-c", ASK_VERSION, *files]):
            said = done.stdout.strip()
            if done.returncode == NOT_THERE:
                raise VeloError(
                    f"host {name} has no {said}; install velo in the same folder on all hosts of a "
                    "job"
                )
            if done.returncode:
                why = done.stderr.strip().splitlines()
                code = f"exit code {done.returncode}"
                raise VeloError(
                    f"host {name} is not reached by {shlex.join(self.agent)}: "
                    f"{why[-1] if why else code}; {shlex.join([*self.agent, name, 'true'])} must "
                    "work and ask for no password"
                )
            if said != own:
                raise VeloError(
                    f"host {name} has velo {said}, this one {own}; all hosts of a job need the same"
                )

    def clean(self, domain: str) -> None:
        """Take away what killed ranks left there. A host that is gone has taken it along."""
        folder = os.environ.get("VELO_SHM_DIR")
        env = ["env", f"VELO_SHM_DIR={folder}"] if folder else []
        for _ in self._on_each([*env, str(tree.find("velo-clean")), "--domain", domain]):
            pass

    def _on_each(
        self, command: Sequence[str]
    ) -> Iterator[tuple[str, subprocess.CompletedProcess[str]]]:
        """A command on all hosts at once; what each says, in order."""
        if not self.names:
            return
        # Cost: slow to import, and only jobs on several hosts need it.
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(min(len(self.names), HOSTS_AT_ONCE)) as threads:
            yield from zip(
                self.names,
                threads.map(lambda name: self._on(name, command), self.names),
                strict=True,
            )

    def _on(self, name: str, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        words = [*self.agent, name, shlex.join(command)]
        try:
            return subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                timeout=PATIENCE_S,
            )  # fmt: skip
        except OSError as error:
            raise VeloError(f"cannot start {words[0]}: {error.strerror}") from error
        except subprocess.TimeoutExpired:
            late = f"no answer within {PATIENCE_S:.0f} s"
            return subprocess.CompletedProcess(words, UNREACHABLE, "", late)


def find(
    options: Sequence[str], env: Mapping[str, str] = os.environ, kind: str = "ompi4"
) -> Hosts | None:
    """The other hosts that the options of an Open MPI's mpirun or a scheduler name; None: all ranks
    are here."""
    named = list(dict.fromkeys(_named(options, env)))
    others = [name for name in named if not is_here(name)]
    if not others and not any(int(env.get(name) or 0) > 1 for name in COUNT_VARIABLES):
        return None
    # A scheduler starts daemons in its own way: then there may be no ssh.
    by_scheduler = not _by_options(options)
    if by_scheduler:
        return Hosts([], [])
    return Hosts(others, agent(options, env, kind))


def is_here(name: str) -> bool:
    """Is that this machine? As mpirun sees it: by name, or by an address of one of its devices."""
    # Cost: as above.
    import socket

    own = {socket.gethostname(), *HERE}
    if name in own or name.partition(".")[0] in own:
        return True
    try:
        addresses = {info[4][0] for info in socket.getaddrinfo(name, None)}
    except OSError:
        return False
    return any(_is_own_address(str(address)) for address in addresses)


def _is_own_address(address: str) -> bool:
    # Cost: as above.
    import socket

    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def agent(options: Sequence[str], env: Mapping[str, str], kind: str = "ompi4") -> list[str]:
    """What mpirun starts its daemons with."""
    names, variable = AGENT[kind]
    given = parameter(options, names) or env.get(variable) or AGENTS
    for words in map(shlex.split, given.split(":")):
        if words and shutil.which(words[0]):
            return words
    raise VeloError(
        f"other hosts cannot be reached: there is no {' nor '.join(given.split(' : '))}"
    )


def parameter(options: Sequence[str], names: Sequence[str]) -> str | None:
    """The value that options give an MCA parameter of one of these names."""
    triples = zip(options, options[1:], options[2:], strict=False)
    return next(
        (value for word, key, value in triples if word.lstrip("-") in PARAMETERS and key in names),
        None,
    )


def _by_options(options: Sequence[str]) -> list[str]:
    """Hosts that options name."""
    out: list[str] = []
    for word, value in itertools.pairwise(options):
        if not word.startswith("-"):
            continue
        if word.lstrip("-") in LISTS:
            out += (part.partition(":")[0] for part in value.split(","))
        elif word.lstrip("-") in FILES:
            out += in_file(Path(value))
    return [name for name in out if not name.startswith("+")]  # Those count what is there.


def _named(options: Sequence[str], env: Mapping[str, str]) -> Iterable[str]:
    by_options = _by_options(options)
    if by_options:
        return by_options
    return [
        name
        for variable in FILE_VARIABLES
        if variable in env
        for name in in_file(Path(env[variable]))
    ]


def in_file(path: Path) -> list[str]:
    """The hosts of a hostfile: the first word of each line; user@ may stand before it."""
    try:
        text = path.read_text()
    except OSError as error:
        raise UsageError(f"cannot read the hostfile {path}: {error.strerror}") from error
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    names = (words[0] for words in lines if words and not words[0].startswith("^"))
    return [re.sub(r"^.*@", "", name).partition(":")[0] for name in names]
