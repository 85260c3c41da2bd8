# SPDX-License-Identifier: Apache-2.0
"""The dependency check: each kind of violation is found where it is."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "scripts" / "check_deps.py"
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"

# A small tree without a violation; each case adds or replaces one file.
CLEAN = {
    "spec/velo.toml": "# SPDX-License-Identifier: Apache-2.0\n",
    "include/velo/velo.h": SPDX + "#include <velo/spec.h>\n",
    "lib/base/error.h": SPDX,
    "lib/shm/segment.h": SPDX,
    "lib/core/port.h": SPDX + '#include "../shm/segment.h"\n',
    "lib/mq/mq.c": SPDX + '#include "../core/port.h"\n#include "../base/order.h"\n',
    "lib/base/order.h": SPDX + "static int x = __atomic_load_n(p, 0);\n",
    "lib/core/tx.c": SPDX + '#include "../base/order.h"\n/* atomic_x, __asm__ */\n',
    "sim/client/poll.h": SPDX + "#include <velo/spec.h>\n",
    "sim/client/order.h": SPDX + "static int x = __atomic_load_n(p, 0);\n",
    "sim/preload/nap.c": SPDX + '#include "../client/poll.h"\n#include <velo/velo.h>\n',
    "transports/nic/nic.h": SPDX + '#include "../../lib/core/port.h"\n',
    "transports/nic/sim.c": SPDX + '#include "../../sim/client/poll.h"\n#include "nic.h"\n',
    "tools/perf/clock.h": SPDX,
    "tools/perf/main.c": SPDX + '#include <velo/velo.h>\n#include "clock.h"\nint x = __atomic_y;\n',
    "examples/short.c": SPDX + "#include <velo/velo.h>\n" + "\n" * 68,
    "tests/support/test.h": SPDX,
    "tests/conformance/a.c": SPDX + '#include "test.h"\n#include <velo/velo.h>\n',
    "tests/fuzz/f.c": SPDX + '#include "base/order.h"\n',
    "tools/velo/a.py": "# SPDX-License-Identifier: Apache-2.0\n",
    "build/generated.c": "no licence here\n",
}


def run(root: Path, files: dict[str, str]) -> tuple[int, list[str]]:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, CHECK, root], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_a_clean_tree_passes(tmp_path: Path):
    assert run(tmp_path, CLEAN) == (0, [])


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "lib/a.c",
            '#include "../tools/perf/clock.h"\n',
            "a.c:2: lib must not include tools/perf/clock.h",
        ),
        ("lib/a.c", '#include "clock.h"\n', "a.c:2: lib must not include tools/perf/clock.h"),
        ("lib/a.c", "#include <mpi.h>\n", "a.c:2: lib must not include <mpi.h>"),
        ("lib/a.c", "\n#  include <test.h>\n", "a.c:3: lib must not include tests/support/test.h"),
        (
            "tools/perf/a.c",
            '#include "base/order.h"\n',
            "a.c:2: tools/perf must not include lib/base",
        ),
        ("examples/a.c", "#include <base/error.h>\n", "a.c:2: examples must not include lib/base"),
        ("tests/conformance/b.c", '#include "base/error.h"\n', "b.c:2: tests/conformance must not"),
        ("sim/a.cc", "#include <velo/velo.h>\n", "a.cc:2: sim must not include include/velo"),
        ("sim/a.cc", '#include "client/poll.h"\n', "a.cc:2: sim must not include sim/client"),
        ("sim/client/a.c", "#include <velo/velo.h>\n", "a.c:2: sim/client must not include inc"),
        (
            "sim/preload/a.c",
            '#include "../../transports/nic/nic.h"\n',
            "a.c:2: sim/preload must not include transports/nic/nic.h",
        ),
        ("sim/preload/a.c", "int x = __sync_y;\n", "a.c:2: __sync_y: atomics, fences"),
        (
            "transports/nic/out.c",
            '#include "../../sim/client/poll.h"\n',
            "out.c:2: transports must not include sim/client/poll.h",
        ),
        ("transports/nic/a.c", "int x = __sync_y;\n", "a.c:2: __sync_y: atomics, fences"),
        ("lib/core/b.c", '#include "../../transports/nic/nic.h"\n', "b.c:2: lib/core must not"),
        (
            "lib/base/a.c",
            '#include "../shm/segment.h"\n',
            "a.c:2: lib/base must not include lib/shm",
        ),
        ("lib/shm/a.c", '#include "../core/port.h"\n', "a.c:2: lib/shm must not include lib/core"),
        ("lib/rma/a.c", '#include "../mq/b.h"\n', "a.c:2: lib/rma must not include lib/mq/b.h"),
        ("lib/a.c", "int x = __atomic_load_n(p, 5);\n", "a.c:2: __atomic_load_n: atomics, fences"),
        ("lib/a.c", "#include <stdatomic.h>\n", "a.c:2: stdatomic.h: atomics"),
        ("lib/a.h", "\n_mm_pause();\n", "a.h:3: _mm_pause: atomics"),
        ("lib/a.h", '__asm__ volatile("");\n', "a.h:2: __asm__ volatile: atomics"),
        ("lib/core/b.c", 'char *s = "/*"; asm("");\n', "b.c:2: asm("),
        ("examples/long.c", "\n" * 70, "long.c:71: an example has at most 70 lines"),
    ],
)
def test_a_violation_is_found_in_its_place(tmp_path: Path, name: str, text: str, expected: str):
    code, lines = run(tmp_path, {**CLEAN, "lib/mq/b.h": SPDX, name: SPDX + text})
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"{Path(name).parent}/{expected}")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lib/a.c", "int x;\n"),
        ("tools/velo/b.py", "x = 1\n"),
        ("scripts/tool", "#!/bin/sh\n"),
        ("lib/CMakeLists.txt", "project(x)\n"),
        ("lib/b.h", "/* one */\n/* two */\n/* three */\n" + SPDX),
    ],
)
def test_a_source_file_without_a_licence_line_is_found(tmp_path: Path, name: str, text: str):
    code, lines = run(tmp_path, {**CLEAN, name: text})
    assert code == 1
    assert lines == [f"{name}:1: the first lines lack 'SPDX-License-Identifier: Apache-2.0'"]


# Two modules, the lower of which uses the upper one: by its header, a function, or a table.
BELOW = SPDX + '#include "below.h"\n'


@pytest.mark.parametrize(
    "below",
    [
        BELOW + '#include "above.h"\n',
        BELOW + "int below(void)\n{\n    return above();\n}\n",
        BELOW + "int below(void)\n{\n    return calls.above();\n}\n",
    ],
)
def test_files_that_use_each_other_are_found(tmp_path: Path, below: str):
    above = (
        SPDX
        + '#include "below.h"\n#include "above.h"\n'
        + "int above(void)\n{\n    return below();\n}\n"
        + "const struct table calls = {\n    .above = above,\n};\n"
    )
    files = {"lib/mq/above.c": above, "lib/mq/above.h": SPDX, "lib/mq/below.h": SPDX}
    code, lines = run(tmp_path, CLEAN | files | {"lib/mq/below.c": below})
    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith("lib/mq: ")
    assert "above" in lines[0]
    assert "below" in lines[0]


def test_a_structure_and_a_function_of_one_name_are_two_things(tmp_path: Path):
    counted = SPDX + '#include "below.h"\nint counters(void)\n{\n    return below();\n}\n'
    below = SPDX + "int below(void)\n{\n    struct counters now;\n    return now.all;\n}\n"
    files = {"lib/mq/above.c": counted, "lib/mq/below.c": below, "lib/mq/below.h": SPDX}
    assert run(tmp_path, CLEAN | files) == (0, [])


def test_a_job_that_two_transports_do_is_found(tmp_path: Path):
    body = "".join(f"    take({i});\n" for i in range(31))
    card = SPDX + "void card(void)\n{\n" + body + "}\n"
    # Comments and blank lines make no difference; other words do.
    ofi = SPDX + "void ofi(void)\n{\n" + body.replace("\n", " /* so */\n\n") + "}\n"
    code, lines = run(tmp_path, CLEAN | {"transports/card/a.c": card, "transports/ofi/b.c": ofi})
    assert (code, len(lines)) == (1, 1 + 31)
    assert lines[0] == "transports: 31 lines are written twice, more than 30"
    assert lines[1] == "transports/ofi/b.c:4: as at transports/card/a.c:4: take(0);"
    assert lines[-1] == "transports/ofi/b.c:64: as at transports/card/a.c:34: take(30);"
    fewer = {"transports/ofi/b.c": ofi.replace("take(30)", "keep(30)")}
    assert run(tmp_path, fewer) == (0, [])
