// Streams as the world outside of the core plays them.
//
// A cycle has two halves. drive(): before the clock edge each stream sets what it says in this cycle, from what it
// knew at the end of the last one. sample(): once the core's combinational logic has settled, it looks which transfers
// the edge will take. Valid is never withdrawn and a payload never changes before its transfer; the core is checked
// for the same.
#pragma once

#include <cstdint>
#include <cstring>

#include "verilated.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "Verilator's words are read as little-endian bytes");

namespace openmxu {

// Bits of a port, lowest first. Every port read through this is at most 128 bits wide.
template <typename Port>
inline unsigned __int128 bits_of(const Port& port) {
    static_assert(sizeof(Port) <= sizeof(unsigned __int128));
    unsigned __int128 value = 0;
    std::memcpy(&value, &port, sizeof(Port));
    return value;
}

inline uint64_t field(unsigned __int128 bits, unsigned offset, unsigned width) {
    const uint64_t value = static_cast<uint64_t>(bits >> offset);
    return width >= 64 ? value : value & ((uint64_t{1} << width) - 1);
}

// Numbers shared with library.py.
enum Error : uint32_t {
    NO_ERROR,
    MISALIGNED,
    EMPTY_BURST,
    OUT_OF_RANGE,
    WRONG_LAST,
    STROBE_OUT_OF_RANGE,
    VALID_WITHDRAWN,
    PAYLOAD_CHANGED,
    UNREQUESTED_RESPONSE,
};

enum Port : uint32_t {
    INSTRUCTIONS,
    HOST_READ_REQUEST,
    HOST_READ_DATA,
    HOST_WRITE_REQUEST,
    HOST_WRITE_DATA,
    HOST_WRITE_DONE,
    WEIGHTS_REQUEST,
    WEIGHTS_DATA,
    EVENTS,
    MANAGEMENT,
    MANAGEMENT_RESPONSE,
};
constexpr unsigned PORTS = MANAGEMENT_RESPONSE + 1;

// How streams stall; shared with library.py.
struct StallPattern {
    uint32_t threshold;  // the part of the time, times 2**32
    uint32_t cycles;     // how long at a time, on average
    uint32_t ports;      // which streams: one bit for each Port
};

// Flips of a biased coin from one generator (xorshift64*), so that a seed gives one run. Each decides for the next few
// cycles in which a stream could go on.
class Stalls {
public:
    Stalls(uint64_t seed, const StallPattern& pattern) : m_state{mix(seed)}, m_pattern{pattern} {}

    bool enabled() const { return m_pattern.threshold != 0; }
    bool operator()(Port port) {
        if (!enabled() || !(m_pattern.ports >> port & 1)) return false;
        Phase& phase = m_phases[port];
        if (phase.left == 0) phase = {1 + next() % (2 * m_pattern.cycles - 1), next() < m_pattern.threshold};
        --phase.left;
        return phase.stalls;
    }
    bool coin() { return next() >> 31; }
    uint8_t byte() { return static_cast<uint8_t>(next() >> 24); }

private:
    struct Phase {
        uint32_t left = 0;
        bool stalls = false;
    };

    static uint64_t mix(uint64_t seed) {
        seed += 0x9E3779B97F4A7C15u;
        seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9u;
        seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EBu;
        seed ^= seed >> 31;
        return seed ? seed : 1;  // 0 is the one state that the generator never leaves
    }
    uint32_t next() {
        m_state ^= m_state >> 12;
        m_state ^= m_state << 25;
        m_state ^= m_state >> 27;
        return static_cast<uint32_t>((m_state * 0x2545F4914F6CDD1Du) >> 32);
    }

    uint64_t m_state;
    StallPattern m_pattern;
    Phase m_phases[PORTS];
};

// Cycles that a memory needs for a beat, at least 1, as a fraction in lowest terms; shared with library.py.
struct BeatTime {
    uint64_t numerator;
    uint64_t denominator;
};

// Holds back beats for a memory of limited rate. Of beats that wait for their turn, number n goes n beat times after the
// first, rounded down; time in which none waits is lost.
class Pace {
public:
    explicit Pace(const BeatTime& time)
        : m_whole{time.numerator / time.denominator},
          m_rest{time.numerator % time.denominator},
          m_denominator{time.denominator} {}

    bool allows(uint64_t cycle) const { return m_cycle <= cycle; }

    // A beat goes in this cycle.
    void spend(uint64_t cycle) {
        if (m_cycle < cycle) {
            m_cycle = cycle;
            m_part = 0;
        }
        m_cycle += m_whole;
        m_part += m_rest;
        if (m_part >= m_denominator) {
            m_part -= m_denominator;
            ++m_cycle;
        }
    }

    void reset() { m_cycle = m_part = 0; }

private:
    const uint64_t m_whole;
    const uint64_t m_rest;
    const uint64_t m_denominator;
    uint64_t m_cycle = 0;  // of the next beat, and the part of a cycle behind it
    uint64_t m_part = 0;
};

// What all channels share: the clock, the stalls, the first error.
struct World {
    Stalls stalls;
    uint32_t latency;
    uint64_t cycle = 0;
    uint64_t last_transfer = 0;
    uint32_t error = NO_ERROR;
    uint32_t error_port = 0;
    uint64_t error_address = 0;
    uint64_t error_beats = 0;

    void fail(Error kind, Port port, uint64_t address = 0, uint64_t beats = 0) {
        if (error != NO_ERROR) return;
        error = kind;
        error_port = port;
        error_address = address;
        error_beats = beats;
    }
};

// A stream that the core drives.
template <typename Payload>
class Sink {
public:
    Sink(World& world, Port port, const Payload& payload, const CData& valid, CData& ready)
        : m_world{world}, m_port{port}, m_payload{payload}, m_valid{valid}, m_ready{ready} {}

    void drive(bool may_take = true) { m_ready = may_take && !m_world.stalls(m_port); }

    // Whether a transfer takes place at the coming edge.
    bool sample() {
        if (!m_valid) {
            if (m_waiting) m_world.fail(VALID_WITHDRAWN, m_port);
            return false;
        }
        if (m_waiting && std::memcmp(&m_held, &m_payload, sizeof(Payload)) != 0) m_world.fail(PAYLOAD_CHANGED, m_port);
        m_waiting = !m_ready;
        if (m_waiting) std::memcpy(&m_held, &m_payload, sizeof(Payload));
        return m_ready;
    }

    const Payload& payload() const { return m_payload; }

    void reset() {
        m_waiting = false;
        m_ready = 0;
    }

private:
    World& m_world;
    Port m_port;
    const Payload& m_payload;
    const CData& m_valid;
    CData& m_ready;
    Payload m_held{};
    bool m_waiting = false;
};

// A stream that drives the core.
template <typename Payload>
class Source {
public:
    // With stalls, the bits of `noise` in the first byte of a payload that is not valid are random.
    Source(World& world, Port port, Payload& payload, CData& valid, const CData& ready, uint8_t noise)
        : m_world{world}, m_port{port}, m_payload{payload}, m_valid{valid}, m_ready{ready}, m_noise{noise} {}

    // Whether a new payload may be offered in this cycle.
    bool may_offer(bool available) {
        if (m_valid && !m_taken) return false;
        m_valid = 0;
        if (available && !m_world.stalls(m_port)) return true;
        if (m_world.stalls.enabled()) *reinterpret_cast<uint8_t*>(&m_payload) ^= m_noise & m_world.stalls.byte();
        return false;
    }

    // Offers what has been written to payload().
    void offer() { m_valid = 1; }

    bool sample() { return m_taken = m_valid && m_ready; }

    bool offering() const { return m_valid && !m_taken; }
    Payload& payload() { return m_payload; }

    void reset() {
        m_valid = 0;
        m_taken = false;
    }

private:
    World& m_world;
    Port m_port;
    Payload& m_payload;
    CData& m_valid;
    const CData& m_ready;
    const uint8_t m_noise;
    bool m_taken = false;
};

}  // namespace openmxu
