// Memories behind AXI channels, as the world outside of the shell plays them.
//
// They keep the time of streams.h: drive() before the clock edge, sample() once the model has settled. The shell is
// checked for what AXI asks of a manager.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>

#include "channels.h"
#include "streams.h"

namespace openmxu {

// Shared with axi.py; they continue Error of streams.h.
constexpr Error CROSSES_PAGE{100};
constexpr Error WRONG_BURST{101};

constexpr uint64_t PAGE = 4096;

template <typename Address>
struct AddressPins {
    const Address& addr;
    const CData& len;
    const CData& size;
    const CData& burst;
    const CData& valid;
    CData& ready;
};

template <typename Data>
struct ReadPins {
    Data& data;
    CData& resp;
    CData& last;
    CData& valid;
    const CData& ready;
};

template <typename Data, typename Strobe>
struct WritePins {
    const Data& data;
    const Strobe& strb;
    const CData& last;
    const CData& valid;
    CData& ready;
};

struct ReplyPins {
    CData& resp;
    CData& valid;
    const CData& ready;
};

// Bytes of a memory, counted from its base, whose bursts are not answered with OKAY. Shared with axi.py.
constexpr uint32_t SILENCE = 4;  // rather than a response: no answer at all

struct Trouble {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint32_t response = 0;

    uint32_t of(uint64_t address, uint64_t bytes) const {
        return address < end && begin < address + bytes ? response : 0;
    }
};

struct Span {
    uint64_t address;
    uint64_t beats;
};

// What a channel says until it is taken: neither valid nor payload may change before.
template <typename Payload>
class Held {
public:
    // Whether a transfer takes place at the coming edge.
    bool sample(World& world, Port port, bool valid, bool ready, const Payload& payload) {
        if (!valid && m_waiting) world.fail(VALID_WITHDRAWN, port);
        if (valid && m_waiting && std::memcmp(&m_payload, &payload, sizeof(Payload)) != 0) {
            world.fail(PAYLOAD_CHANGED, port);
        }
        m_waiting = valid && !ready;
        if (m_waiting) std::memcpy(&m_payload, &payload, sizeof(Payload));
        return valid && ready;
    }
    void reset() { m_waiting = false; }

private:
    Payload m_payload{};
    bool m_waiting = false;
};

// An address channel: bursts that AXI allows and that lie inside the memory.
template <unsigned BYTES, typename Address>
class Addresses {
public:
    Addresses(World& world, const Memory& memory, Port port, AddressPins<Address> pins)
        : m_world{world}, m_memory{memory}, m_port{port}, m_pins{pins} {}

    void drive() { m_pins.ready = !m_world.stalls(m_port); }

    // Whether a burst is taken at the coming edge; its address counts from the memory's base.
    bool sample(Span& burst) {
        burst = {static_cast<uint64_t>(m_pins.addr), uint64_t{m_pins.len} + 1};
        if (!m_held.sample(m_world, m_port, m_pins.valid, m_pins.ready, burst)) return false;
        m_world.last_transfer = m_world.cycle;
        const uint64_t last = burst.address + burst.beats * BYTES - 1;
        if (uint64_t{1} << m_pins.size != BYTES || m_pins.burst != 1) {
            m_world.fail(WRONG_BURST, m_port, burst.address, burst.beats);
            return false;
        }
        if (burst.address / PAGE != last / PAGE) {
            m_world.fail(CROSSES_PAGE, m_port, burst.address, burst.beats);
            return false;
        }
        if (!m_memory.check<BYTES>(m_world, m_port, burst.address, burst.beats)) return false;
        burst.address -= m_memory.base;
        return true;
    }

    void reset() {
        m_held.reset();
        m_pins.ready = 0;
    }

private:
    World& m_world;
    const Memory& m_memory;
    const Port m_port;
    AddressPins<Address> m_pins;
    Held<Span> m_held;
};

// Read channels: bursts in order, the first beat at the earliest `latency` cycles after its address, and beats at most one
// each beat time.
template <unsigned BYTES, typename Address, typename Data>
class AxiReads {
public:
    AxiReads(World& world, const Memory& memory, const Trouble& trouble, const BeatTime& time, Port address_port,
             Port data_port, AddressPins<Address> ar, ReadPins<Data> r)
        : m_world{world},
          m_memory{memory},
          m_trouble{trouble},
          m_pace{time},
          m_data_port{data_port},
          m_addresses{world, memory, address_port, ar},
          m_r{r} {
        static_assert(sizeof(Data) == BYTES);
    }

    void drive() {
        m_addresses.drive();
        if (m_r.valid && !m_taken) return;
        m_r.valid = 0;
        if (m_bursts.empty() || m_bursts.front().first_cycle > m_world.cycle || m_world.stalls(m_data_port)) return;
        if (!m_pace.allows(m_world.cycle)) return;
        Burst& burst = m_bursts.front();
        const uint32_t response = m_trouble.of(burst.address, BYTES);
        if (response == SILENCE) return;
        m_pace.spend(m_world.cycle);
        const uint64_t available = burst.address < m_memory.length ? m_memory.length - burst.address : 0;
        std::memset(&m_r.data, 0, BYTES);
        std::memcpy(&m_r.data, m_memory.bytes + burst.address, available < BYTES ? available : BYTES);
        burst.address += BYTES;
        m_r.valid = 1;
        m_r.resp = response;
        m_r.last = --burst.beats == 0;
        if (m_r.last) m_bursts.pop_front();
    }

    void sample() {
        m_taken = m_r.valid && m_r.ready;
        if (m_taken) {
            m_world.last_transfer = m_world.cycle;
            ++m_beats;
        }
        Span burst;
        if (m_addresses.sample(burst)) m_bursts.push_back({burst.address, burst.beats, m_world.cycle + m_world.latency});
    }

    uint64_t beats() const { return m_beats; }

    void reset() {
        m_addresses.reset();
        m_pace.reset();
        m_bursts.clear();
        m_r.valid = 0;
        m_taken = false;
    }

private:
    struct Burst {
        uint64_t address;
        uint64_t beats;
        uint64_t first_cycle;
    };

    World& m_world;
    const Memory& m_memory;
    const Trouble& m_trouble;
    Pace m_pace;
    const Port m_data_port;
    Addresses<BYTES, Address> m_addresses;
    ReadPins<Data> m_r;
    std::deque<Burst> m_bursts;
    bool m_taken = false;
    uint64_t m_beats = 0;
};

// Write channels: addresses and data in any order, beats at most one each beat time; replies in order, at the earliest
// `latency` cycles after a burst's last beat. Bytes are visible with the reply, not before.
template <unsigned BYTES, typename Address, typename Data, typename Strobe>
class AxiWrites {
public:
    AxiWrites(World& world, const Memory& memory, const Trouble& trouble, const BeatTime& time, AddressPins<Address> aw,
              WritePins<Data, Strobe> w, ReplyPins b)
        : m_world{world},
          m_memory{memory},
          m_trouble{trouble},
          m_pace{time},
          m_addresses{world, memory, HOST_WRITE_REQUEST, aw},
          m_w{w},
          m_b{b} {
        static_assert(sizeof(Data) == BYTES && sizeof(Strobe) * 8 >= BYTES);
    }

    void drive() {
        m_addresses.drive();
        m_w.ready = !m_world.stalls(HOST_WRITE_DATA) && m_pace.allows(m_world.cycle);
        if (m_b.valid && !m_taken) return;
        m_b.valid = 0;
        if (m_complete == 0 || m_bursts.front().reply_cycle > m_world.cycle || m_world.stalls(HOST_WRITE_DONE)) return;
        const Burst& burst = m_bursts.front();
        const uint32_t response = m_trouble.of(burst.address, burst.beats * BYTES);
        if (response == SILENCE) return;
        for (uint64_t i = 0; i != burst.beats; ++i, m_beats.pop_front()) store(burst.address + i * BYTES, m_beats.front());
        m_bursts.pop_front();
        --m_complete;
        m_b.valid = 1;
        m_b.resp = response;
    }

    void sample() {
        m_taken = m_b.valid && m_b.ready;
        if (m_taken) m_world.last_transfer = m_world.cycle;
        Span span;
        if (m_addresses.sample(span)) m_bursts.push_back({span.address, span.beats, 0});
        Beat beat{};
        std::memcpy(beat.bytes, &m_w.data, BYTES);
        beat.strobe = static_cast<uint64_t>(m_w.strb);
        beat.last = m_w.last;
        if (m_held.sample(m_world, HOST_WRITE_DATA, m_w.valid, m_w.ready, beat)) {
            m_world.last_transfer = m_world.cycle;
            m_pace.spend(m_world.cycle);
            m_beats.push_back(beat);
            ++m_count;
        }
        // The oldest bursts without all of their beats.
        while (m_complete != m_bursts.size() && m_beats.size() >= m_met + m_bursts[m_complete].beats) {
            Burst& burst = m_bursts[m_complete];
            for (uint64_t i = 0; i != burst.beats; ++i) {
                if (m_beats[m_met + i].last != (i + 1 == burst.beats)) {
                    m_world.fail(WRONG_LAST, HOST_WRITE_DATA, m_memory.base + burst.address, burst.beats);
                }
            }
            burst.reply_cycle = m_world.cycle + m_world.latency;
            m_met += burst.beats;
            ++m_complete;
        }
    }

    uint64_t beats() const { return m_count; }

    void reset() {
        m_addresses.reset();
        m_held.reset();
        m_pace.reset();
        m_bursts.clear();
        m_beats.clear();
        m_complete = m_met = 0;
        m_w.ready = 0;
        m_b.valid = 0;
        m_taken = false;
    }

private:
    struct Beat {
        uint8_t bytes[BYTES];
        uint64_t strobe;
        uint64_t last;
    };

    struct Burst {
        uint64_t address;
        uint64_t beats;
        uint64_t reply_cycle;
    };

    void store(uint64_t address, const Beat& beat) {
        for (unsigned i = 0; i != BYTES; ++i) {
            if (!(beat.strobe >> i & 1)) continue;
            if (address + i < m_memory.length) {
                m_memory.bytes[address + i] = beat.bytes[i];
            } else {
                m_world.fail(STROBE_OUT_OF_RANGE, HOST_WRITE_DATA, m_memory.base + address + i);
            }
        }
        --m_met;
    }

    World& m_world;
    const Memory& m_memory;
    const Trouble& m_trouble;
    Pace m_pace;
    Addresses<BYTES, Address> m_addresses;
    WritePins<Data, Strobe> m_w;
    ReplyPins m_b;
    Held<Beat> m_held;
    std::deque<Burst> m_bursts;  // the first m_complete have all their beats
    std::deque<Beat> m_beats;    // not yet visible; the first m_met belong to complete bursts
    uint64_t m_complete = 0;
    uint64_t m_met = 0;
    uint64_t m_count = 0;
    bool m_taken = false;
};

}  // namespace openmxu
