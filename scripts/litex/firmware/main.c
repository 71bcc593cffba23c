/* Runs the networks that are in the DRAM, and prints what they make of their images.
 *
 * The table of contents at the beginning of the DRAM, table.h, says where programs and images are. Lines on the UART:
 *
 *     network NAME BATCH IMAGES
 *     image NUMBER CLASS VALUES          values in hexadecimal: floats if the driver dequantizes, or integers
 *     cycles NAME KEY=NUMBER ...
 *     failed WHAT STATUS CODE INDEX
 *
 * and a byte 4, end of transmission.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <generated/csr.h>
#include <generated/mem.h>
#include <generated/sdram_phy.h>
#include <generated/soc.h>
#include <irq.h>

#include "openmxu.h"
#include "table.h"

#define BUFFERS 2
#define MOST_VALUES 256

static openmxu_device device;
static volatile bool has_interrupt;
static uint32_t waited;                   /* cycles in which the processor waited for the device */
static uint32_t latencies, worst_latency; /* cycles from the device's interrupt to the handler */

static void put(char letter) {
    while (uart_txfull_read()) continue;
    uart_rxtx_write(letter);
}

static void text(const char *letters) {
    while (*letters != '\0') put(*letters++);
}

static void number(uint32_t value) {
    char digits[10];
    int count = 0;
    do digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    while (count != 0) put(digits[--count]);
}

static void field(const char *name, uint32_t value) {
    text(name);
    number(value);
}

static void hexadecimal(uint32_t value) {
    for (int shift = 28; shift >= 0; shift -= 4) put("0123456789abcdef"[value >> shift & 15]);
}

__attribute__((noreturn)) static void end(void) {
    put(4);
    for (;;) continue;
}

__attribute__((noreturn)) static void fail(const char *what, uint32_t status) {
    text("failed ");
    text(what);
    field(" ", status);
    field(" ", device.fault.code);
    field(" ", device.fault.index);
    put('\n');
    end();
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

static void initialize_dram(void) {
    init_sequence();
    sdram_dfii_control_write(DFII_CONTROL_SEL);
}

static void print_result(const openmxu_program *program, uint32_t image, uint32_t element) {
    static union {
        float floats[MOST_VALUES];
        uint32_t words[MOST_VALUES];
        uint8_t bytes[MOST_VALUES];
    } values;
    const openmxu_image_tensor *tensor = openmxu_output(program, 0);
    const bool is_float = tensor->scale_count != 0;
    uint32_t best = 0;
    if (tensor->values > MOST_VALUES || (!is_float && tensor->value_bytes != 1)) fail("output", tensor->values);
    openmxu_read_values(program, tensor, element, &values, is_float);
    for (uint32_t i = 1; i != tensor->values; ++i) {
        const bool is_more = is_float               ? values.floats[i] > values.floats[best]
                             : tensor->is_signed ? (int8_t)values.bytes[i] > (int8_t)values.bytes[best]
                                                 : values.bytes[i] > values.bytes[best];
        if (is_more) best = i;
    }
    field("image ", image);
    field(" ", best);
    put(' ');
    for (uint32_t i = 0; i != tensor->values; ++i) hexadecimal(is_float ? values.words[i] : values.bytes[i]);
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

int main(void) {
    const openmxu_hooks hooks = {NULL, NULL, invalidate, wait};
    const struct table *table = (const struct table *)MAIN_RAM_BASE;
    initialize_dram();
    const openmxu_status status = openmxu_open(&device, (volatile uint32_t *)OPENMXU_BASE, &hooks);
    if (status != OPENMXU_OK) fail("open", status);
    openmxu_enable_interrupts(&device, OPENMXU_ENDS);
    openmxu_ev_enable_write(1);
    irq_setmask(1U << OPENMXU_INTERRUPT);
    irq_setie(1);
    if (table->magic != TABLE_MAGIC) fail("table", table->magic);
    for (uint32_t i = 0; i != table->count; ++i) run_network(table->networks + i);
    end();
}
