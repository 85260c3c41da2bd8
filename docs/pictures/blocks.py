# SPDX-License-Identifier: Apache-2.0
"""The pictures of the hardware's blocks."""

# ruff: noqa: E501 (the words of a picture)

from picture import Picture, find, row_of_boxes


def switch() -> Picture:
    """The pipeline of a switch."""
    cycles = find("rtl/README.md", r"a switch; with the link layer[^|]*\|[^|]*\|[^|]*\| (\d+);")[0]
    p = Picture("A switch", 900, 250)
    steps = (("route", "cycle 1"), ("queues", "a queue for each output and channel"),
             ("iSLIP arbiters", "cycles 2, 3: request, grant"), ("crossbar", "cycle 4: read"))  # fmt: skip
    widths = (90, 240, 200, 130)
    at = 90.0
    p.box(20, 60, 50, 56, "in", kind="user")
    p.arrow((70, 88), (88, 88))
    for (name, what), width in zip(steps, widths, strict=True):
        p.box(at, 60, width, 56, name, what, kind="hard")
        p.arrow((at + width, 88), (at + width + 18, 88))
        at += width + 20
    p.box(at, 60, 50, 56, "out", kind="user")
    p.box(200, 150, 240, 56, "packet buffer", "units of 8 words in block RAM", kind="hard")
    p.arrow((135, 116), (135, 178), (198, 178))
    p.arrow((440, 178), (725, 178), (725, 118))
    p.text(20, 34, f"First word in to first word out: {cycles} cycles", "head")
    p.lines(
        20,
        232,
        "A packet begins only with credits for all of it, so once begun it never holds its output against others.",
    )
    return p


def velo_unit() -> Picture:
    """Requester and completer."""
    paper, _, here = find("rtl/README.md", r"\| requester \| (\d+) \| ≤ (\d+) \| (\d+) \|")
    paper_in, _, here_in = find("rtl/README.md", r"\| completer \| (\d+) \| ≤ (\d+) \| (\d+) \|")
    p = Picture("The VELO unit", 900, 300)
    p.group(
        12,
        12,
        876,
        122,
        f"Requester: {here} cycle from first word in to first word out (paper: {paper})",
    )
    row_of_boxes(p, 56, [("posted write", "from HTAX"), ("address → header", "target, length, source"),
                         ("watchdog", "off by default"), ("packet gate", "room for the whole message?")],
                 [150, 190, 150, 220], "hard")  # fmt: skip
    p.group(12, 152, 876, 136, f"Completer: {here_in} cycles (paper: {paper_in})")
    row_of_boxes(p, 196, [("packet", "from the network"), ("contexts", "base, size, pointers"),
                          ("room in the ring?", "else it waits"), ("posted writes", "payload, then header word")],
                 [150, 190, 170, 220], "hard")  # fmt: skip
    p.text(
        28,
        276,
        "Nothing is kept between writes: any number of threads and processes send at once.",
        "small muted",
    )
    return p


def link() -> Picture:
    """A link port, both ways."""
    p = Picture("A link port", 900, 330)
    p.group(12, 12, 876, 148, "Out")
    row_of_boxes(p, 50, [("packets", "by virtual channel"), ("ring of words", "go-back-N"),
                         ("framing", "number, status, CRC-12"), ("end word", "CRC-32C"), ("PHY", "words")],
                 [140, 170, 180, 120, 80], "hard")  # fmt: skip
    p.text(
        28,
        140,
        "Each word is sent from the ring, also the first time. A word leaves it once it is acknowledged.",
        "small muted",
    )
    p.group(12, 178, 876, 140, "In")
    row_of_boxes(p, 216, [("PHY", "words"), ("CRC-12", "header is right"), ("number", "in sequence?"),
                          ("cut-through", "a word goes on when the next comes"), ("CRC-32C", "else poisoned")],
                 [80, 130, 130, 270, 130], "hard")  # fmt: skip
    p.text(
        28,
        304,
        "What is wrong or missing is asked for again (nak); the repeated packet is a new copy with the same credits.",
        "small muted",
    )
    p.arrow((340, 272), (340, 284), (880, 284), (880, 120), (271, 120), (271, 108), kind="dashed")
    return p


def rma() -> Picture:
    """The unit for remote memory, at both ends."""
    p = Picture("Remote memory", 900, 330)
    p.group(12, 12, 400, 300, "Node that asks")
    p.group(488, 12, 400, 300, "Node that is asked")
    p.box(30, 48, 170, 56, "requester", "descriptor → packets", kind="hard")
    p.box(224, 48, 170, 56, "reader", "local memory, for puts", kind="hard")
    p.arrow((224, 76), (202, 76))
    p.box(30, 136, 364, 56, "completer", "data of gets, outcomes, notifications", kind="hard")
    p.box(30, 224, 364, 56, "host", "ATU: translation and rights; notification queues", kind="velo")
    p.box(506, 48, 170, 56, "completer", "writes puts", kind="hard")
    p.box(700, 48, 170, 56, "responder", "reads for gets, updates", kind="hard")
    p.box(506, 136, 364, 56, "reply", "outcomes of puts, answers", kind="hard")
    p.box(
        506, 224, 364, 56, "host", "ATU: translation and rights; notification queues", kind="velo"
    )
    p.arrow((115, 104), (115, 118), (450, 118), (450, 76), (504, 76))
    p.text(424, 64, "request", "small muted")
    p.arrow((506, 164), (396, 164))
    p.text(420, 156, "response,", "small muted")
    p.text(420, 182, "completion", "small muted")
    p.arrow((591, 104), (591, 134))
    p.arrow((785, 104), (785, 134))
    for x in (212, 688):
        p.arrow((x, 192), (x, 222))
    p.text(
        30,
        304,
        "Requests may wait for answers, never the reverse.",
        "small muted",
    )
    return p


def dimmnet() -> Picture:
    """The controller of DIMMnet-2."""
    p = Picture("DIMMnet-2: CoreLogic", 900, 330)
    p.box(20, 120, 110, 80, "memory slot", "host", kind="user")
    p.group(160, 12, 560, 306, "CoreLogic")
    for at, (name, what) in enumerate((("Write Window", "programs write packets"), ("Prefetch Window", "programs read"),
                                       ("LLCM", "lists, status rings"), ("Register", "commands, counters"))):  # fmt: skip
        y = 44 + 68 * at
        p.box(180, y, 180, 54, name, what, kind="hard")
        p.arrow((130, 160), (146, 160), (146, y + 27), (178, y + 27))
    p.box(400, 44, 160, 54, "Window Controller", "commands → packets", kind="hard")
    p.box(400, 112, 160, 54, "Receive Controller", "judged, then placed", kind="hard")
    p.box(400, 180, 160, 54, "Write, Prefetch Unit", "contiguous, strided, list", kind="hard")
    p.box(400, 248, 160, 54, "Status Write Unit", "statuses into the rings", kind="hard")
    p.arrow((380, 71), (380, 275), kind="plain")
    for y in (71, 139, 207, 275):
        p.arrow((360, y), (398, y), kind="plain")
    p.box(590, 180, 110, 54, "SO-DIMM", "memory", kind="old")
    p.arrow((560, 207), (588, 207))
    p.box(760, 78, 120, 54, "SWIF", "InfiniBand frames", kind="hard")
    p.arrow((560, 71), (740, 71), (740, 95), (758, 95))
    p.arrow((760, 118), (740, 118), (740, 139), (562, 139))
    return p


def atu() -> Picture:
    """Address translation."""
    cycles = find("rtl/atu/README.md", r"From request to answer (\d+) cycles on a hit")[0]
    p = Picture("Address translation", 900, 300)
    p.box(16, 56, 116, 64, "RMA unit", "four clients", kind="hard")
    p.arrow((132, 78), (218, 78))
    p.text(136, 70, "access", "small muted")
    p.arrow((220, 104), (134, 104))
    p.text(136, 122, "place, no", "small muted")
    p.group(200, 12, 480, 200, f"ATU: {cycles} cycles on a hit")
    p.box(220, 56, 130, 64, "velo_atu", "one at a time", kind="hard")
    p.box(376, 56, 140, 64, "velo_atu_cache", "a page a line", kind="hard")
    p.box(542, 56, 122, 64, "judge", "owner, peer, right", kind="hard")
    p.arrow((350, 88), (374, 88))
    p.arrow((516, 88), (540, 88))
    p.box(220, 146, 296, 48, "accesses that stand", "granted, and not over yet", kind="hard")
    p.arrow((602, 120), (602, 170), (518, 170))
    p.box(730, 56, 150, 64, "table", "in host memory", kind="user")
    p.arrow((446, 56), (446, 34), (804, 34), (804, 54), kind="dashed")
    p.text(690, 26, "a miss reads it", "small muted")
    p.box(730, 146, 150, 48, "driver", "writes the table", kind="velo")
    p.arrow((804, 146), (804, 122))
    p.arrow((730, 182), (518, 182), kind="dashed")
    p.text(690, 226, "takes a page back: waits", "small muted")
    p.text(690, 242, "until no access to it stands", "small muted")
    p.lines(20, 262, "An access that the table does not allow is refused here, and its sender gets a notification that says why.",
            "Entries without a right are not kept, so a page that is registered needs nothing taken out of the cache.")  # fmt: skip
    return p


def htax() -> Picture:
    """The crossbar of a node."""
    p = Picture("The on-chip crossbar", 900, 330)
    ports = ("host", "VELO units", "RMA unit", "custom unit", "registers")
    for at, name in enumerate(ports):
        y = 24 + 52 * at
        p.box(20, y, 130, 40, name, kind="user" if name == "host" else "hard")
        p.box(750, y, 130, 40, name, kind="user" if name == "host" else "hard")
        p.arrow((150, y + 20), (198, y + 20))
        p.arrow((702, y + 20), (748, y + 20))
    p.group(180, 8, 540, 272, "")
    for at, (name, what) in enumerate((("posted", "writes, with data"), ("non-posted", "reads, by address"),
                                       ("response", "data, to the port that asked"))):  # fmt: skip
        y = 30 + 82 * at
        p.box(200, y, 130, 62, "buffers", "one a port", kind="hard")
        p.box(362, y, 180, 62, name, what, kind="hard")
        p.box(574, y, 126, 62, "arbiters", "one a target", kind="hard")
        p.arrow((330, y + 31), (360, y + 31))
        p.arrow((542, y + 31), (572, y + 31))
    p.lines(20, 304, "The three channels share nothing but a count that keeps a port's reads behind its own writes. "
                     "One cycle from port to port, that of the buffer.",
            "A node has only the pairs of ports that its units use.")  # fmt: skip
    return p


def regfile() -> Picture:
    """Registers and what is around them."""
    p = Picture("The register file", 900, 250)
    p.box(20, 70, 120, 60, "crossbar", "64-bit accesses", kind="user")
    p.box(180, 70, 150, 60, "velo_regfile", "pages, refusals", kind="hard")
    p.box(370, 30, 190, 60, "velo_regs", "made from velo_regs.rdl", kind="hard")
    p.box(370, 110, 190, 60, "tables", "rings, queues, routes", kind="hard")
    for y in (60, 140):
        p.arrow((330, 100), (350, 100), (350, y), (368, y))
    p.arrow((140, 92), (178, 92))
    p.arrow((180, 112), (142, 112))
    for at, (name, what) in enumerate((("VELO units", "contexts, counters"), ("RMA unit, ATU", "queues, pages, faults"),
                                       ("network", "routes, links, credits"))):  # fmt: skip
        y = 16 + 64 * at
        p.box(700, y, 180, 52, name, what, kind="hard")
        p.arrow((560, 100), (640, 100), (640, y + 18), (698, y + 18))
        p.arrow((700, y + 36), (660, y + 36), (660, 120), (562, 120), kind="dashed")
    p.lines(20, 218, "One struct each way for each kind of unit: settings leave (solid), state and counters come in (dashed).",
            "What a driver may grant to a process, such as a ring's read pointer, has a page of its own.")  # fmt: skip
    return p


def netport() -> Picture:
    """Between units and switch, both ways."""
    p = Picture("A network port", 900, 296)
    p.group(12, 12, 876, 110, "Out, once for each traffic class: velo_netport_tx")
    row_of_boxes(p, 48, [("unit", "a packet"), ("buffer", "until it is whole"),
                         ("room?", "in the switch, for its length"), ("switch", "node port")],
                 [150, 200, 240, 180], "hard")  # fmt: skip
    p.group(12, 140, 876, 112, "In, once for each traffic class: velo_netport_rx")
    row_of_boxes(p, 176, [("switch", "node port"), ("buffer", "block RAM; fills before credits end"),
                          ("route word off", ""), ("poisoned end?", "then no unit sees it"), ("unit", "a packet")],
                 [110, 255, 130, 175, 80], "hard")  # fmt: skip
    p.text(20, 276, "A unit that stops inside a packet holds no output of the switch, and a class that stands holds no other.",
           "small muted")  # fmt: skip
    return p


def pcs() -> Picture:
    """The coding sublayer, both ways."""
    p = Picture("The physical coding sublayer", 900, 330)
    p.group(12, 12, 876, 120, "Sending: link port's clock, then the serializer's")
    row_of_boxes(p, 52, [("link port", "words"), ("FIFO", "drops idle words"), ("symbols", "and skip sets"),
                         ("code", "8b/10b or 64b/66b"), ("serializer", "1, 2 or 4 lanes")],
                 [125, 165, 145, 185, 125], "hard")  # fmt: skip
    p.group(12, 150, 876, 120, "Receiving: a recovered clock for each lane, then the link port's")
    row_of_boxes(p, 190, [("lanes", "bits"), ("window", "finds the border"), ("decoder", "8b/10b or 64b/66b"),
                          ("bonding", "lanes in step"), ("elastic", "skip sets off"), ("link port", "words")],
                 [75, 135, 155, 125, 130, 100], "hard")  # fmt: skip
    p.lines(20, 292, "A skip set is comma, clock compensation and alignment marker in one. A symbol that is not valid becomes an error word,",
            "which the link port asks for again.")  # fmt: skip
    return p


def barrier() -> Picture:
    """A barrier over a tree of nodes."""
    p = Picture("A barrier of seven nodes", 900, 320)
    nodes = {"root": (380, 40), "a": (180, 140), "b": (580, 140),
             "c": (80, 240), "d": (280, 240), "e": (480, 240), "f": (680, 240)}  # fmt: skip
    for child, parent in (
        ("a", "root"),
        ("b", "root"),
        ("c", "a"),
        ("d", "a"),
        ("e", "b"),
        ("f", "b"),
    ):
        (x, y), (to_x, to_y) = nodes[child], nodes[parent]
        p.arrow((x + 60, y), (to_x + 50, to_y + 46))
        p.arrow((to_x + 78, to_y + 46), (x + 88, y - 1), kind="dashed")
    for name, (x, y) in nodes.items():
        text = "root: all have arrived" if name == "root" else "all below have"
        p.box(
            x - (15 if name == "root" else 0),
            y,
            170 if name == "root" else 140,
            46,
            text,
            kind="hard",
        )
    p.lines(20, 40, "Solid: an arrival, one packet a node,", "of the class of completions.")
    p.lines(20, 92, "Dashed: the release, one message", "that the switches copy.")
    p.lines(640, 40, "A node keeps a bit for each arrival", "that it expects, and no packet.")
    p.text(
        20,
        312,
        "A process arrives by one write, and polls its ring for the release as for any message.",
        "small muted",
    )
    return p


def congestion() -> Picture:
    """Congestion management: mark, notice, throttle."""
    p = Picture("Congestion management", 900, 262)
    p.group(12, 12, 270, 190, "Node that sends")
    p.box(30, 48, 100, 52, "requester", kind="hard")
    p.box(156, 48, 110, 52, "throttle", "a gap by level", kind="hard")
    p.box(156, 134, 110, 52, "intake", "takes notices", kind="hard")
    p.arrow((130, 74), (154, 74))
    p.arrow((211, 134), (211, 102))
    p.text(218, 122, "raises", "small muted")
    p.group(330, 12, 180, 190, "Network")
    p.box(348, 48, 144, 52, "busy output", "marks packets", kind="hard")
    p.arrow((266, 74), (346, 74))
    p.group(558, 12, 330, 190, "Node whose host is slow")
    p.box(576, 48, 130, 52, "completer", kind="hard")
    p.box(742, 48, 130, 52, "host", "too slow", kind="user")
    p.box(576, 134, 130, 52, "notice", "in turn, not each", kind="hard")
    p.arrow((492, 74), (574, 74))
    p.arrow((706, 74), (740, 74))
    p.arrow((641, 100), (641, 132))
    p.arrow((576, 160), (268, 160))
    p.text(330, 222, "completions: a class of its own", "small muted")
    p.text(20, 248, "The level of a destination rises with its notices and falls with time. Others' packets, which wait for nothing, lose no cycle.",
           "small muted")  # fmt: skip
    return p


def clock() -> Picture:
    """The clock domains of a node."""
    p = Picture("The clocks of a node", 900, 250)
    p.group(12, 12, 200, 170, "Host clock")
    p.box(32, 64, 160, 70, "host port", "stores, reads, DMA", kind="user")
    p.group(300, 12, 270, 170, "Core clock")
    p.box(320, 48, 230, 52, "units, crossbar, switch", kind="hard")
    p.box(320, 114, 230, 52, "link ports", kind="hard")
    p.group(658, 12, 230, 170, "Link clocks")
    p.box(678, 48, 190, 52, "sending", "the serializer's clock", kind="hard")
    p.box(678, 114, 190, 52, "receiving", "one recovered clock a lane", kind="hard")
    p.box(220, 72, 72, 54, "FIFOs", kind="velo")
    p.box(578, 60, 72, 96, "PCS", "FIFO,", "elastic", kind="velo")
    p.lines(20, 208, "Crossings (blue) end in a synchronizer; pointers cross in Gray code. A read stays behind the writes before it.",
            "A border to the links has words alone to carry, for credits and acknowledgements are inside them.")  # fmt: skip
    return p


def pcie() -> Picture:
    """The function on PCI Express."""
    p = Picture("The PCI Express function", 900, 330)
    p.box(20, 40, 96, 250, "hard block", "link, config", kind="old")
    p.group(150, 12, 590, 306, "velo_pcie")
    p.box(170, 48, 120, 56, "receive", "what is it for?", kind="hard")
    p.box(330, 48, 150, 56, "stores", "shares of contexts", kind="hard")
    p.box(330, 116, 150, 56, "loads", "one after the other", kind="hard")
    p.box(520, 116, 200, 56, "regs, MSI-X, reset", "settings, vectors, FLR", kind="hard")
    p.box(330, 184, 150, 56, "writes", "messages, data", kind="hard")
    p.box(330, 252, 150, 56, "reads", "tags, timeouts", kind="hard")
    p.box(170, 218, 120, 56, "send", "four sources", kind="hard")
    p.box(780, 40, 100, 250, "node", "64 bits", kind="hard")
    p.arrow((116, 76), (168, 76))
    p.arrow((170, 246), (118, 246))
    p.arrow((290, 76), (328, 76))
    p.arrow((230, 104), (230, 144), (328, 144))
    p.arrow((480, 76), (778, 76))
    p.arrow((480, 144), (518, 144))
    p.arrow((778, 212), (482, 212))
    p.arrow((778, 280), (482, 280))
    p.arrow((330, 158), (310, 158), (310, 232), (292, 232))
    p.arrow((330, 212), (318, 212), (318, 244), (292, 244))
    p.arrow((330, 280), (310, 280), (310, 260), (292, 260))
    p.arrow((620, 172), (620, 190), (496, 190), (496, 178), (318, 178), kind="plain")
    return p
