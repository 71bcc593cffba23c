// One openmxu core in its serial shell, its bytes exchanged with a file descriptor, as a C interface for serial.py.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "Vopenmxu_core.h"
#include "verilated.h"

namespace openmxu {

// Numbers shared with serial.py.
enum End : uint32_t { STOPPED, CLOSED };

class Harness {
public:
    Harness() {
        m_model.rx___05Fvalid = 0;
        m_model.tx___05Fready = 0;
        m_model.rst = 1;
        for (int i = 0; i != 4; ++i) step();
        // The reset may take a cycle to come from the port to the registers.
        m_model.rst = 0;
        step();
    }

    ~Harness() {
        m_model.final();
        // The model's destructor looks for its scopes in the thread's context, which may be one that is gone by now.
        Verilated::threadContextp(&m_context);
    }

    // Runs until it is told to stop or the other end is closed; the descriptor must not block.
    End serve(int descriptor) {
        Verilated::threadContextp(&m_context);
        while (!m_stop) {
            if (!transfer(descriptor)) return CLOSED;
            // Without bytes to and fro the device computes or waits; after a while it probably waits.
            const bool slow = m_quiet > AWAKE;
            if (slow) pause(descriptor);
            for (int i = 0; i != (slow ? SLOW_SLICE : SLICE); ++i) cycle();
            m_quiet += SLICE;
        }
        return STOPPED;
    }

    void stop() { m_stop = true; }
    uint64_t cycles() const { return m_cycles; }

private:
    static constexpr int SLICE = 64;              // cycles between looks at the descriptor
    static constexpr uint64_t AWAKE = 500'000;  // quiet cycles after which the clock slows down
    static constexpr int SLOW_SLICE = 1024;
    static constexpr int PAUSE = 20;  // milliseconds of a look that finds nothing
    static constexpr unsigned BUFFER = 4096;

    struct Bytes {
        uint8_t bytes[BUFFER];
        unsigned first = 0;
        unsigned end = 0;
        bool empty() const { return first == end; }
    };

    // Whether the other end is still there.
    bool transfer(int descriptor) {
        if (m_input.empty()) {
            const ssize_t count = read(descriptor, m_input.bytes, BUFFER);
            if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
            m_input.first = 0;
            m_input.end = count < 0 ? 0 : static_cast<unsigned>(count);
        }
        if (!m_output.empty()) {
            const ssize_t count = write(descriptor, m_output.bytes + m_output.first, m_output.end - m_output.first);
            if (count < 0 && errno != EAGAIN && errno != EINTR) return false;
            if (count > 0) {
                m_output.first += static_cast<unsigned>(count);
                m_quiet = 0;
            }
            if (m_output.empty()) m_output.first = m_output.end = 0;
        }
        return true;
    }

    void pause(int descriptor) {
        pollfd look{descriptor, POLLIN, 0};
        if (poll(&look, 1, PAUSE) > 0) m_quiet = 0;
    }

    void cycle() {
        m_model.rx___05Fvalid = !m_input.empty();
        if (!m_input.empty()) {
            m_model.rx___05Fpayload = m_input.bytes[m_input.first++];
            m_quiet = 0;
        }
        m_model.tx___05Fready = m_output.end != BUFFER;
        m_model.clk = 0;
        m_model.eval();
        if (m_model.tx___05Fvalid && m_model.tx___05Fready) m_output.bytes[m_output.end++] = m_model.tx___05Fpayload;
        m_model.clk = 1;
        m_model.eval();
        ++m_cycles;
    }

    void step() {
        m_model.clk = 0;
        m_model.eval();
        m_model.clk = 1;
        m_model.eval();
    }

    VerilatedContext m_context;
    Vopenmxu_core m_model{&m_context};
    Bytes m_input;
    Bytes m_output;
    uint64_t m_quiet = 0;
    std::atomic<uint64_t> m_cycles = 0;
    std::atomic<bool> m_stop = false;
};

}  // namespace openmxu

using openmxu::Harness;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT Harness* mxu_create() { return new Harness; }
EXPORT void mxu_destroy(Harness* harness) { delete harness; }
EXPORT uint32_t mxu_serve(Harness* harness, int descriptor) { return harness->serve(descriptor); }
EXPORT void mxu_stop(Harness* harness) { harness->stop(); }
EXPORT uint64_t mxu_cycles(const Harness* harness) { return harness->cycles(); }
