// The system with its clock, and the bytes of its UART, as a C interface for simulation.py.
#include <cstdint>

#include "Vopenmxu_core.h"
#include "verilated.h"

namespace {

constexpr int RESET_CYCLES = 4;

struct Simulation {
    VerilatedContext context;
    Vopenmxu_core model{&context};
    uint64_t cycles = 0;

    Simulation() {
        model.serial_source_ready = 1;
        model.serial_sink_valid = 0;
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
        model.eval();
        model.sys_clk = 1;
        model.eval();
        ++cycles;
    }
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT Simulation* mxu_create() { return new Simulation; }

EXPORT void mxu_destroy(Simulation* simulation) { delete simulation; }

EXPORT uint64_t mxu_cycles(const Simulation* simulation) { return simulation->cycles; }

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
