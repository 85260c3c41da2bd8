# SPDX-License-Identifier: Apache-2.0
"""8b/10b as the equations of Widmer and Franaszek (1983, figures 3 to 8), not as a table.

Bit 0 of a code is `a`, sent first. A running disparity is 0 for minus one, 1 for plus one.
"""

K_VALUES = (0x1C, 0x3C, 0x5C, 0x7C, 0x9C, 0xBC, 0xDC, 0xFC, 0xF7, 0xFB, 0xFD, 0xFE)


def encode(value: int, k: int, disparity: int) -> tuple[int, int]:
    """The code and the disparity after it."""
    a, b, c, d, e, f, g, h = (bool(value >> bit & 1) for bit in range(8))
    plus, special = bool(disparity), bool(k)
    ones = a + b + c + d
    l40, l04, l13, l31, l22 = (ones == count for count in (4, 0, 1, 3, 2))
    x24 = e and d and not c and not b and not a

    six = [
        a,
        (b and not l40) or l04,
        l04 or c or x24,
        d and not (a and b and c),
        (e or l13) and not x24,
        (l22 and not e)
        or (e and not d and not c and not (a and b))
        or (e and l40)
        or (special and e and d and c and not b and not a)
        or (e and not d and c and not b and not a),
    ]
    minus_six = x24 or (not e and not l22 and not l31)  # as it stands for plus
    heavy_six = special or (e and not l22 and not l13)
    plus_six = heavy_six or (not e and not d and c and b and a)
    turn_six = plus_six if plus else minus_six
    middle = plus != (minus_six or heavy_six)

    # The middle disparity is not used here: the paper's S is of the disparity before the symbol.
    alternate = (
        f and g and h and (special or ((not e and d and l31) if plus else (e and not d and l13)))
    )
    four = [f and not alternate, g or not (f or g or h), h, (not h and g != f) or alternate]
    light_four = not f and not g
    minus_four = light_four or (special and f != g)
    turn_four = (f and g) if middle else minus_four
    after = middle != (light_four or (f and g and h))

    bits = [bit != turn_six for bit in six] + [bit != turn_four for bit in four]
    return sum(1 << place for place, bit in enumerate(bits) if bit), int(after)


def codes() -> dict[tuple[int, int], tuple[int, int]]:
    """(code, disparity before) -> (value, k), of all symbols that there are."""
    table: dict[tuple[int, int], tuple[int, int]] = {}
    points = [(value, 0) for value in range(256)] + [(value, 1) for value in K_VALUES]
    for value, k in points:
        for disparity in (0, 1):
            key = encode(value, k, disparity)[0], disparity
            assert key not in table, "two values have one code"
            table[key] = value, k
    return table
