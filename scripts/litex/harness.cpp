// The system with its clock, and the bytes of its UART, as a C interface for simulation.py.
#include <cstdint>
#include <deque>

#include "Vopenmxu_core.h"
#include "verilated.h"

namespace {

constexpr int RESET_CYCLES = 4;

struct Simulation {
    VerilatedContext context;
    Vopenmxu_core model{&context};
    uint64_t cycles = 0;
    std::deque<uint8_t> sent;

    Simulation() {
        model.serial_source_ready = 1;
        model.sys_rst = 1;
        for (int i = 0; i != RESET_CYCLES; ++i) step();
        model.sys_rst = 0;
        cycles = 0;
    }

    ~Simulation() {
        model.final();
        Verilated::threadContextp(&context);
    }

    void step() {
        model.sys_clk = 0;
        model.serial_sink_valid = !sent.empty();
        if (!sent.empty()) model.serial_sink_data = sent.front();
        model.eval();
        const bool is_taken = !sent.empty() && model.serial_sink_ready;
        model.sys_clk = 1;
        model.eval();
        if (is_taken) sent.pop_front();
        ++cycles;
    }
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT Simulation* mxu_create() { return new Simulation; }

EXPORT void mxu_destroy(Simulation* simulation) { delete simulation; }

EXPORT uint64_t mxu_cycles(const Simulation* simulation) { return simulation->cycles; }

// The UART receives the bytes while the simulation runs.
EXPORT void mxu_send(Simulation* simulation, const uint8_t* bytes, uint32_t count) {
    simulation->sent.insert(simulation->sent.end(), bytes, bytes + count);
}

// Runs until the UART has sent `room` bytes, or for a number of cycles; returns how many bytes there are.
EXPORT uint32_t mxu_run(Simulation* simulation, uint64_t cycles, uint8_t* bytes, uint32_t room) {
    auto& model = simulation->model;
    uint32_t count = 0;
    for (const uint64_t end = simulation->cycles + cycles; simulation->cycles != end && count != room;) {
        // The port is a register: what it shows before the edge is what is taken with it.
        if (model.serial_source_valid) bytes[count++] = model.serial_source_data;
        simulation->step();
    }
    return count;
}
