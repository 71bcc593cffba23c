/* The driver on registers that play a device: loads an image, runs it, and prints what happened.
 *
 * Usage: firmware IMAGE [NAME=VALUE...]; NAME of `settings` below. Prints a line for each step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openmxu.h"

static struct {
    const char *name;
    uint64_t value;
} settings[] = {
    {"identification", OPENMXU_ID},
    {"map", OPENMXU_MAP_VERSION},
    {"wrong_config", 99},     /* number of the configuration register with another value */
    {"address", 0x10000},     /* bus address of the image */
    {"offset", 0},            /* of the image in memory */
    {"host_address", 0x8000},
    {"host_missing", 0},      /* bytes that the buffer lacks */
    {"copies", 0},            /* ring and weights get separate buffers */
    {"ring_address", 0x40010},
    {"ring_missing", 0},
    {"weight_address", 0x80000},
    {"weight_missing", 0},
    {"stuck", 0},             /* bits of STATUS that never become 0 */
    {"scrubbing", 0},         /* CORE_STATUS after SCRUB */
    {"polls", 0},             /* polls that the program needs */
    {"patience", 1000},       /* polls until hooks->wait gives up */
    {"synchronizations", 0},  /* Host_Synchronize of the program */
    {"fault", 0},             /* its code */
    {"index", 0},             /* of the instruction that faults */
    {"port", 0},
    {"response", 2},
    {"error_address", 0},
    {"late", 0},              /* the bus error comes with Halt */
    {"runs", 1},
    {"scrub", 0},
    {"unplugged", 0},         /* all registers read as ones from the start of the program on */
    {"heals", 0},             /* the stuck bits become 0 after a run */
};

static uint64_t *setting(const char *name, size_t length) {
    for (size_t i = 0; i != sizeof settings / sizeof settings[0]; ++i) {
        if (strlen(settings[i].name) == length && memcmp(settings[i].name, name, length) == 0) return &settings[i].value;
    }
    fprintf(stderr, "no setting %s\n", name);
    exit(2);
}

static uint64_t get(const char *name) { return *setting(name, strlen(name)); }

/* Registers */

static uint32_t words[0x1000 / 4];
static uint32_t events[8][2]; /* EVENT and EVENT_INDEX */
static unsigned first_event, last_event;
static bool is_gone;

static void set(uint32_t offset, uint64_t value) {
    words[offset / 4] = (uint32_t)value;
    words[offset / 4 + 1] = (uint32_t)(value >> 32);
}

static void push(uint32_t kind, uint32_t fault, uint32_t index) {
    events[last_event][0] = OPENMXU_EVENT_VALID_MASK | kind | fault << OPENMXU_EVENT_FAULT_SHIFT;
    events[last_event++][1] = index;
    words[OPENMXU_INTERRUPT_STATUS / 4] |= 1U << kind;
}

static void end(void) {
    const uint32_t fault = (uint32_t)get("fault");
    const bool is_bus = fault == OPENMXU_FAULT_CODE_BUS_ERROR, is_time_out = fault == OPENMXU_FAULT_CODE_TIME_OUT;
    words[OPENMXU_FAULT_INDEX / 4] = (uint32_t)get("index");
    if (is_bus) {
        words[OPENMXU_STATUS / 4] |= OPENMXU_STATUS_BUS_ERROR_MASK;
        words[OPENMXU_BUS_ERROR / 4] = (uint32_t)(OPENMXU_BUS_ERROR_PENDING_MASK |
                                                  get("port") << OPENMXU_BUS_ERROR_PORT_SHIFT |
                                                  get("response") << OPENMXU_BUS_ERROR_RESPONSE_SHIFT);
        set(OPENMXU_BUS_ERROR_ADDRESS, get("error_address"));
    }
    if (is_time_out) words[OPENMXU_STATUS / 4] |= OPENMXU_STATUS_TIME_OUT_MASK;
    if (fault == 0 || get("late")) push(OPENMXU_EVENT_KIND_HALT, 0, 0);
    else if (!is_bus && !is_time_out) push(OPENMXU_EVENT_KIND_FAULT, fault, (uint32_t)get("index"));
}

/* The program goes on: it waits for the host, or ends. */
static void go_on(void) {
    if (*setting("synchronizations", 16) != 0) {
        --*setting("synchronizations", 16);
        push(OPENMXU_EVENT_KIND_HOST_SYNCHRONIZE, 0, 0);
    } else {
        end();
    }
}

uint32_t openmxu_read(const openmxu_device *device, uint32_t offset) {
    (void)device;
    if (is_gone) return UINT32_MAX;
    if (offset == OPENMXU_EVENT && get("polls") != 0 && words[OPENMXU_RING_HEAD / 4] != 0) {
        if (--*setting("polls", 5) == 0) go_on();
        return 0;
    }
    if (offset == OPENMXU_EVENT) return first_event == last_event ? 0 : events[first_event][0];
    if (offset == OPENMXU_EVENT_INDEX) return events[first_event][1];
    return words[offset / 4];
}

void openmxu_write(openmxu_device *device, uint32_t offset, uint32_t value) {
    (void)device;
    if (offset == OPENMXU_COMMAND && (value & OPENMXU_COMMAND_RESET_MASK) != 0) {
        first_event = last_event = 0;
        words[OPENMXU_STATUS / 4] = (uint32_t)get("stuck");
        words[OPENMXU_CONTROL / 4] = words[OPENMXU_RING_HEAD / 4] = 0;
        puts("reset");
    } else if (offset == OPENMXU_COMMAND) {
        ++first_event;
    } else if (offset == OPENMXU_INTERRUPT_STATUS) {
        words[offset / 4] &= ~value;
    } else if (offset == OPENMXU_CORE_COMMAND) {
        if ((value & OPENMXU_CORE_COMMAND_ACKNOWLEDGE_MASK) != 0) go_on();
        if ((value & OPENMXU_CORE_COMMAND_CLEAR_FAULT_MASK) != 0) puts("clear fault");
        if ((value & OPENMXU_CORE_COMMAND_CLEAR_COUNTERS_MASK) != 0) puts("clear counters");
        if ((value & OPENMXU_CORE_COMMAND_SCRUB_MASK) != 0) set(OPENMXU_CORE_STATUS, get("scrubbing"));
    } else {
        words[offset / 4] = value;
        if (offset == OPENMXU_CONTROL) words[OPENMXU_RING_HEAD / 4] = 0;
        if (offset == OPENMXU_RING_HEAD && words[OPENMXU_CONTROL / 4] == OPENMXU_CONTROL_ENABLE_MASK) {
            printf("start ring %#x %#x %#x host %#x %#x weights %#x %#x limit %#x\n", words[OPENMXU_RING_BASE / 4],
                   words[OPENMXU_RING_SIZE / 4], value, words[OPENMXU_HOST_OFFSET / 4], words[OPENMXU_HOST_LIMIT / 4],
                   words[OPENMXU_WEIGHT_OFFSET / 4], words[OPENMXU_WEIGHT_LIMIT / 4], words[OPENMXU_TIME_LIMIT / 4]);
            is_gone = get("unplugged") != 0;
            if (get("polls") == 0) go_on();
        }
    }
}

/* Hooks */

static const uint8_t *base;

static void clean(void *context, const void *data, size_t size) {
    (void)data;
    if (context == &settings) printf("clean %zu\n", size);
}

static void invalidate(void *context, void *data, size_t size) {
    if (context == &settings) printf("invalidate %td %zu\n", (uint8_t *)data - base, size);
}

static bool wait(void *context) { return context == &settings && (*setting("patience", 8))-- != 0; }

static void say(const char *what, openmxu_status status) {
    printf("%s %d\n", what, (int)status);
    if (status != OPENMXU_OK && strcmp(what, "run") != 0 && strcmp(what, "scrub") != 0) exit(0);
}

/* A buffer of exactly as many bytes as it says. */
static openmxu_buffer buffer(uint32_t size, const char *address, const char *missing) {
    const size_t rest = size - (size_t)get(missing);
    const openmxu_buffer result = {malloc(rest), get(address), rest};
    return result;
}

int main(int count, char **arguments) {
    static const openmxu_image_header nothing;
    const openmxu_hooks hooks = {&settings, clean, invalidate, wait};
    openmxu_device device;
    openmxu_program program;
    if (count < 2) return 2;
    for (int i = 2; i != count; ++i) {
        const char *equals = strchr(arguments[i], '=');
        if (equals == NULL) return 2;
        *setting(arguments[i], (size_t)(equals - arguments[i])) = strtoull(equals + 1, NULL, 0);
    }
    FILE *file = fopen(arguments[1], "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) return 2;
    const size_t size = (size_t)ftell(file), offset = (size_t)get("offset");
    uint8_t *memory = malloc(size + offset);
    rewind(file);
    if (fread(memory + offset, 1, size, file) != size) return 2;
    fclose(file);
    const openmxu_image image = {memory + offset, get("address"), size};
    const openmxu_image_header *header =
        size >= sizeof nothing && offset % 4 == 0 ? (const void *)(memory + offset) : (const void *)&nothing;

    set(OPENMXU_IDENTIFICATION, get("identification"));
    words[OPENMXU_SHELL / 4] = (uint32_t)(OPENMXU_SHELL_KIND_AXI | get("map") << OPENMXU_SHELL_VERSION_SHIFT);
    for (uint32_t i = 0; i != OPENMXU_IMAGE_CONFIG_WORDS; ++i) {
        words[OPENMXU_CONFIG_SIZE / 4 + i] = header->config[i] + (i == get("wrong_config"));
    }
    say("open", openmxu_open(&device, NULL, &hooks));
    openmxu_enable_interrupts(&device, OPENMXU_ENDS);
    const uint32_t bytes = header->host_bytes > 1 << 20 ? 1 << 20 : header->host_bytes;
    const openmxu_buffer host = buffer(bytes, "host_address", "host_missing");
    const bool copies = get("copies") != 0;
    const openmxu_buffer ring = buffer(copies ? header->ring_bytes : 0, "ring_address", "ring_missing");
    const openmxu_buffer weights = buffer(copies ? header->weight_bytes : 0, "weight_address", "weight_missing");
    base = host.data;
    say("load", openmxu_load(&program, &device, &image, &host, copies ? &ring : NULL, copies ? &weights : NULL));
    if (copies && (memcmp(ring.data, memory + header->ring, ring.size) != 0 ||
                   memcmp(weights.data, memory + header->weights, weights.size) != 0)) {
        return 1;
    }
    for (uint64_t run = 0; run != get("runs"); ++run) {
        const openmxu_status status = openmxu_run(&device, &program);
        const openmxu_fault *fault = &device.fault;
        say("run", status);
        if (get("heals")) *setting("stuck", 5) = words[OPENMXU_STATUS / 4] = 0;
        if (status == OPENMXU_STOPPED) {
            printf("fault %u %u %u %u %#llx\n", fault->code, fault->index, fault->port, fault->response,
                   (unsigned long long)fault->address);
        }
    }
    if (get("scrub")) say("scrub", openmxu_scrub(&device, &program));
    if (device.program != NULL || openmxu_poll(&device) != OPENMXU_OK) return 1;
    openmxu_acknowledge(&device);
    if (openmxu_acknowledge(&device) != 0 && !is_gone) return 1;
    free(memory);
    free(host.data);
    free(ring.data);
    free(weights.data);
    return 0;
}
