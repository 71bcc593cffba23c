/* Runs the networks that are in the DRAM, and prints what they make of their images.
 *
 * A table of contents, table.h, says where programs and images are. A simulation may have one at the beginning of the
 * DRAM when it starts; the place of others comes over the UART, receive.h. Lines on the UART:
 *
 *     network NAME BATCH IMAGES
 *     image NUMBER CLASS VALUES          values as the device stores them, in hexadecimal
 *     cycles NAME KEY=NUMBER ...
 *     failed WHAT STATUS CODE INDEX
 *
 * and a byte 4, end of transmission. After the last network it takes frames again; after a failure it starts anew.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <generated/csr.h>
#include <generated/mem.h>
#include <generated/soc.h>
#include <irq.h>

#include "console.h"
#include "dram.h"
#include "openmxu.h"
#include "receive.h"
#include "table.h"

#define BUFFERS 2
#define MOST_VALUES 256
#define END_OF_TRANSMISSION 4

static openmxu_device device;
static volatile bool has_interrupt;
static uint32_t waited;                   /* cycles in which the processor waited for the device */
static uint32_t latencies, worst_latency; /* cycles from the device's interrupt to the handler */

void start(void) __asm__("_start");

__attribute__((noreturn)) static void fail(const char *what, uint32_t status) {
    text("failed ");
    text(what);
    field(" ", status);
    field(" ", device.fault.code);
    field(" ", device.fault.index);
    put('\n');
    put(END_OF_TRANSMISSION);
    irq_setie(0);
    start();
    __builtin_unreachable();
}

void on_trap(uint32_t cause, uint32_t address);

void on_trap(uint32_t cause, uint32_t address) {
    const uint32_t now = cycles_now_read();
    if (cause != 0x8000000BU) { /* of all interrupts, only external ones are enabled */
        device.fault.code = cause;
        device.fault.index = address;
        fail("trap", 0);
    }
    const uint32_t latency = now - cycles_interrupt_read();
    latencies += latency;
    if (latency > worst_latency) worst_latency = latency;
    openmxu_acknowledge(&device);
    has_interrupt = true;
}

static bool wait(void *context) {
    const uint32_t begin = cycles_now_read();
    (void)context;
    while (!has_interrupt) continue;
    has_interrupt = false;
    waited += cycles_now_read() - begin;
    return true;
}

/* The cache writes through: only reading needs it to forget what it has. */
static void invalidate(void *context, void *data, size_t size) {
    (void)context;
    (void)data;
    (void)size;
    flush_cpu_dcache();
}

static int32_t stored_value(const openmxu_image_tensor *tensor, const void *values, uint32_t index) {
    const bool is_signed = tensor->is_signed;
    switch (tensor->value_bytes) {
        case 1: return is_signed ? ((const int8_t *)values)[index] : ((const uint8_t *)values)[index];
        case 2: return is_signed ? ((const int16_t *)values)[index] : ((const uint16_t *)values)[index];
        default: return ((const int32_t *)values)[index];
    }
}

/* The values stay integers: a processor without floating point takes longer to dequantize them than to print them. */
static void print_result(const openmxu_program *program, uint32_t image, uint32_t element) {
    static uint32_t values[MOST_VALUES];
    const openmxu_image_tensor *tensor = openmxu_output(program, 0);
    uint32_t best = 0;
    /* With several scales the largest integer may not be the largest value. */
    if (tensor->values > MOST_VALUES || tensor->scale_count > 1) fail("output", tensor->values);
    openmxu_read_values(program, tensor, element, values, false);
    for (uint32_t i = 1; i != tensor->values; ++i) {
        if (stored_value(tensor, values, i) > stored_value(tensor, values, best)) best = i;
    }
    field("image ", image);
    field(" ", best);
    put(' ');
    for (uint32_t i = 0; i != tensor->values; ++i) {
        hexadecimal((uint32_t)stored_value(tensor, values, i), 2 * tensor->value_bytes);
    }
    put('\n');
}

/* Write the images of a run; returns how many there are. */
static uint32_t prepare(const openmxu_program *program, const struct network *network, uint32_t first) {
    const uint8_t *images = (const uint8_t *)(MAIN_RAM_BASE + network->images);
    const uint32_t left = network->image_count - first, batch = program->header->batch;
    const uint32_t count = left < batch ? left : batch;
    for (uint32_t i = 0; i != count; ++i) {
        openmxu_write_values(program, openmxu_input(program, 0), i, images + (first + i) * network->image_bytes, false);
    }
    return count;
}

static openmxu_status finish(void) {
    openmxu_status status;
    while ((status = openmxu_poll(&device)) == OPENMXU_RUNNING) wait(NULL);
    return status;
}

/* While the device computes, the processor writes the next images to a second buffer, and prints the last results. */
static void run_network(const struct network *network) {
    const openmxu_image image = {(const void *)(MAIN_RAM_BASE + network->program), MAIN_RAM_BASE + network->program,
                                 network->program_bytes};
    openmxu_program programs[BUFFERS];
    uint32_t writing = 0, printing = 0, runs = 0, counts[BUFFERS];

    uint32_t begin = cycles_now_read();
    for (uint32_t i = 0; i != BUFFERS; ++i) {
        const uint32_t place = MAIN_RAM_BASE + network->host + i * network->host_bytes;
        const openmxu_buffer host = {(void *)place, place, network->host_bytes};
        const openmxu_status status = openmxu_load(programs + i, &device, &image, &host, NULL, NULL);
        if (status != OPENMXU_OK) fail("load", status);
    }
    const uint32_t loading = cycles_now_read() - begin;
    text("network ");
    text(network->name);
    field(" ", programs[0].header->batch);
    field(" ", network->image_count);
    put('\n');

    waited = latencies = worst_latency = 0;
    openmxu_clear_counters(&device);
    begin = cycles_now_read();
    counts[0] = prepare(programs, network, 0);
    writing += cycles_now_read() - begin;
    openmxu_status status = openmxu_start(&device, programs);
    for (uint32_t first = 0; first < network->image_count && status == OPENMXU_OK; ++runs) {
        const uint32_t this = runs % BUFFERS, other = (runs + 1) % BUFFERS, next = first + counts[this];
        uint32_t now = cycles_now_read();
        if (next < network->image_count) counts[other] = prepare(programs + other, network, next);
        writing += cycles_now_read() - now;
        status = finish();
        if (status == OPENMXU_OK && next < network->image_count) status = openmxu_start(&device, programs + other);
        if (status != OPENMXU_OK) break;
        now = cycles_now_read();
        for (uint32_t i = 0; i != counts[this]; ++i) print_result(programs + this, first + i, i);
        printing += cycles_now_read() - now;
        first = next;
    }
    const uint32_t total = cycles_now_read() - begin;
    if (status != OPENMXU_OK) fail("run", status);
    text("cycles ");
    text(network->name);
    field(" runs=", runs);
    field(" loading=", loading);
    field(" total=", total);
    field(" writing=", writing);
    field(" waiting=", waited);
    field(" printing=", printing);
    field(" core=", (uint32_t)openmxu_counter(&device, OPENMXU_COUNTER_CYCLES));
    field(" array=", (uint32_t)openmxu_counter(&device, OPENMXU_COUNTER_ARRAY_ACTIVE));
    field(" latencies=", latencies);
    field(" latency=", worst_latency);
    put('\n');
}

static void run_table(const struct table *table) {
    if (table->magic != TABLE_MAGIC) fail("table", table->magic);
    for (uint32_t i = 0; i != table->count; ++i) run_network(table->networks + i);
    put(END_OF_TRANSMISSION);
}

int main(void) {
    const openmxu_hooks hooks = {NULL, NULL, invalidate, wait};
    if (!initialize_dram()) fail("dram", 0);
    const openmxu_status status = openmxu_open(&device, (volatile uint32_t *)OPENMXU_BASE, &hooks);
    if (status != OPENMXU_OK) fail("open", status);
    openmxu_enable_interrupts(&device, OPENMXU_ENDS);
    openmxu_ev_enable_write(1);
    irq_setmask(1U << OPENMXU_INTERRUPT);
    irq_setie(1);
#ifdef TABLE_IS_PREPARED
    const struct table *prepared = (const struct table *)MAIN_RAM_BASE;
    if (prepared->magic == TABLE_MAGIC) run_table(prepared);
#endif
    for (;;) run_table(receive());
}
