// The harness as a C interface for library.py.
#include "harness.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using openmxu::BeatTime;
using openmxu::Event;
using openmxu::Harness;
using openmxu::Memory;
using openmxu::StallPattern;
using openmxu::Status;

EXPORT Harness* mxu_create(uint64_t seed, const StallPattern* stalls, uint32_t latency, const BeatTime* host,
                           const BeatTime* weights, const char* trace, uint32_t fault,
                           const openmxu::Window* window) {
    return new Harness{seed, *stalls, latency, *host, *weights, trace, fault, *window};
}
EXPORT void mxu_destroy(Harness* harness) { delete harness; }
EXPORT void mxu_reset(Harness* harness) { harness->reset(); }
EXPORT void mxu_attach(Harness* harness, const Memory* host, const Memory* weights) {
    harness->attach(*host, *weights);
}
EXPORT void mxu_feed(Harness* harness, const uint8_t* words, uint64_t count, uint64_t halts) {
    harness->feed(words, count, halts);
}
EXPORT uint32_t mxu_run(Harness* harness, uint64_t cycles, uint64_t patience) { return harness->run(cycles, patience); }
EXPORT void mxu_write_register(Harness* harness, uint32_t address, uint64_t value) {
    harness->write_register(address, value);
}
EXPORT uint32_t mxu_flush(Harness* harness, uint64_t cycles) { return harness->flush(cycles); }
EXPORT uint32_t mxu_read_registers(Harness* harness, const uint32_t* addresses, uint64_t* values, uint64_t count,
                                   uint64_t cycles) {
    return harness->read_registers(addresses, values, count, cycles);
}
EXPORT uint64_t mxu_events(Harness* harness, const Event** events) {
    *events = harness->events().data();
    return harness->events().size();
}
EXPORT void mxu_record(Harness* harness, bool on) { harness->record(on); }
EXPORT uint64_t mxu_recorded(Harness* harness, const openmxu::Change** changes) {
    *changes = harness->recorded().data();
    return harness->recorded().size();
}
EXPORT void mxu_status(Harness* harness, Status* status) { *status = harness->status(); }
EXPORT bool mxu_memory(Harness* harness, uint32_t index, const void** base, uint64_t* depth, uint64_t* element_bytes) {
    return harness->memory(index, base, depth, element_bytes);
}
