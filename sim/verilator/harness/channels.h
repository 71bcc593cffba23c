// Memory channels as the world outside of the core plays them.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>

#include "streams.h"

namespace openmxu {

// What is behind a port; shared with library.py.
struct Memory {
    uint8_t* bytes = nullptr;
    uint64_t length = 0;
    uint64_t base = 0;  // the address of the first byte; a multiple of every beat

    // Whether a burst stays inside; its last beat may reach over the end of a memory that is no multiple of a beat.
    template <unsigned BYTES>
    bool check(World& world, Port port, uint64_t address, uint64_t beats) const {
        const uint64_t offset = address - base;  // below the base: far beyond the end
        const uint64_t end = (length + BYTES - 1) / BYTES * BYTES;
        if (beats == 0) {
            world.fail(EMPTY_BURST, port, address, beats);
        } else if (offset % BYTES != 0) {
            world.fail(MISALIGNED, port, address, beats);
        } else if (offset > end || beats > (end - offset) / BYTES) {
            world.fail(OUT_OF_RANGE, port, address, beats);
        } else {
            return true;
        }
        return false;
    }
};

// A memory's read port: bursts in order, the first beat at the earliest `latency` cycles after its request, and beats at
// most one each beat time. Bytes are read when their beat is offered.
template <unsigned ADDRESS_WIDTH, unsigned BYTES, typename Request, typename Data>
class ReadChannel {
public:
    ReadChannel(World& world, Memory& memory, Port port, const BeatTime& time, Sink<Request> request, Source<Data> data)
        : m_world{world}, m_memory{memory}, m_port{port}, m_pace{time}, m_request{request}, m_data{data} {
        static_assert(sizeof(Data) == BYTES);
    }

    void drive() {
        m_request.drive();
        const bool is_due = !m_bursts.empty() && m_bursts.front().first_cycle <= m_world.cycle;
        if (!m_data.may_offer(is_due && m_pace.allows(m_world.cycle))) return;
        m_pace.spend(m_world.cycle);
        Burst& burst = m_bursts.front();
        uint8_t* payload = reinterpret_cast<uint8_t*>(&m_data.payload());
        const uint64_t available = burst.address < m_memory.length ? m_memory.length - burst.address : 0;
        if (available >= BYTES) {
            std::memcpy(payload, m_memory.bytes + burst.address, BYTES);
        } else {
            std::memset(payload, 0, BYTES);
            std::memcpy(payload, m_memory.bytes + burst.address, available);
        }
        m_data.offer();
        burst.address += BYTES;
        if (--burst.beats == 0) m_bursts.pop_front();
    }

    void sample() {
        if (m_data.sample()) m_world.last_transfer = m_world.cycle;
        if (!m_request.sample()) return;
        m_world.last_transfer = m_world.cycle;
        const auto bits = bits_of(m_request.payload());
        const uint64_t address = field(bits, 0, ADDRESS_WIDTH);
        const uint64_t beats = field(bits, ADDRESS_WIDTH, 32);
        if (!m_memory.check<BYTES>(m_world, m_port, address, beats)) return;
        m_bursts.push_back({address - m_memory.base, beats, m_world.cycle + m_world.latency});
    }

    uint64_t outstanding() const {
        uint64_t beats = m_data.offering();
        for (const Burst& burst : m_bursts) beats += burst.beats;
        return beats;
    }

    bool idle() const { return m_bursts.empty() && !m_data.offering(); }

    void reset() {
        m_request.reset();
        m_data.reset();
        m_pace.reset();
        m_bursts.clear();
    }

private:
    struct Burst {
        uint64_t address;  // from the memory's base
        uint64_t beats;
        uint64_t first_cycle;
    };

    World& m_world;
    Memory& m_memory;
    Port m_port;
    Pace m_pace;
    Sink<Request> m_request;
    Source<Data> m_data;
    std::deque<Burst> m_bursts;
};

// A memory's write port: bursts in order; requests and data come in any order, beats at most one each beat time; `done`
// at the earliest `latency` cycles after the later of a burst's request and its last beat. Without stalls bytes are
// visible as soon as request and beat have met; with stalls some bursts become visible only with their `done`, which is
// all that the port promises.
template <unsigned ADDRESS_WIDTH, unsigned BYTES, typename Request, typename Data>
class WriteChannel {
public:
    WriteChannel(World& world, Memory& memory, const BeatTime& time, Sink<Request> request, Sink<Data> data,
                 Source<CData> done)
        : m_world{world}, m_memory{memory}, m_pace{time}, m_request{request}, m_data{data}, m_done{done} {
        static_assert(sizeof(Data) * 8 > 9 * BYTES);
    }

    void drive() {
        m_request.drive();
        m_data.drive(m_pace.allows(m_world.cycle));
        if (!m_done.may_offer(m_complete != 0 && m_bursts.front().done_cycle <= m_world.cycle)) return;
        const Burst burst = m_bursts.front();
        m_bursts.pop_front();
        --m_complete;
        if (burst.late) {
            for (uint64_t i = 0; i != burst.beats; ++i, m_held.pop_front()) {
                store(burst.address + i * BYTES, m_held.front());
            }
        }
        m_done.offer();
    }

    void sample() {
        if (m_done.sample()) m_world.last_transfer = m_world.cycle;
        const bool request = m_request.sample();
        const bool data = m_data.sample();
        if (!request && !data) return;
        m_world.last_transfer = m_world.cycle;
        if (request) {
            const auto bits = bits_of(m_request.payload());
            const uint64_t address = field(bits, 0, ADDRESS_WIDTH);
            const uint64_t beats = field(bits, ADDRESS_WIDTH, 32);
            if (!m_memory.check<BYTES>(m_world, HOST_WRITE_REQUEST, address, beats)) return;
            // A burst behind a late one is late too, or the older bytes would win.
            const bool behind = !m_bursts.empty() && m_bursts.back().late;
            const bool late = m_world.stalls.enabled() && (m_world.stalls.coin() || behind);
            m_bursts.push_back({address - m_memory.base, beats, 0, 0, late});
        }
        if (data) {
            m_pace.spend(m_world.cycle);
            Beat beat;
            const uint8_t* payload = reinterpret_cast<const uint8_t*>(&m_data.payload());
            uint64_t flags[2] = {0, 0};  // strobe bits, and above them `last`
            std::memcpy(beat.bytes, payload, BYTES);
            std::memcpy(flags, payload + BYTES, BYTES / 8 + 1);
            beat.strobe = BYTES == 64 ? flags[0] : flags[0] & FULL;
            beat.last = flags[BYTES / 64] >> (BYTES % 64) & 1;
            m_waiting.push_back(beat);
        }
        while (!m_waiting.empty() && m_complete != m_bursts.size()) meet();
    }

    uint64_t unanswered() const { return m_bursts.size() + m_done.offering(); }
    uint64_t missing_beats() const {
        uint64_t beats = 0;
        for (const Burst& burst : m_bursts) beats += burst.beats - burst.received;
        return beats;
    }
    uint64_t unrequested_beats() const { return m_waiting.size(); }

    bool idle() const { return m_bursts.empty() && m_waiting.empty() && !m_done.offering(); }

    void reset() {
        m_request.reset();
        m_data.reset();
        m_done.reset();
        m_pace.reset();
        m_bursts.clear();
        m_waiting.clear();
        m_held.clear();
        m_complete = 0;
    }

private:
    static constexpr uint64_t FULL = BYTES == 64 ? ~uint64_t{0} : (uint64_t{1} << (BYTES % 64)) - 1;

    struct Beat {
        uint8_t bytes[BYTES];
        uint64_t strobe;
        bool last;
    };

    struct Burst {
        uint64_t address;  // from the memory's base
        uint64_t beats;
        uint64_t received;
        uint64_t done_cycle;
        bool late;
    };

    // The oldest beat without a burst meets the oldest burst without all of its beats.
    void meet() {
        Burst& burst = m_bursts[m_complete];
        const Beat& beat = m_waiting.front();
        const uint64_t address = burst.address + burst.received * BYTES;
        ++burst.received;
        if (beat.last != (burst.received == burst.beats)) {
            m_world.fail(WRONG_LAST, HOST_WRITE_DATA, m_memory.base + address, burst.beats);
        }
        if (burst.late) {
            m_held.push_back(beat);
        } else {
            store(address, beat);
        }
        m_waiting.pop_front();
        if (burst.received == burst.beats) {
            burst.done_cycle = m_world.cycle + m_world.latency;
            ++m_complete;
        }
    }

    void store(uint64_t address, const Beat& beat) {
        if (beat.strobe == FULL && address + BYTES <= m_memory.length) {
            std::memcpy(m_memory.bytes + address, beat.bytes, BYTES);
            return;
        }
        for (unsigned i = 0; i != BYTES; ++i) {
            if (!(beat.strobe >> i & 1)) continue;
            if (address + i < m_memory.length) {
                m_memory.bytes[address + i] = beat.bytes[i];
            } else {
                m_world.fail(STROBE_OUT_OF_RANGE, HOST_WRITE_DATA, m_memory.base + address + i);
            }
        }
    }

    World& m_world;
    Memory& m_memory;
    Pace m_pace;
    Sink<Request> m_request;
    Sink<Data> m_data;
    Source<CData> m_done;
    std::deque<Burst> m_bursts;  // the first m_complete have all their beats
    std::deque<Beat> m_waiting;  // beats whose request has not come
    std::deque<Beat> m_held;     // beats of late bursts, not yet visible
    uint64_t m_complete = 0;
};

}  // namespace openmxu
