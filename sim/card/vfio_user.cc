// SPDX-License-Identifier: Apache-2.0
#include "vfio_user.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "config_space.h"

namespace sim::card
{

namespace
{

enum Command : uint16_t {
    kVersion = 1,
    kDmaMap = 2,
    kDmaUnmap = 3,
    kGetInfo = 4,
    kGetRegionInfo = 5,
    kGetIrqInfo = 7,
    kSetIrqs = 8,
    kRegionRead = 9,
    kRegionWrite = 10,
    kDmaRead = 11,
    kDmaWrite = 12,
    kReset = 13,
    kRegionWrites = 15,
};

// Flags of a header.
constexpr uint32_t kTypeMask = 0xf, kReply = 1, kNoReply = 0x10, kError = 0x20;

// Bodies, as they are on the wire; those that are as in <linux/vfio.h> begin with their own size.
struct Version {
    uint16_t major, minor;
};
struct DmaMap {
    uint32_t argsz, flags;
    uint64_t offset, address, size;
};
struct DmaUnmap {
    uint32_t argsz, flags;
    uint64_t address, size;
};
struct DeviceInfo {
    uint32_t argsz, flags, regions, irqs;
};
struct RegionInfo {
    uint32_t argsz, flags, index, cap_offset;
    uint64_t size, offset;
};
struct IrqInfo {
    uint32_t argsz, flags, index, count;
};
struct IrqSet {
    uint32_t argsz, flags, index, start, count;
};
struct Access {
    uint64_t offset;
    uint32_t region, count;
};
struct WriteOfMany {
    Access access;
    uint8_t data[8];
};
struct DmaAccess {
    uint64_t address, count;
};

constexpr uint32_t kMapRead = 1, kMapWrite = 2, kUnmapAll = 2;
constexpr uint32_t kDeviceResets = 1, kDeviceIsPci = 2;
constexpr uint32_t kRegionReadWrite = 3;
constexpr uint32_t kRegions = 9, kRegionConfig = 7, kBars = 6;
constexpr uint32_t kIrqs = 5, kIrqMsix = 2, kIrqByEventfd = 1;
constexpr uint32_t kSetNone = 1, kSetBool = 2, kSetEventfd = 4, kSetTrigger = 32;

constexpr size_t kDataBytesMax = 4096, kMessageBytesMax = 2 * kDataBytesMax;
constexpr size_t kInBytes = 65536, kOutBytesMax = 65536, kCommandsMax = 64;
// A message brings at most kFilesMax files. No more commands are taken while those that wait hold
// kFilesHeldMax. Files of messages that are not taken yet belong to at most two: one waits for its
// turn, and one has not come whole.
constexpr size_t kFilesMax = 16, kFilesHeldMax = 2 * kFilesMax, kFilesPendingMax = 2 * kFilesMax;

template <typename Body> bool parse(std::span<const uint8_t> bytes, Body &body)
{
    if (bytes.size() < sizeof body)
        return false;
    std::memcpy(&body, bytes.data(), sizeof body);
    return true;
}

template <typename Body> std::span<const uint8_t> bytes_of(const Body &body)
{
    return {reinterpret_cast<const uint8_t *>(&body), sizeof body};
}

uint64_t region_bytes(uint32_t region)
{
    if (region == kRegionConfig)
        return ConfigSpace::kBytes;
    return region < kBars ? ConfigSpace::bar_bytes(region) : 0;
}

bool in_region(const Access &access)
{
    uint64_t bytes = region_bytes(access.region);
    return access.count >= 1 && access.count <= bytes && access.offset <= bytes - access.count;
}

sockaddr_un address_of(const std::string &path)
{
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path)
        throw std::runtime_error("the socket's name has to have 1 to " +
                                 std::to_string(sizeof address.sun_path - 1) + " bytes: " + path);
    std::copy(path.begin(), path.end(), address.sun_path);
    return address;
}

Descriptor open_spare() { return Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

Descriptor open_socket()
{
    return Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// A simulator that was killed leaves its socket, at which nobody listens any more.
void remove_stale(const std::string &path, const sockaddr_un &address)
{
    struct stat status;
    if (lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode))
        return;
    Descriptor trial = open_socket();
    if (connect(trial.number(), reinterpret_cast<const sockaddr *>(&address), sizeof address) !=
            0 &&
        errno == ECONNREFUSED)
        unlink(path.c_str());
}

} // namespace

VfioUser::VfioUser(const std::string &path, Device &device)
    : path_(path), device_(device), listener_(open_socket()), spare_(open_spare()), in_(kInBytes)
{
    sockaddr_un address = address_of(path);
    remove_stale(path, address);
    // A process that may connect has the card: only this user's may.
    mode_t mask = umask(0177);
    int bound =
        bind(listener_.number(), reinterpret_cast<const sockaddr *>(&address), sizeof address);
    int error = errno;
    umask(mask);
    if (bound != 0)
        throw std::runtime_error(path + ": " + std::strerror(error));
    if (listen(listener_.number(), 1) != 0) {
        unlink(path.c_str());
        throw std::runtime_error(path + ": " + std::strerror(errno));
    }
}

VfioUser::~VfioUser() { unlink(path_.c_str()); }

pollfd VfioUser::waits_for() const
{
    if (!client_)
        return {listener_.number(), POLLIN, 0};
    auto events = static_cast<short>((takes_more() ? POLLIN : 0) | (out_.empty() ? 0 : POLLOUT));
    return {client_.number(), events, 0};
}

bool VfioUser::takes_more() const
{
    return commands_.size() < kCommandsMax && files_held_ < kFilesHeldMax;
}

void VfioUser::serve()
{
    if (!client_)
        accept_client();
    while (client_) {
        size_t bytes = in_bytes_;
        if (!take_messages())
            break;
        bool taken = in_bytes_ < bytes;
        while (!commands_.empty() && !waits_ && out_.size() < kOutBytesMax &&
               device_.takes_commands()) {
            Message message = std::move(commands_.front());
            commands_.pop_front();
            files_held_ -= message.files.size();
            carry_out(message);
        }
        if (!takes_more() || (!taken && !receive()))
            break;
    }
    if (commands_.empty())
        device_.pause();
    send_out();
}

void VfioUser::accept_client()
{
    // The one before may have left a reset behind.
    if (!device_.takes_commands())
        return;
    client_ =
        Descriptor(accept4(listener_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (client_ || (errno != EMFILE && errno != ENFILE))
        return;
    // There is no descriptor for this client. If it waited on, the listener would be ready for ever
    // and the simulator do nothing else: it is turned away, by the descriptor that is kept for
    // this.
    spare_ = Descriptor();
    {
        Descriptor refused(accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    }
    spare_ = open_spare();
}

void VfioUser::hang_up()
{
    client_ = Descriptor();
    negotiated_ = waits_ = false;
    in_bytes_ = 0;
    position_ = skip_ = 0;
    files_.clear();
    files_held_ = 0;
    commands_.clear();
    out_.clear();
    asked_.clear();
    for (Descriptor &vector : vectors_)
        vector = Descriptor();
    memory_.unmap_all();
    device_.gone();
}

// ----- messages

// False: nothing has come, or the client has gone.
bool VfioUser::receive()
{
    if (!client_ || in_bytes_ == in_.size())
        return false;
    alignas(cmsghdr) uint8_t control[CMSG_SPACE(kFilesMax * sizeof(int))];
    iovec to = {in_.data() + in_bytes_, in_.size() - in_bytes_};
    msghdr message = {};
    message.msg_iov = &to;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t bytes = recvmsg(client_.number(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (bytes <= 0) {
        hang_up();
        return false;
    }
    in_bytes_ += static_cast<size_t>(bytes);
    take_files(message);
    // Of files that the kernel left out nobody knows which they were.
    if (files_.size() > kFilesPendingMax || (message.msg_flags & MSG_CTRUNC) != 0) {
        hang_up();
        return false;
    }
    return true;
}

// The kernel ends a read with the bytes that files came with, so they belong to the message that
// has its last byte.
void VfioUser::take_files(const msghdr &message)
{
    for (const cmsghdr *part = CMSG_FIRSTHDR(&message); part;
         part = CMSG_NXTHDR(const_cast<msghdr *>(&message), const_cast<cmsghdr *>(part))) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t files = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < files; i++) {
            int file = -1;
            std::memcpy(&file, CMSG_DATA(part) + i * sizeof file, sizeof file);
            files_.push_back({position_ + in_bytes_, Descriptor(file)});
        }
    }
}

// Takes whole messages out of what has come. False: the client is gone.
bool VfioUser::take_messages()
{
    size_t at = 0;
    // The files that came with what lies before `at`.
    auto take_files_before = [&](auto take) {
        for (; !files_.empty() && files_.front().position <= position_ + at; files_.pop_front())
            take(std::move(files_.front().file));
    };
    while (takes_more()) {
        size_t left = in_bytes_ - at;
        if (skip_ > 0) {
            size_t skipped = std::min<uint64_t>(skip_, left);
            at += skipped;
            skip_ -= skipped;
            take_files_before([](Descriptor) {});
            if (skip_ > 0)
                break;
            continue;
        }
        Message message;
        if (!parse(std::span(in_).subspan(at, left), message.header))
            break;
        const Header &header = message.header;
        if (header.size < sizeof header) {
            hang_up();
            return false;
        }
        if (header.size > kMessageBytesMax) {
            refuse(header, E2BIG);
            skip_ = header.size;
            continue;
        }
        if (header.size > left)
            break;
        auto body = std::span(in_).subspan(at + sizeof header, header.size - sizeof header);
        message.body.assign(body.begin(), body.end());
        at += header.size;
        bool has_files = header.command == kDmaMap || header.command == kSetIrqs;
        take_files_before([&](Descriptor file) {
            if (has_files)
                message.files.push_back(std::move(file));
        });
        if (message.files.size() > kFilesMax) {
            refuse(header, EINVAL);
            continue;
        }
        // A reply is not kept back by commands that wait.
        if ((header.flags & kTypeMask) == kReply)
            take_reply(message);
        else {
            files_held_ += message.files.size();
            commands_.push_back(std::move(message));
        }
    }
    in_bytes_ -= at;
    position_ += at;
    std::memmove(in_.data(), in_.data() + at, in_bytes_);
    return true;
}

void VfioUser::carry_out(Message &message)
{
    const Header &header = message.header;
    int error = ENOTSUP;
    if ((header.flags & kTypeMask) != 0)
        error = EINVAL;
    else if (!negotiated_ && header.command != kVersion)
        error = EPROTO;
    else
        switch (header.command) {
        case kVersion:
            error = negotiate(message);
            break;
        case kDmaMap:
            error = map(message);
            break;
        case kDmaUnmap:
            error = unmap(message);
            break;
        case kGetInfo:
            error = describe_device(message);
            break;
        case kGetRegionInfo:
            error = describe_region(message);
            break;
        case kGetIrqInfo:
            error = describe_vectors(message);
            break;
        case kSetIrqs:
            error = set_vectors(message);
            break;
        case kRegionRead:
            error = read_region(message);
            break;
        case kRegionWrite:
            error = write_region(message);
            break;
        case kRegionWrites:
            error = write_regions(message);
            break;
        case kReset:
            waits_ = true;
            waiting_ = header;
            waiting_body_.clear();
            device_.reset();
            error = kAnswered;
            break;
        default:
            break;
        }
    if (error == 0)
        reply(header, {});
    else if (error != kAnswered)
        refuse(header, error);
}

void VfioUser::put(const Header &header, std::span<const uint8_t> body,
                   std::span<const uint8_t> data)
{
    Header whole = header;
    whole.size = static_cast<uint32_t>(sizeof whole + body.size() + data.size());
    for (auto part : {bytes_of(whole), body, data})
        out_.insert(out_.end(), part.begin(), part.end());
}

void VfioUser::reply(const Header &to, std::span<const uint8_t> body, std::span<const uint8_t> data)
{
    if ((to.flags & kNoReply) == 0)
        put({to.id, to.command, 0, kReply, 0}, body, data);
}

void VfioUser::refuse(const Header &to, int error)
{
    if ((to.flags & kNoReply) == 0)
        put({to.id, to.command, 0, kReply | kError, static_cast<uint32_t>(error)}, {});
}

void VfioUser::send_out()
{
    while (client_ && !out_.empty()) {
        ssize_t bytes =
            send(client_.number(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (bytes < 0)
            hang_up();
        else
            out_.erase(out_.begin(), out_.begin() + bytes);
    }
}

// ----- commands

int VfioUser::negotiate(const Message &message)
{
    Version version;
    if (negotiated_ || !parse(message.body, version))
        return EINVAL;
    if (version.major != 0)
        return ENOTSUP;
    auto text = std::span(message.body).subspan(sizeof version);
    if (!text.empty()) {
        auto json = nlohmann::json::parse(text.begin(), std::find(text.begin(), text.end(), 0),
                                          nullptr, false);
        if (text.back() != 0 || json.is_discarded() || !json.is_object())
            return EINVAL;
    }
    nlohmann::json own = {{"capabilities",
                           {{"max_msg_fds", kFilesMax},
                            {"max_data_xfer_size", kDataBytesMax},
                            {"write_multiple", true}}}};
    std::string own_text = own.dump();
    Version own_version = {0, std::min<uint16_t>(version.minor, 1)};
    negotiated_ = true;
    reply(message.header, bytes_of(own_version),
          {reinterpret_cast<const uint8_t *>(own_text.c_str()), own_text.size() + 1});
    return kAnswered;
}

int VfioUser::map(Message &message)
{
    DmaMap map;
    if (!parse(message.body, map) || map.argsz < sizeof map || message.files.size() > 1 ||
        (map.flags & ~(kMapRead | kMapWrite)) != 0 || map.flags == 0)
        return EINVAL;
    Descriptor none;
    return memory_.map(map.address, map.size,
                       {(map.flags & kMapRead) != 0, (map.flags & kMapWrite) != 0},
                       message.files.empty() ? none : message.files.front(), map.offset);
}

int VfioUser::unmap(const Message &message)
{
    DmaUnmap unmap;
    if (!parse(message.body, unmap) || unmap.argsz < sizeof unmap)
        return EINVAL;
    int error = 0;
    if (unmap.flags == kUnmapAll && unmap.address == 0 && unmap.size == 0)
        memory_.unmap_all();
    else if (unmap.flags != 0)
        return EINVAL;
    else
        error = memory_.unmap(unmap.address, unmap.size);
    if (error != 0)
        return error;
    reply(message.header, bytes_of(unmap));
    return kAnswered;
}

int VfioUser::describe_device(const Message &message)
{
    DeviceInfo info;
    if (!parse(message.body, info) || info.argsz < sizeof info)
        return EINVAL;
    info = {sizeof info, kDeviceResets | kDeviceIsPci, kRegions, kIrqs};
    reply(message.header, bytes_of(info));
    return kAnswered;
}

int VfioUser::describe_region(const Message &message)
{
    RegionInfo info;
    if (!parse(message.body, info) || info.argsz < sizeof info || info.index >= kRegions)
        return EINVAL;
    uint64_t bytes = region_bytes(info.index);
    info = {sizeof info, bytes ? kRegionReadWrite : 0, info.index, 0, bytes, 0};
    reply(message.header, bytes_of(info));
    return kAnswered;
}

int VfioUser::describe_vectors(const Message &message)
{
    IrqInfo info;
    if (!parse(message.body, info) || info.argsz < sizeof info || info.index >= kIrqs)
        return EINVAL;
    bool any = info.index == kIrqMsix;
    info = {sizeof info, any ? kIrqByEventfd : 0, info.index, any ? VELO_PCIE_VECTORS : 0};
    reply(message.header, bytes_of(info));
    return kAnswered;
}

int VfioUser::set_vectors(Message &message)
{
    IrqSet set;
    if (!parse(message.body, set) || set.argsz < sizeof set || set.index >= kIrqs)
        return EINVAL;
    uint32_t vectors = set.index == kIrqMsix ? VELO_PCIE_VECTORS : 0;
    if (set.start > vectors || set.count > vectors - set.start)
        return EINVAL;
    auto data = std::span(message.body).subspan(sizeof set);
    auto connect = [&](uint32_t vector, Descriptor file) {
        vectors_[vector] = std::move(file);
        device_.connect_vector(vector, static_cast<bool>(vectors_[vector]));
    };
    switch (set.flags) {
    case kSetTrigger | kSetNone:
        if (set.count == 0) // none any more
            for (uint32_t v = 0; v < vectors; v++)
                connect(v, Descriptor());
        for (uint32_t v = 0; v < set.count; v++)
            interrupt(set.start + v);
        return 0;
    case kSetTrigger | kSetBool:
        if (data.size() != set.count)
            return EINVAL;
        for (uint32_t v = 0; v < set.count; v++)
            if (data[v])
                interrupt(set.start + v);
        return 0;
    case kSetTrigger | kSetEventfd:
        if (set.count == 0 || (!message.files.empty() && message.files.size() != set.count) ||
            !std::all_of(message.files.begin(), message.files.end(),
                         [&](const Descriptor &file) { return events_.is_eventfd(file.number()); }))
            return EINVAL;
        for (uint32_t v = 0; v < set.count; v++)
            connect(set.start + v,
                    message.files.empty() ? Descriptor() : std::move(message.files[v]));
        return 0;
    default:
        return EINVAL;
    }
}

int VfioUser::read_region(const Message &message)
{
    Access access;
    if (!parse(message.body, access) || access.count > kDataBytesMax || !in_region(access))
        return EINVAL;
    if (access.region == kRegionConfig) {
        std::vector<uint8_t> bytes(access.count);
        device_.read_config(access.offset, bytes);
        reply(message.header, bytes_of(access), bytes);
        return kAnswered;
    }
    if (access.offset / 8 != (access.offset + access.count - 1) / 8)
        return EINVAL;
    waits_ = true;
    waiting_ = message.header;
    waiting_body_.assign(bytes_of(access).begin(), bytes_of(access).end());
    device_.load(access.region, access.offset, access.count);
    return kAnswered;
}

int VfioUser::store(uint32_t region, uint64_t offset, std::span<const uint8_t> bytes)
{
    if (region == kRegionConfig)
        device_.write_config(offset, bytes);
    else
        device_.store(region, offset, bytes);
    return 0;
}

int VfioUser::write_region(const Message &message)
{
    Access access;
    if (!parse(message.body, access) || access.count > kDataBytesMax || !in_region(access) ||
        message.body.size() != sizeof access + access.count)
        return EINVAL;
    store(access.region, access.offset, std::span(message.body).subspan(sizeof access));
    reply(message.header, bytes_of(access));
    return kAnswered;
}

int VfioUser::write_regions(const Message &message)
{
    uint64_t count = 0;
    if (!parse(message.body, count))
        return EINVAL;
    auto rest = std::span(message.body).subspan(sizeof count);
    if (count == 0 || rest.size() % sizeof(WriteOfMany) != 0 ||
        rest.size() / sizeof(WriteOfMany) != count)
        return EINVAL;
    std::vector<WriteOfMany> writes(count);
    std::memcpy(writes.data(), rest.data(), rest.size());
    // All or none.
    if (!std::all_of(writes.begin(), writes.end(), [](const WriteOfMany &write) {
            return in_region(write.access) && write.access.count <= sizeof write.data;
        }))
        return EINVAL;
    for (const WriteOfMany &write : writes)
        store(write.access.region, write.access.offset,
              std::span(write.data).first(write.access.count));
    reply(message.header, bytes_of(count));
    return kAnswered;
}

// ----- for the device

void VfioUser::loaded(std::span<const uint8_t> bytes)
{
    if (!waits_ || waiting_.command != kRegionRead)
        return;
    waits_ = false;
    reply(waiting_, waiting_body_, bytes);
}

void VfioUser::reset_done()
{
    if (!waits_ || waiting_.command != kReset)
        return;
    waits_ = false;
    reply(waiting_, {});
}

void VfioUser::interrupt(unsigned vector)
{
    const Descriptor &file = vectors_[vector];
    if (file)
        events_.signal(file.number());
}

void VfioUser::ask(uint16_t command, const Asked &asked, std::span<const uint8_t> data)
{
    if (!client_)
        return;
    while (asked_.contains(asked_id_))
        asked_id_++;
    DmaAccess access = {asked.address, asked.len_bytes};
    put({asked_id_, command, 0, 0, 0}, bytes_of(access), data);
    asked_[asked_id_++] = asked;
}

void VfioUser::ask_read(uint64_t ticket, uint64_t address, unsigned len_bytes)
{
    ask(kDmaRead, {ticket, address, len_bytes, true}, {});
}

void VfioUser::ask_write(uint64_t ticket, uint64_t address, std::span<const uint8_t> bytes)
{
    ask(kDmaWrite, {ticket, address, static_cast<unsigned>(bytes.size()), false}, bytes);
}

// One that fits no question is left alone: there is nobody to tell.
void VfioUser::take_reply(const Message &message)
{
    auto found = asked_.find(message.header.id);
    if (found == asked_.end() ||
        message.header.command != (found->second.reads ? kDmaRead : kDmaWrite))
        return;
    Asked asked = found->second;
    asked_.erase(found);
    DmaAccess access;
    auto body = std::span(message.body);
    bool done = (message.header.flags & kError) == 0;
    if (!asked.reads) {
        device_.answered(asked.ticket, done, {});
        return;
    }
    done = done && parse(body, access) && access.address == asked.address &&
           access.count == asked.len_bytes && body.size() == sizeof access + asked.len_bytes;
    device_.answered(asked.ticket, done, done ? body.subspan(sizeof access) : body.first(0));
}

} // namespace sim::card
