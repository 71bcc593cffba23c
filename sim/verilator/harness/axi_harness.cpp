// One openmxu core in its AXI shell, with memories and a master for its registers, as a C interface for axi.py.
#include "Vopenmxu_core.h"
#include "Vopenmxu_core___024root.h"
#include "axi_channels.h"
#include "layout.h"

#define PIN(name) m_root.name
#define TYPE(name) std::remove_reference_t<decltype(Vopenmxu_core___024root::name)>
#define ADDRESS_PINS(channel) \
    {PIN(channel##addr), PIN(channel##len), PIN(channel##size), PIN(channel##burst), PIN(channel##valid), PIN(channel##ready)}
#define READ_PINS(channel) \
    {PIN(channel##data), PIN(channel##resp), PIN(channel##last), PIN(channel##valid), PIN(channel##ready)}

namespace openmxu {

// Numbers and structures shared with axi.py.
enum Result : uint32_t { RUNNING, INTERRUPT, DONE, FAILED, REFUSED };

struct Status {
    uint64_t cycle;
    uint64_t host_read_beats;
    uint64_t host_write_beats;
    uint64_t weight_beats;
    uint64_t error_address;
    uint64_t error_beats;
    uint32_t error;
    uint32_t error_port;
};

class Harness {
public:
    Harness(uint64_t seed, const StallPattern& stalls, uint32_t latency, const BeatTime& host, const BeatTime& weights)
        : m_world{{seed, stalls}, latency}, m_host_time{host}, m_weight_time{weights} {
        reset();
    }

    ~Harness() {
        m_model.final();
        // The model's destructor looks for its scopes in the thread's context, which may be one that is gone by now.
        Verilated::threadContextp(&m_context);
    }

    void reset() {
        m_host_reads.reset();
        m_host_writes.reset();
        m_weights.reset();
        m_root.s_axi_awvalid = m_root.s_axi_wvalid = m_root.s_axi_arvalid = 0;
        m_root.s_axi_bready = m_root.s_axi_rready = 0;
        m_root.aresetn = 0;
        for (int i = 0; i != 4; ++i) edge();
        m_root.aresetn = 1;
        m_world.error = NO_ERROR;
        m_world.last_transfer = m_world.cycle;
    }

    void attach(const Memory& host, const Memory& weights) {
        m_host_memory = host;
        m_weight_memory = weights;
    }

    // The bytes of each memory whose bursts are not answered with OKAY.
    void trouble(const Trouble& host, const Trouble& weights) {
        m_host_trouble = host;
        m_weight_trouble = weights;
    }

    // Runs until the interrupt is set.
    Result run(uint64_t cycles) {
        for (; cycles != 0; --cycles) {
            if (m_root.irq) return INTERRUPT;
            step();
            if (m_world.error != NO_ERROR) return FAILED;
        }
        return m_root.irq ? INTERRUPT : RUNNING;
    }

    Result write(uint32_t offset, uint32_t value, uint64_t cycles) {
        m_root.s_axi_awaddr = offset;
        m_root.s_axi_wdata = value;
        m_root.s_axi_wstrb = 0xF;
        m_root.s_axi_awvalid = m_root.s_axi_wvalid = 1;
        m_root.s_axi_bready = 1;
        return access(cycles, m_root.s_axi_bvalid, m_root.s_axi_bresp, [] {});
    }

    Result read(uint32_t offset, uint32_t& value, uint64_t cycles) {
        m_root.s_axi_araddr = offset;
        m_root.s_axi_arvalid = 1;
        m_root.s_axi_rready = 1;
        return access(cycles, m_root.s_axi_rvalid, m_root.s_axi_rresp, [&] { value = m_root.s_axi_rdata; });
    }

    Status status() const {
        return {m_world.cycle,         m_host_reads.beats(), m_host_writes.beats(), m_weights.beats(),
                m_world.error_address, m_world.error_beats,  m_world.error,         m_world.error_port};
    }

private:
    // Runs until an access of the registers has been answered.
    template <typename Take>
    Result access(uint64_t cycles, const CData& valid, const CData& resp, Take take) {
        for (; cycles != 0; --cycles) {
            settle();
            const bool aw = m_root.s_axi_awready, w = m_root.s_axi_wready, ar = m_root.s_axi_arready;
            const bool answered = valid;
            const bool refused = resp != 0;
            if (answered) take();
            finish();
            if (m_world.error != NO_ERROR) return FAILED;
            if (aw) m_root.s_axi_awvalid = 0;
            if (w) m_root.s_axi_wvalid = 0;
            if (ar) m_root.s_axi_arvalid = 0;
            if (answered) {
                m_root.s_axi_bready = m_root.s_axi_rready = 0;
                return refused ? REFUSED : DONE;
            }
        }
        return RUNNING;
    }

    void step() {
        settle();
        finish();
    }

    // Outputs may depend on inputs within a cycle, so the model settles between drive() and sample().
    void settle() {
        m_host_reads.drive();
        m_host_writes.drive();
        m_weights.drive();
        m_root.aclk = 0;
        m_model.eval();
    }

    void finish() {
        m_host_reads.sample();
        m_host_writes.sample();
        m_weights.sample();
        m_root.aclk = 1;
        m_model.eval();
        ++m_world.cycle;
    }

    void edge() {
        m_root.aclk = 0;
        m_model.eval();
        m_root.aclk = 1;
        m_model.eval();
        ++m_world.cycle;
    }

    VerilatedContext m_context;
    Vopenmxu_core m_model{&m_context};
    Vopenmxu_core___024root& m_root{*m_model.rootp};
    World m_world;
    const BeatTime m_host_time;
    const BeatTime m_weight_time;
    Memory m_host_memory;
    Memory m_weight_memory;
    Trouble m_host_trouble;
    Trouble m_weight_trouble;
    AxiReads<HOST_DATA_BYTES, TYPE(m_axi_host_araddr), TYPE(m_axi_host_rdata)> m_host_reads{
        m_world,           m_host_memory,  m_host_trouble,              m_host_time,
        HOST_READ_REQUEST, HOST_READ_DATA, ADDRESS_PINS(m_axi_host_ar), READ_PINS(m_axi_host_r)};
    AxiWrites<HOST_DATA_BYTES, TYPE(m_axi_host_awaddr), TYPE(m_axi_host_wdata), TYPE(m_axi_host_wstrb)> m_host_writes{
        m_world,
        m_host_memory,
        m_host_trouble,
        m_host_time,
        ADDRESS_PINS(m_axi_host_aw),
        {PIN(m_axi_host_wdata), PIN(m_axi_host_wstrb), PIN(m_axi_host_wlast), PIN(m_axi_host_wvalid),
         PIN(m_axi_host_wready)},
        {PIN(m_axi_host_bresp), PIN(m_axi_host_bvalid), PIN(m_axi_host_bready)}};
    AxiReads<WEIGHT_DATA_BYTES, TYPE(m_axi_weight_araddr), TYPE(m_axi_weight_rdata)> m_weights{
        m_world,         m_weight_memory, m_weight_trouble,              m_weight_time,
        WEIGHTS_REQUEST, WEIGHTS_DATA,    ADDRESS_PINS(m_axi_weight_ar), READ_PINS(m_axi_weight_r)};
};

}  // namespace openmxu

using openmxu::BeatTime;
using openmxu::Harness;
using openmxu::Memory;
using openmxu::StallPattern;
using openmxu::Status;
using openmxu::Trouble;

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT Harness* mxu_create(uint64_t seed, const StallPattern* stalls, uint32_t latency, const BeatTime* host,
                           const BeatTime* weights) {
    return new Harness{seed, *stalls, latency, *host, *weights};
}
EXPORT void mxu_destroy(Harness* harness) { delete harness; }
EXPORT void mxu_reset(Harness* harness) { harness->reset(); }
EXPORT void mxu_attach(Harness* harness, const Memory* host, const Memory* weights) {
    harness->attach(*host, *weights);
}
EXPORT void mxu_trouble(Harness* harness, const Trouble* host, const Trouble* weights) {
    harness->trouble(*host, *weights);
}
EXPORT uint32_t mxu_run(Harness* harness, uint64_t cycles) { return harness->run(cycles); }
EXPORT uint32_t mxu_write(Harness* harness, uint32_t offset, uint32_t value, uint64_t cycles) {
    return harness->write(offset, value, cycles);
}
EXPORT uint32_t mxu_read(Harness* harness, uint32_t offset, uint32_t* value, uint64_t cycles) {
    return harness->read(offset, *value, cycles);
}
EXPORT void mxu_status(Harness* harness, Status* status) { *status = harness->status(); }
