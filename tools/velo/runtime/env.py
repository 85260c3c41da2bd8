# SPDX-License-Identifier: Apache-2.0
"""`velo env`: what makes plain mpirun, srun and mpiexec.hydra use velo."""

import argparse
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from velo import tree
from velo.errors import VeloError

if TYPE_CHECKING:
    from velo.runtime.served import Served

COMPONENT_PATH = "OMPI_MCA_mca_base_component_path"
PMIX_PATH = "PMIX_MCA_mca_base_component_path"
PROVIDER_PATH = "FI_PROVIDER_PATH"
OPEN_MPIS_OWN = "SYSTEM_DEFAULT:USER_DEFAULT"
# Of variables that all users of libfabric read there is the path alone: which provider an MPI takes
# is said in its own words.
BY_PROVIDER = {
    "ompi5": {"OMPI_MCA_mtl_ofi_provider_include": "velo"},
    "mpich": {"MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1",
              "MPIR_CVAR_OFI_USE_PROVIDER": "velo"},
    "impi": {"I_MPI_FABRICS": "ofi", "I_MPI_OFI_PROVIDER": "velo"},
}  # fmt: skip


def register(commands: Any) -> None:
    """The command line of `velo env`."""
    parser = commands.add_parser(
        "env",
        help="print what makes plain mpirun, srun and mpiexec use velo",
        usage='eval "$(velo env [--unset])"',
        description="Print shell commands that let plain mpirun, srun and mpiexec.hydra use velo, "
        'without velo run: eval "$(velo env)". They are about the first Open MPI and the first '
        "MPICH or Intel MPI in PATH, and say where velo's parts for those are; what the user has "
        "set stays, and is found after velo's. Programs of another MPI are not concerned; a "
        "component that an Open MPI of another release finds says so and takes no part. Nothing is "
        "changed but variables of the shell that evaluates this. Jobs on several hosts over Open "
        "MPI need VELO_NETWORK and VELO_OFI_SECRET, too: docs/guides/slurm.md has how.",
        allow_abbrev=False,
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--unset", action="store_true", help="print commands that take back what velo env has set"
    )
    how.add_argument(
        "--module",
        choices=("load", "unload"),
        help="print the commands of a modulefile: what is to be set, or what is set now",
    )
    how.add_argument("--json", action="store_true", help="print names and values as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """`velo env`."""
    # Cost: these are slow to import, and all commands load this module for --help.
    import json
    import shlex

    # Cost: as above.
    from velo.runtime import served

    found = first_of_each(served.look())
    if args.json:
        print(json.dumps(wanted(found, os.environ), indent=1))
    elif args.module == "load":
        for name, value in wanted(found, os.environ).items():
            print(f"setenv {name} {braced(value)}")
    elif args.module == "unload":
        # A module's unloading does the opposite of what its file says.
        for name, before in taken_back(os.environ).items():
            print(f"setenv {name} {{}}" if before is None
                  else f"prepend-path {name} {braced(part_of_ours(name, os.environ))}")  # fmt: skip
    elif args.unset:
        for name, before in taken_back(os.environ).items():
            print(f"unset {name}" if before is None else f"export {name}={shlex.quote(before)}")
    else:
        for each in found:
            print(f"# {each.mpi}, {each.mpi.launcher}: {each.by or 'not served: ' + each.why}")
        for name, value in wanted(found, os.environ).items():
            print(f"export {name}={shlex.quote(value)}")


def first_of_each(found: "Iterable[Served]") -> "list[Served]":
    """Of Open MPI, and of MPICH and Intel MPI, that which a user calls."""
    out: dict[bool, Served] = {}
    for each in found:
        out.setdefault(each.mpi.kind.startswith("ompi"), each)
    return list(out.values())


def wanted(found: "Iterable[Served]", env: Mapping[str, str]) -> dict[str, str]:
    """What is to be set; the same again where it is set by now."""
    # Cost: as above.
    from velo.runtime import openmpi

    base = {**env, **{name: value or "" for name, value in taken_back(env).items()}}
    out: dict[str, str] = {}
    for each in found:
        if each.components:
            theirs = base.get(COMPONENT_PATH) or OPEN_MPIS_OWN
            out[COMPONENT_PATH] = f"{each.components}:{theirs}"
            if each.mpi.kind == "ompi5" and not base.get(PMIX_PATH):
                out |= openmpi.quiet(each.mpi.launcher, base)
        elif each.provider:
            theirs = base.get(PROVIDER_PATH, "")
            folder = str(each.provider.parent.resolve())
            out[PROVIDER_PATH] = f"{folder}:{theirs}" if theirs else folder
            out |= {
                name: value
                for name, value in BY_PROVIDER[each.mpi.kind].items()
                if not base.get(name)
            }
    return out


def our_folders() -> dict[str, set[str]]:
    """What of ours may stand first in a variable that is a path."""
    # Cost: as above.
    from velo.runtime import openmpi, over_libfabric

    try:
        providers = {str(tree.find_provider(over_libfabric.PROVIDER).parent.resolve())}
    except VeloError:
        providers = set()
    return {COMPONENT_PATH: set(map(str, openmpi.folders().values())), PROVIDER_PATH: providers}


def part_of_ours(name: str, env: Mapping[str, str]) -> str:
    """The folder of ours that stands first in a path; empty: none does."""
    first = env.get(name, "").partition(":")[0]
    return first if first in our_folders().get(name, ()) else ""


def taken_back(env: Mapping[str, str]) -> dict[str, str | None]:
    """What is to be taken back of what was set; None: the variable was not there before."""
    out: dict[str, str | None] = {}
    for name in (COMPONENT_PATH, PROVIDER_PATH):
        if part_of_ours(name, env):
            rest = env[name].partition(":")[2]
            out[name] = rest if rest not in ("", OPEN_MPIS_OWN) else None
    if out:
        # Only who has set a folder of ours has set these with it.
        own = {name: value for some in BY_PROVIDER.values() for name, value in some.items()}
        out |= {name: None for name, value in own.items() if env.get(name) == value}
        if COMPONENT_PATH in out and PMIX_PATH in env:
            out[PMIX_PATH] = None
    return out


def braced(value: str) -> str:
    """A word of Tcl, untouched."""
    return "{" + value + "}"
