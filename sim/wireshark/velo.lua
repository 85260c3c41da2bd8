-- The dissector of VELO's packets for Wireshark and tshark, of captures by `velo sim --capture`:
--
--   wireshark -X lua_script:velo.lua FILE.pcapng
--
-- Above this line the build puts the tables that specgen makes of spec/velo.toml and spec/capture.toml;
-- which field has which values is told here.

local WORD_BYTES = 8
local DLT_USER0 = 147
local VALUES = {
  ["packet.kind"] = velo_spec.enums.packet_kind,
  ["packet.tc"] = velo_spec.enums.traffic_class,
  ["route.tc"] = velo_spec.enums.traffic_class,
  ["rma_command.op"] = velo_spec.enums.rma_op,
  ["rma_command.error"] = velo_spec.enums.error,
}
-- Kinds of packets whose payload begins with a command of the RMA.
local RMA_KINDS = {
  put = true,
  get_request = true,
  get_response = true,
  put_immediate = true,
  notification = true,
  fetch_compare_add_request = true,
  fetch_compare_add_response = true,
}

local velo = Proto("velo", "VELO packet")
local all = {} -- every ProtoField
local layouts = {} -- by name: a list of { its ProtoField, where it is }

-- One ProtoField for each field of a layout, called velo.LAYOUT.FIELD.
local function declare(name, fields)
  local list = {}
  for _, field in ipairs(fields) do
    local abbreviation = "velo." .. name .. "." .. field.name
    local proto_field
    local display = field.bits < 32 and base.DEC or base.HEX
    if field.bits > 32 then
      proto_field = ProtoField.uint64(abbreviation, field.name, display, nil, nil, field.doc)
    else
      local values = VALUES[name .. "." .. field.name]
      proto_field = ProtoField.uint32(abbreviation, field.name, display, values, nil, field.doc)
    end
    table.insert(all, proto_field)
    table.insert(list, { proto_field = proto_field, at = field })
  end
  layouts[name] = list
end

for _, spec in ipairs({ velo_spec, capture_spec }) do
  for name, fields in pairs(spec.layouts) do
    declare(name, fields)
  end
end
local payload_field = ProtoField.bytes("velo.payload", "payload")
table.insert(all, payload_field)
velo.fields = all

local short = ProtoExpert.new(
  "velo.short", "The frame was cut short", expert.group.MALFORMED,
  expert.severity.WARN)
local repeated = ProtoExpert.new(
  "velo.repeated", "The frame is repeated", expert.group.SEQUENCE, expert.severity.NOTE)
velo.experts = { short, repeated }

-- The bytes that a field has a part of, and its value.
local function take(buffer, field)
  local first = math.floor(field.lsb / 8)
  local last = math.floor((field.lsb + field.bits - 1) / 8)
  local bytes = buffer(field.word * WORD_BYTES + first, last - first + 1)
  local bits = bytes:le_uint64():rshift(field.lsb - 8 * first)
  if field.bits > 32 then
    return bytes, field.bits == 64 and bits or bits:band((UInt64(1):lshift(field.bits)) - 1)
  end
  return bytes, bits:band(UInt64(2 ^ field.bits - 1)):tonumber()
end

-- The value of a field of 32 bits at most.
local function value(spec, layout, name, buffer)
  for _, field in ipairs(spec.layouts[layout]) do
    if field.name == name then
      local _, number = take(buffer, field)
      return number
    end
  end
end

local function add_layout(tree, name, title, range)
  local branch = tree:add(velo, range, title)
  local buffer = range:tvb()
  for _, one in ipairs(layouts[name]) do
    branch:add(one.proto_field, take(buffer, one.at))
  end
  return branch
end

local function dissect_payload(tree, buffer, kind, is_fragment)
  if is_fragment then
    tree:add(payload_field, buffer):append_text(" (a fragment of a line)")
    return
  end
  local offset = 0
  if RMA_KINDS[kind] and buffer:len() >= 3 * WORD_BYTES then
    add_layout(tree, "rma_command", "Command of the RMA", buffer(0, 3 * WORD_BYTES))
    offset = 3 * WORD_BYTES
    if kind == "fetch_compare_add_request" and buffer:len() >= offset + 2 * WORD_BYTES then
      add_layout(tree, "rma_operands", "Operands", buffer(offset, 2 * WORD_BYTES))
      offset = offset + 2 * WORD_BYTES
    end
  end
  if buffer:len() > offset then
    tree:add(payload_field, buffer(offset))
  end
end

local function describe(packet, kind)
  local text = kind
  if kind == "velo" or kind == "barrier" then
    text = text .. ", tag " .. value(velo_spec, "packet", "tag", packet)
  end
  return text .. ", " .. value(velo_spec, "packet", "len", packet) .. " bytes"
end

function velo.dissector(buffer, info, tree)
  if buffer:len() < 2 * WORD_BYTES then
    return 0
  end
  info.cols.protocol = "VELO"
  local root = tree:add(velo, buffer())
  add_layout(root, "capture_place", "Cable", buffer(0, WORD_BYTES))
  local frame = add_layout(root, "capture_frame", "Frame", buffer(WORD_BYTES, WORD_BYTES))
  -- Its lower half, see capture_frame.
  add_layout(frame, "link_start", "Start word", buffer(WORD_BYTES, WORD_BYTES))
  local is_repeated = value(capture_spec, "capture_place", "repeated", buffer) == 1
  if is_repeated then
    frame:add_proto_expert_info(repeated)
  end

  local offset = 2 * WORD_BYTES
  local function is_there()
    return buffer:len() >= offset + WORD_BYTES
  end
  if is_there() and value(velo_spec, "route", "routed", buffer(offset):tvb()) == 1 then
    add_layout(root, "route", "Route", buffer(offset, WORD_BYTES))
    offset = offset + WORD_BYTES
  end
  if not is_there() then
    root:add_proto_expert_info(short)
    info.cols.info = "[short] no packet header"
    return buffer:len()
  end
  local packet = buffer(offset):tvb()
  local function of(name)
    return value(velo_spec, "packet", name, packet)
  end
  local kind = velo_spec.enums.packet_kind[of("kind")] or "kind " .. of("kind")
  local header = add_layout(root, "packet", "Packet: " .. describe(packet, kind),
    packet(0, WORD_BYTES))
  local is_fragment = of("frag") == 1
  info.cols.src = of("src_node") .. "." .. of("src_ctx")
  info.cols.dst = of("dst_node") .. "." .. of("dst_ctx")
  info.cols.info = describe(packet, kind) .. (is_repeated and " [repeated]" or "")

  local len = of("len")
  local there = packet:len() - WORD_BYTES
  if there < len then
    header:add_proto_expert_info(short)
    info.cols.info:append(" [short]")
  end
  local bytes = math.min(len, there)
  if bytes > 0 then
    dissect_payload(root, packet(WORD_BYTES, bytes):tvb(), kind, is_fragment)
  end
  return buffer:len()
end

DissectorTable.get("wtap_encap"):add(wtap["USER" .. capture_spec.constants.capture_link_type - DLT_USER0], velo)
