// One openmxu core with its memories and everything else around it.
//
// layout.h is generated for each configuration: the widths of the ports, the numbers that Python and this file share,
// and the table of the model's memories.
#pragma once

#include <deque>
#include <vector>

#include "Vopenmxu_core.h"
#include "Vopenmxu_core___024root.h"
#include "channels.h"
#include "layout.h"

#if defined(OPENMXU_TRACE_VCD)
#include "verilated_vcd_c.h"
using Trace = VerilatedVcdC;
#elif defined(OPENMXU_TRACE_FST)
#include "verilated_fst_c.h"
using Trace = VerilatedFstC;
#elif defined(OPENMXU_COVERAGE)
#include <string>

#include "verilated_cov.h"
#endif

// Verilator writes the second of two underscores of a name as ___05F.
#define PORT(stream, member) m_root.stream##___05F##member
#define PAYLOAD(stream) decltype(Vopenmxu_core___024root::stream##___05Fpayload)
#define SINK(number, stream) {m_world, number, PORT(stream, payload), PORT(stream, valid), PORT(stream, ready)}
#define SOURCE(number, stream, noise) \
    {m_world, number, PORT(stream, payload), PORT(stream, valid), PORT(stream, ready), noise}

namespace openmxu {

// Numbers and structures shared with library.py.
enum Result : uint32_t { RUNNING, ENDED, FAULTED, NO_TRANSFERS, FAILED };

struct Event {
    uint32_t kind;
    uint32_t fault;
    uint32_t tag;
    uint32_t index;
};

// Bits of the probes, from this cycle on.
struct Change {
    uint64_t cycle;
    uint64_t bits;
};

// Cycles of programs that a waveform has, both inclusive; cycle 0 is the one in which the first instruction is taken.
struct Window {
    uint64_t first;
    uint64_t last;
    uint32_t is_given;  // else the waveform has every cycle
};

struct Status {
    uint64_t cycle;
    uint64_t busy_cycles;      // in which the output `busy` was set
    uint64_t finished_cycles;  // in which the output `finished` was set
    uint64_t instructions_taken;
    uint64_t host_read_beats;
    uint64_t host_write_unanswered;
    uint64_t host_write_missing_beats;
    uint64_t host_write_unrequested_beats;
    uint64_t weights_beats;
    uint64_t error_address;
    uint64_t error_beats;
    uint32_t error;
    uint32_t error_port;
    uint32_t valid;  // one bit for each Port
    uint32_t ready;
    uint32_t quiet;  // nothing is under way between core and world
};

class Harness {
public:
    // `fault` is one of those planted in the design, if it is one with faults; 0 is none.
    Harness(uint64_t seed, const StallPattern& stalls, uint32_t latency, const BeatTime& host, const BeatTime& weights,
            const char* trace, uint32_t fault, const Window& window)
        : m_world{{seed, stalls}, latency}, m_host_time{host}, m_weight_time{weights}, m_window{window} {
#if defined(OPENMXU_SELECTOR)
        m_root.OPENMXU_SELECTOR = fault;
#else
        (void)fault;
#endif
#if defined(OPENMXU_TRACE_VCD) || defined(OPENMXU_TRACE_FST)
        m_context.traceEverOn(true);
        m_model.trace(&m_trace, 99);
        m_trace.open(trace);
#elif defined(OPENMXU_COVERAGE)
        m_coverage = trace;
#else
        (void)trace;
#endif
        reset();
    }

    ~Harness() {
#if defined(OPENMXU_TRACE_VCD) || defined(OPENMXU_TRACE_FST)
        m_trace.close();
#endif
        m_model.final();
#if defined(OPENMXU_COVERAGE)
        m_context.coveragep()->write(m_coverage);
#endif
        // The model's destructor looks for its scopes in the thread's context, which may be one that is gone by now.
        Verilated::threadContextp(&m_context);
    }

    void reset() {
        m_instructions.reset();
        m_host_read.reset();
        m_host_write.reset();
        m_weights.reset();
        m_events_port.reset();
        m_management.reset();
        m_response.reset();
        m_requests.clear();
        m_responses.clear();
        m_reads_pending = 0;
        m_events.clear();
        m_next = m_count = 0;
        // The reset may take a cycle to come from the port to the registers. One more cycle without it, and nothing that
        // follows can tell whether it did.
        for (int i = 0; i != 5; ++i) {
            m_root.rst = i < 3;
            m_root.clk = 0;
            m_model.eval();
            trace(0);
            rise();
        }
        m_world.error = NO_ERROR;
        m_world.last_transfer = m_world.cycle;
    }

    void attach(const Memory& host, const Memory& weights) {
        m_host_memory = host;
        m_weight_memory = weights;
    }

    void feed(const uint8_t* words, uint64_t count, uint64_t halts) {
        m_words = words;
        m_next = 0;
        m_count = count;
        m_halts_left = halts;
        m_events.clear();
        m_faulted = false;
        m_world.last_transfer = m_world.cycle;
    }

    Result run(uint64_t cycles, uint64_t patience) {
        for (; cycles != 0; --cycles) {
            step();
            if (m_world.error != NO_ERROR) return FAILED;
            if (m_faulted) {
                m_faulted = false;
                m_count = m_next;
                return FAULTED;
            }
            if (m_halts_left == 0 && quiet()) return ENDED;
            if (m_world.cycle - m_world.last_transfer > patience) {
                m_world.last_transfer = m_world.cycle;
                return NO_TRANSFERS;
            }
        }
        return RUNNING;
    }

    void write_register(uint32_t address, uint64_t value) { m_requests.push_back({address, true, value}); }

    // Runs until all register writes have been taken.
    Result flush(uint64_t cycles) {
        for (; !m_requests.empty() || m_management.offering(); --cycles) {
            if (cycles == 0) return NO_TRANSFERS;
            step();
            if (m_world.error != NO_ERROR) return FAILED;
        }
        return ENDED;
    }

    // One request behind the other, and at most so many cycles between two answers.
    Result read_registers(const uint32_t* addresses, uint64_t* values, uint64_t count, uint64_t cycles) {
        for (uint64_t i = 0; i != count; ++i) m_requests.push_back({addresses[i], false, 0});
        for (uint64_t i = 0; i != count; ++i) {
            for (uint64_t left = cycles; m_responses.empty(); --left) {
                if (left == 0) return NO_TRANSFERS;
                step();
                if (m_world.error != NO_ERROR) return FAILED;
            }
            values[i] = m_responses.front();
            m_responses.pop_front();
        }
        return ENDED;
    }

    const std::vector<Event>& events() const { return m_events; }

    // Begins an empty record, or ends it with the cycle behind its last one.
    void record(bool on) {
        if (on) {
            m_changes.clear();
        } else if (m_recording) {
            m_changes.push_back({m_world.cycle, 0});
        }
        m_recording = on;
    }

    const std::vector<Change>& recorded() const { return m_changes; }

    Status status() const {
        Status status{};
        status.cycle = m_world.cycle;
        status.busy_cycles = m_busy_cycles;
        status.finished_cycles = m_finished_cycles;
        status.instructions_taken = m_next - m_instructions.offering();
        status.host_read_beats = m_host_read.outstanding();
        status.host_write_unanswered = m_host_write.unanswered();
        status.host_write_missing_beats = m_host_write.missing_beats();
        status.host_write_unrequested_beats = m_host_write.unrequested_beats();
        status.weights_beats = m_weights.outstanding();
        status.error_address = m_world.error_address;
        status.error_beats = m_world.error_beats;
        status.error = m_world.error;
        status.error_port = m_world.error_port;
        const auto port = [&status](Port number, CData valid, CData ready) {
            status.valid |= uint32_t{valid} << number;
            status.ready |= uint32_t{ready} << number;
        };
#define REPORT(number, stream) port(number, PORT(stream, valid), PORT(stream, ready))
        REPORT(INSTRUCTIONS, instructions);
        REPORT(HOST_READ_REQUEST, host_read___05Frequest);
        REPORT(HOST_READ_DATA, host_read___05Fdata);
        REPORT(HOST_WRITE_REQUEST, host_write___05Frequest);
        REPORT(HOST_WRITE_DATA, host_write___05Fdata);
        REPORT(HOST_WRITE_DONE, host_write___05Fdone);
        REPORT(WEIGHTS_REQUEST, weights___05Frequest);
        REPORT(WEIGHTS_DATA, weights___05Fdata);
        REPORT(EVENTS, events);
        REPORT(MANAGEMENT, management);
        REPORT(MANAGEMENT_RESPONSE, management_response);
#undef REPORT
        status.quiet = quiet();
        return status;
    }

    // Where memory `index` of layout.h lies; false when there are not so many.
    bool memory(uint32_t index, const void** base, uint64_t* depth, uint64_t* element_bytes) const {
        uint32_t number = 0;
        const auto visit = [&](const auto& array) {
            if (number++ != index) return;
            *base = &array[0];
            *depth = sizeof(array) / sizeof(array[0]);
            *element_bytes = sizeof(array[0]);
        };
#define MEMORY(name) visit(m_root.name);
        OPENMXU_MEMORIES(MEMORY)
#undef MEMORY
        return index < number;
    }

private:
    struct Request {
        uint32_t address;
        bool write;
        uint64_t data;
    };

    void trace(unsigned half) {
#if defined(OPENMXU_TRACE_VCD) || defined(OPENMXU_TRACE_FST)
        if (!m_window.is_given) {
            m_trace.dump(2 * m_world.cycle + half);
            return;
        }
        // The second half of a cycle goes with the first.
        if (half == 0) {
            m_program_runs = runs();
            m_program_cycle += m_program_runs;
        }
        if (m_program_runs && m_window.first <= m_program_cycle && m_program_cycle <= m_window.last) {
            m_trace.dump(2 * m_program_cycle + half);
        }
#else
        (void)half;
#endif
    }

    // Whether the counter CYCLES counts this cycle; of a design without probes, whether it has been fed.
    bool runs() const {
#if defined(OPENMXU_PROBES)
#define PROBE(name, bit, place) if (place == 0) return (m_root.name >> bit) & 1u;
        OPENMXU_PROBES(PROBE)
#undef PROBE
#endif
        return m_words != nullptr;
    }

    // Outputs may depend on inputs within a cycle, so the model settles between drive() and sample().
    void step() {
        drive();
        m_root.clk = 0;
        m_model.eval();
        trace(0);
        sample();
        rise();
    }

    void rise() {
        m_root.clk = 1;
        m_model.eval();
        trace(1);
        ++m_world.cycle;
    }

    void drive() {
        m_host_read.drive();
        m_host_write.drive();
        m_weights.drive();
        m_events_port.drive();
        m_response.drive();
        if (m_instructions.may_offer(m_next != m_count)) {
            std::memcpy(&m_instructions.payload(), m_words + 16 * m_next++, 16);
            m_instructions.offer();
        }
        if (m_management.may_offer(!m_requests.empty())) {
            const Request& request = m_requests.front();
            const unsigned __int128 bits = static_cast<unsigned __int128>(request.address) << MANAGEMENT_ADDRESS_OFFSET |
                                           static_cast<unsigned __int128>(request.write) << MANAGEMENT_WRITE_OFFSET |
                                           static_cast<unsigned __int128>(request.data) << MANAGEMENT_DATA_OFFSET;
            std::memcpy(&m_management.payload(), &bits, sizeof(PAYLOAD(management)));
            m_management.offer();
            m_reads_pending += !request.write;
            m_requests.pop_front();
        }
    }

    void sample() {
        m_busy_cycles += m_root.busy;
        m_finished_cycles += m_root.finished;
        if (m_recording) record_probes();
        m_host_read.sample();
        m_host_write.sample();
        m_weights.sample();
        if (m_instructions.sample()) m_world.last_transfer = m_world.cycle;
        m_management.sample();
        if (m_response.sample()) {
            if (m_reads_pending == 0) {
                m_world.fail(UNREQUESTED_RESPONSE, MANAGEMENT_RESPONSE);
            } else {
                --m_reads_pending;
                m_responses.push_back(m_response.payload());
            }
        }
        if (m_events_port.sample()) take_event();
    }

    void record_probes() {
#if defined(OPENMXU_PROBES)
        uint64_t bits = 0;
#define PROBE(name, bit, place) bits |= uint64_t{(m_root.name >> bit) & 1u} << place;
        OPENMXU_PROBES(PROBE)
#undef PROBE
        const auto transfers = [](CData valid, CData ready) { return uint64_t{valid && ready}; };
        bits |= transfers(PORT(weights___05Frequest, valid), PORT(weights___05Frequest, ready)) << WEIGHT_REQUEST_BIT;
        bits |= transfers(PORT(weights___05Fdata, valid), PORT(weights___05Fdata, ready)) << WEIGHT_DATA_BIT;
        if (m_changes.empty() || m_changes.back().bits != bits) m_changes.push_back({m_world.cycle, bits});
#endif
    }

    void take_event() {
        m_world.last_transfer = m_world.cycle;
        const auto bits = bits_of(m_events_port.payload());
        const Event event{
            static_cast<uint32_t>(field(bits, EVENT_KIND_OFFSET, EVENT_KIND_WIDTH)),
            static_cast<uint32_t>(field(bits, EVENT_FAULT_OFFSET, EVENT_FAULT_WIDTH)),
            static_cast<uint32_t>(field(bits, EVENT_TAG_OFFSET, EVENT_TAG_WIDTH)),
            static_cast<uint32_t>(field(bits, EVENT_INDEX_OFFSET, EVENT_INDEX_WIDTH)),
        };
        m_events.push_back(event);
        if (event.kind == EVENT_HALT && m_halts_left != 0) --m_halts_left;
        if (event.kind == EVENT_FAULT) m_faulted = true;
        if (event.kind == EVENT_HOST_SYNCHRONIZE) write_register(REGISTER_COMMAND, COMMAND_ACKNOWLEDGE);
    }

    bool quiet() const {
        return !m_instructions.offering() && m_host_read.idle() && m_host_write.idle() && m_weights.idle();
    }

    VerilatedContext m_context;
    Vopenmxu_core m_model{&m_context};
    Vopenmxu_core___024root& m_root{*m_model.rootp};
#if defined(OPENMXU_TRACE_VCD) || defined(OPENMXU_TRACE_FST)
    Trace m_trace;
#elif defined(OPENMXU_COVERAGE)
    std::string m_coverage;
#endif
    World m_world;
    const BeatTime m_host_time;
    const BeatTime m_weight_time;
    const Window m_window;
    uint64_t m_program_cycle = 0;
    bool m_program_runs = false;
    Memory m_host_memory;
    Memory m_weight_memory;
    uint64_t m_busy_cycles = 0;
    uint64_t m_finished_cycles = 0;

    Source<PAYLOAD(instructions)> m_instructions SOURCE(INSTRUCTIONS, instructions, 0xFF);
    ReadChannel<HOST_ADDRESS_WIDTH, HOST_DATA_BYTES, PAYLOAD(host_read___05Frequest), PAYLOAD(host_read___05Fdata)>
        m_host_read{m_world,
                    m_host_memory,
                    HOST_READ_REQUEST,
                    m_host_time,
                    SINK(HOST_READ_REQUEST, host_read___05Frequest),
                    SOURCE(HOST_READ_DATA, host_read___05Fdata, 0xFF)};
    WriteChannel<HOST_ADDRESS_WIDTH, HOST_DATA_BYTES, PAYLOAD(host_write___05Frequest), PAYLOAD(host_write___05Fdata)>
        m_host_write{m_world,
                     m_host_memory,
                     m_host_time,
                     SINK(HOST_WRITE_REQUEST, host_write___05Frequest),
                     SINK(HOST_WRITE_DATA, host_write___05Fdata),
                     SOURCE(HOST_WRITE_DONE, host_write___05Fdone, 0x01)};
    ReadChannel<WEIGHT_ADDRESS_WIDTH, WEIGHT_DATA_BYTES, PAYLOAD(weights___05Frequest), PAYLOAD(weights___05Fdata)>
        m_weights{m_world,
                  m_weight_memory,
                  WEIGHTS_REQUEST,
                  m_weight_time,
                  SINK(WEIGHTS_REQUEST, weights___05Frequest),
                  SOURCE(WEIGHTS_DATA, weights___05Fdata, 0xFF)};
    Sink<PAYLOAD(events)> m_events_port SINK(EVENTS, events);
    Source<PAYLOAD(management)> m_management SOURCE(MANAGEMENT, management, 0xFF);
    Sink<PAYLOAD(management_response)> m_response SINK(MANAGEMENT_RESPONSE, management_response);

    const uint8_t* m_words = nullptr;
    uint64_t m_next = 0;
    uint64_t m_count = 0;
    uint64_t m_halts_left = 0;
    bool m_faulted = false;
    bool m_recording = false;
    std::vector<Change> m_changes;
    std::vector<Event> m_events;
    std::deque<Request> m_requests;
    std::deque<uint64_t> m_responses;
    uint64_t m_reads_pending = 0;
};

}  // namespace openmxu
