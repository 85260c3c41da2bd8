// SPDX-License-Identifier: Apache-2.0
//
// The vfio-user protocol, server's side (QEMU's docs/interop/vfio-user.rst, version 0): a socket,
// at which one client at a time has a PCI device.
//
// All that comes over the socket may be hostile. Each message is checked before the device hears of
// it; a wrong one gets an error as its reply and changes nothing. Only what leaves no way to find
// the next message ends the connection.

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include "descriptor.h"
#include "event.h"
#include "guest_memory.h"
#include "velo/pcie_spec.h"

namespace sim::card
{

// The device behind a socket. Offsets and sizes are within the region.
class Device
{
  public:
    virtual ~Device() = default;

    // Commands wait while this is false.
    virtual bool takes_commands() const = 0;
    // No further command has come yet.
    virtual void pause() = 0;
    virtual void store(unsigned bar, uint64_t offset, std::span<const uint8_t> bytes) = 0;
    // Bytes of one aligned word of 8. Answered by VfioUser::loaded().
    virtual void load(unsigned bar, uint64_t offset, unsigned len_bytes) = 0;
    virtual void write_config(uint64_t offset, std::span<const uint8_t> bytes) = 0;
    virtual void read_config(uint64_t offset, std::span<uint8_t> bytes) const = 0;
    // Answered by VfioUser::reset_done().
    virtual void reset() = 0;
    // The client wants to hear of a vector's interrupts, or does not any more.
    virtual void connect_vector(unsigned vector, bool connected) = 0;
    // What VfioUser::ask() was for. Of a read, `bytes` are as many as were asked for; none:
    // refused.
    virtual void answered(uint64_t ticket, bool done, std::span<const uint8_t> bytes) = 0;
    // The client has gone, and its memory with it.
    virtual void gone() = 0;
};

class VfioUser
{
  public:
    // Listens. Throws std::runtime_error if it cannot.
    VfioUser(const std::string &path, Device &device);
    ~VfioUser();
    VfioUser(const VfioUser &) = delete;
    VfioUser &operator=(const VfioUser &) = delete;

    bool connected() const { return static_cast<bool>(client_); }
    const GuestMemory &memory() const { return memory_; }
    bool vector_connected(unsigned vector) const { return static_cast<bool>(vectors_[vector]); }

    // What to wait for until serve() has something to do, unless it has already.
    pollfd waits_for() const;
    bool has_work() const { return !commands_.empty() || !out_.empty(); }
    // Takes what has come, as far as the device takes it, and sends what is due. Never waits.
    void serve();

    // --- for the device ---
    void loaded(std::span<const uint8_t> bytes);
    void reset_done();
    void interrupt(unsigned vector);
    // Have the client read or write its memory. With no client, nothing happens.
    void ask_read(uint64_t ticket, uint64_t address, unsigned len_bytes);
    void ask_write(uint64_t ticket, uint64_t address, std::span<const uint8_t> bytes);

  private:
    struct Header {
        uint16_t id, command;
        uint32_t size, flags, error;
    };
    struct Message {
        Header header;
        std::vector<uint8_t> body;
        std::vector<Descriptor> files;
    };
    struct File {
        uint64_t position; // in the stream, of the last byte that came with it
        Descriptor file;
    };
    struct Asked {
        uint64_t ticket, address;
        unsigned len_bytes;
        bool reads;
    };

    std::string path_;
    Device &device_;
    Events events_;
    // `spare_` makes room for a client that has to be turned away when descriptors have run out.
    Descriptor listener_, spare_, client_;
    bool negotiated_ = false;
    std::vector<uint8_t> in_; // came, and is not a whole message yet
    size_t in_bytes_ = 0;
    uint64_t position_ = 0, skip_ = 0; // of in_ in the stream; bytes to be left out
    std::deque<File> files_;
    std::deque<Message> commands_;
    size_t files_held_ = 0; // of commands_
    std::vector<uint8_t> out_;
    bool waits_ = false; // the device is to answer waiting_
    Header waiting_{};
    std::vector<uint8_t> waiting_body_;
    std::map<uint16_t, Asked> asked_;
    uint16_t asked_id_ = 0;
    std::array<Descriptor, VELO_PCIE_VECTORS> vectors_;
    GuestMemory memory_;

    bool takes_more() const;
    void accept_client();
    void hang_up();
    bool receive();
    void take_files(const msghdr &message);
    bool take_messages();
    void take_reply(const Message &message);
    void carry_out(Message &message);
    void send_out();

    void reply(const Header &to, std::span<const uint8_t> body, std::span<const uint8_t> data = {});
    void refuse(const Header &to, int error);
    void finish(const Header &to, int error, std::span<const uint8_t> body);
    void put(const Header &header, std::span<const uint8_t> body,
             std::span<const uint8_t> data = {});
    void ask(uint16_t command, const Asked &asked, std::span<const uint8_t> data);

    // Each returns 0 or an errno. If it returns kAnswered, it has dealt with the reply.
    static constexpr int kAnswered = -1;
    int negotiate(const Message &message);
    int map(Message &message);
    int unmap(const Message &message);
    int describe_device(const Message &message);
    int describe_region(const Message &message);
    int describe_vectors(const Message &message);
    int set_vectors(Message &message);
    int read_region(const Message &message);
    int write_region(const Message &message);
    int write_regions(const Message &message);
    int store(uint32_t region, uint64_t offset, std::span<const uint8_t> bytes);
};

} // namespace sim::card
