# SPDX-License-Identifier: Apache-2.0
"""The same MPI program on both models of the hardware: the same hash, or about the same time.

models.py VELO same|PERCENT [OPTION ...] -- PROGRAM [ARGUMENT ...]

`@` in an argument stands for a file that the program may write.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77

velo, limit, *rest = sys.argv[1:]
at = rest.index("--")
options, (program, *arguments) = rest[:at], rest[at + 1 :]
if not shutil.which(program):
    print(f"{program} is not there")
    sys.exit(SKIPPED)
said = {}
with tempfile.TemporaryDirectory() as folder:
    for model in ("rtl", "fast"):
        result = Path(folder) / f"{model}.json"
        argv = [velo, "sim", "--model", model, *options, "--json", str(result), "--", program]
        argv += [argument.replace("@", str(Path(folder) / "out")) for argument in arguments]
        subprocess.run(argv, check=True, timeout=300)
        figures = json.loads(result.read_text(encoding="utf-8"))
        said[model] = {name: figures[name] for name in ("hash", "messages", "virtual_time_ps")}
        print(model, said[model], f"{figures['seconds']:.2f} s")
if limit == "same":
    if said["rtl"] != said["fast"]:
        sys.exit("the models differ")
else:
    rtl, fast = (said[model]["virtual_time_ps"] for model in ("rtl", "fast"))
    if abs(fast - rtl) > rtl * float(limit) / 100:
        sys.exit(f"the fast model's time is {100 * (fast - rtl) / rtl:.2f} % off")
