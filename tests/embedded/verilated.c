/* Firmware around the Verilated AXI shell: classifies images, given and answered in files, with the driver; then things
 * go wrong.
 *
 * Usage: verilated INPUTS OUTPUTS; both hold floats. Prints the cycles of all runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"
#include "openmxu.h"

/* The interface of axi_harness.cpp. */
typedef struct {
    uint32_t threshold, cycles, ports;
} stall_pattern;
typedef struct {
    uint64_t numerator, denominator;
} beat_time;
typedef struct {
    void *bytes;
    uint64_t length, base;
} memory;
typedef struct {
    uint64_t begin, end;
    uint32_t response;
} trouble;
void *mxu_create(uint64_t seed, const stall_pattern *stalls, uint32_t latency, const beat_time *host,
                 const beat_time *weights);
void mxu_destroy(void *harness);
void mxu_attach(void *harness, const memory *host, const memory *weights);
void mxu_trouble(void *harness, const trouble *host, const trouble *weights);
uint32_t mxu_run(void *harness, uint64_t cycles);
uint32_t mxu_write(void *harness, uint32_t offset, uint32_t value, uint64_t cycles);
uint32_t mxu_read(void *harness, uint32_t offset, uint32_t *value, uint64_t cycles);
enum { INTERRUPT = 1, DONE = 2, DECERR = 3, NEVER = 4, ANSWER = 1000, WAIT = 200000 };

#define BASE 0x400000U /* bus address of the memory below, for both ports */
#define IMAGE_SPACE ((DIGITS_IMAGE_BYTES + 4095) / 4096 * 4096)
static uint8_t ram[IMAGE_SPACE + DIGITS_HOST_BYTES] __attribute__((aligned(4096)));
static void *harness;

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

uint32_t openmxu_read(const openmxu_device *device, uint32_t offset) {
    uint32_t value = 0;
    (void)device;
    CHECK(mxu_read(harness, offset, &value, ANSWER) == DONE);
    return value;
}

void openmxu_write(openmxu_device *device, uint32_t offset, uint32_t value) {
    (void)device;
    CHECK(mxu_write(harness, offset, value, ANSWER) == DONE);
}

static bool wait(void *context) {
    openmxu_device *device = context;
    if (mxu_run(harness, WAIT) != INTERRUPT) return false;
    CHECK(openmxu_acknowledge(device) != 0);
    return true;
}

int main(int count, char **arguments) {
    static float inputs[DIGITS_BATCH][DIGITS_INPUT_IMAGE_VALUES];
    static float outputs[DIGITS_BATCH][DIGITS_OUTPUT_LOGITS_VALUES];
    const stall_pattern stalls = {0x40000000U, 1, ~0U};
    const beat_time every_cycle = {1, 1};
    const memory all = {ram, sizeof ram, BASE};
    const openmxu_image image = {ram, BASE, sizeof ram};
    const openmxu_buffer host = {ram + IMAGE_SPACE, BASE + IMAGE_SPACE, DIGITS_HOST_BYTES};
    openmxu_device device;
    openmxu_program program;
    openmxu_hooks hooks = {&device, NULL, NULL, wait};
    size_t elements;

    CHECK(count == 3);
    FILE *source = fopen(arguments[1], "rb"), *target = fopen(arguments[2], "wb");
    CHECK(source != NULL && target != NULL);
    memcpy(ram, digits_image, sizeof digits_image);
    harness = mxu_create(1, &stalls, 4, &every_cycle, &every_cycle);
    mxu_attach(harness, &all, &all);

    CHECK(openmxu_open(&device, NULL, &hooks) == OPENMXU_OK);
    openmxu_enable_interrupts(&device, OPENMXU_ENDS);
    CHECK(openmxu_load(&program, &device, &image, &host, NULL, NULL) == OPENMXU_OK);
    CHECK(openmxu_scrub(&device, &program) == OPENMXU_OK);
    const openmxu_image_tensor *input = openmxu_input(&program, DIGITS_INPUT_IMAGE);
    const openmxu_image_tensor *output = openmxu_output(&program, DIGITS_OUTPUT_LOGITS);
    while ((elements = fread(inputs, sizeof inputs[0], DIGITS_BATCH, source)) != 0) {
        for (uint32_t i = 0; i != elements; ++i) openmxu_write_values(&program, input, i, inputs[i], true);
        CHECK(openmxu_run(&device, &program) == OPENMXU_OK);
        for (uint32_t i = 0; i != elements; ++i) openmxu_read_values(&program, output, i, outputs[i], true);
        CHECK(fwrite(outputs, sizeof outputs[0], elements, target) == elements);
    }
    printf("%llu\n", (unsigned long long)openmxu_counter(&device, OPENMXU_COUNTER_CYCLES));

    /* The window of host memory ends before the program's tensors. */
    openmxu_image_header header;
    memcpy(&header, program.header, sizeof header);
    header.host_bytes = 64;
    program.header = &header;
    CHECK(openmxu_run(&device, &program) == OPENMXU_STOPPED);
    CHECK(device.fault.code == OPENMXU_FAULT_CODE_HOST_WINDOW && device.fault.index < header.instructions);
    program.header = (const void *)ram;
    CHECK(openmxu_run(&device, &program) == OPENMXU_OK);

    /* Memory answers with an error, at the weights and at the second instruction. */
    const trouble none = {0, 0, 0}, at_weights = {header.weights, header.weights + 1, DECERR};
    const trouble at_ring = {header.ring + 16, header.ring + 17, DECERR};
    mxu_trouble(harness, &none, &at_weights);
    CHECK(openmxu_run(&device, &program) == OPENMXU_STOPPED);
    CHECK(device.fault.code == OPENMXU_FAULT_CODE_BUS_ERROR && device.fault.port == OPENMXU_PORT_WEIGHTS);
    CHECK(device.fault.response == DECERR && device.fault.address == BASE + header.weights);
    mxu_trouble(harness, &at_ring, &none);
    openmxu_enable_interrupts(&device, OPENMXU_ENDS);
    CHECK(openmxu_run(&device, &program) == OPENMXU_STOPPED);
    CHECK(device.fault.code == OPENMXU_FAULT_CODE_BUS_ERROR && device.fault.port == OPENMXU_PORT_PROGRAM);

    /* It does not answer at all: the device cannot be reset before it does. */
    const trouble silent = {header.weights, header.weights + 1, NEVER};
    mxu_trouble(harness, &none, &silent);
    program.time_limit = 5000;
    CHECK(openmxu_run(&device, &program) == OPENMXU_STUCK && device.fault.code == OPENMXU_FAULT_CODE_TIME_OUT);
    CHECK(openmxu_run(&device, &program) == OPENMXU_STUCK);
    mxu_trouble(harness, &none, &none);
    CHECK(openmxu_run(&device, &program) == OPENMXU_OK);
    mxu_destroy(harness);
    CHECK(fclose(source) == 0 && fclose(target) == 0);
    return 0;
}
