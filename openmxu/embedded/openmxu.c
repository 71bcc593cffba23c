/* See openmxu.h. SPDX-License-Identifier: BSD-2-Clause */
#include "openmxu.h"

#ifndef OPENMXU_BARRIER
#define OPENMXU_BARRIER() __sync_synchronize() /* accesses of memory and of registers keep their order */
#endif

/* Registers */

static void write_wide(openmxu_device *device, uint32_t offset, uint64_t value) {
    openmxu_write(device, offset, (uint32_t)value);
    openmxu_write(device, offset + 4, (uint32_t)(value >> 32));
}

static uint64_t read_wide(const openmxu_device *device, uint32_t offset) {
    const uint32_t low = openmxu_read(device, offset);
    return low | (uint64_t)openmxu_read(device, offset + 4) << 32;
}

#define FIELD(value, name) (((value) & OPENMXU_##name##_MASK) >> OPENMXU_##name##_SHIFT)

enum { NO_EVENT = 0xFF };

static bool is_clear_in_time(const openmxu_device *device, uint32_t offset, uint32_t mask) {
    for (uint32_t reads = 0; reads != OPENMXU_STATUS_READS; ++reads) {
        if ((openmxu_read(device, offset) & mask) == 0) return true;
    }
    return false;
}

static void clean(const openmxu_device *device, const void *data, size_t size) {
    if (device->hooks.clean != NULL) device->hooks.clean(device->hooks.context, data, size);
}

openmxu_status openmxu_open(openmxu_device *device, volatile uint32_t *registers, const openmxu_hooks *hooks) {
    static const openmxu_hooks none = {NULL, NULL, NULL, NULL};
    *device = (openmxu_device){registers, hooks == NULL ? none : *hooks, NULL, {0, 0, 0, 0, 0}, false};
    if (read_wide(device, OPENMXU_IDENTIFICATION) != OPENMXU_ID) return OPENMXU_NO_DEVICE;
    if (FIELD(openmxu_read(device, OPENMXU_SHELL), SHELL_VERSION) != OPENMXU_MAP_VERSION) {
        return OPENMXU_OTHER_REGISTERS;
    }
    openmxu_enable_interrupts(device, 0);
    return openmxu_reset(device);
}

openmxu_status openmxu_reset(openmxu_device *device) {
    device->program = NULL;
    openmxu_write(device, OPENMXU_COMMAND, OPENMXU_COMMAND_RESET_MASK);
    device->is_ready = is_clear_in_time(device, OPENMXU_STATUS, OPENMXU_STATUS_RESETTING_MASK);
    openmxu_acknowledge(device);
    return device->is_ready ? OPENMXU_OK : OPENMXU_STUCK;
}

void openmxu_enable_interrupts(openmxu_device *device, uint32_t interrupts) {
    openmxu_write(device, OPENMXU_INTERRUPT_ENABLE, interrupts);
}

uint32_t openmxu_acknowledge(openmxu_device *device) {
    const uint32_t happened = openmxu_read(device, OPENMXU_INTERRUPT_STATUS);
    openmxu_write(device, OPENMXU_INTERRUPT_STATUS, happened);
    return happened;
}

uint64_t openmxu_counter(const openmxu_device *device, uint32_t counter) {
    return read_wide(device, counter);
}

void openmxu_clear_counters(openmxu_device *device) {
    write_wide(device, OPENMXU_CORE_COMMAND, OPENMXU_CORE_COMMAND_CLEAR_COUNTERS_MASK);
}

/* Images */

static uint32_t times(uint32_t a, uint32_t b) {
    const uint64_t product = (uint64_t)a * b;
    return product > UINT32_MAX ? UINT32_MAX : (uint32_t)product;
}

static uint32_t size_of(const openmxu_image_header *header) {
    return header->config[0]; /* of CONFIG_SIZE */
}

/* Bytes of host memory from tensor->place on. */
static uint32_t extent_of(const openmxu_image_header *header, const openmxu_image_tensor *tensor) {
    const uint32_t size = size_of(header), rows = times(times(tensor->height, tensor->width), header->batch);
    const uint32_t lanes = times(times(tensor->packed_rows, tensor->packed_columns), tensor->columns);
    return times(times(times(rows, tensor->value_bytes), size), lanes / size + (lanes % size != 0));
}

static bool is_inside(uint32_t first, uint32_t size, uint32_t end) {
    return size <= end && first <= end - size;
}

static bool is_tensor(const openmxu_image_header *header, const openmxu_image_tensor *tensor, bool is_output) {
    const uint32_t bytes = tensor->value_bytes, scales = tensor->scale_count;
    return (bytes == 1 || bytes == 2 || bytes == 4) && extent_of(header, tensor) != 0 &&
           times(times(tensor->image_height, tensor->image_width), tensor->columns) == tensor->values &&
           (scales <= 1 || scales == tensor->columns) && tensor->scales % 4 == 0 &&
           is_inside(tensor->scales, times(scales, 4), header->bytes) && tensor->place % size_of(header) == 0 &&
           (!is_output || (tensor->height == tensor->image_height && tensor->width == tensor->image_width)) &&
           is_inside(tensor->place, extent_of(header, tensor), header->host_bytes);
}

static const openmxu_image_tensor *tensors_of(const openmxu_image_header *header) {
    return (const openmxu_image_tensor *)(const void *)((const uint8_t *)header + header->tensors);
}

/* Bytes of rings; each has one free place. */
static uint32_t ring_bytes(uint32_t instructions, uint32_t scrub) {
    return times(instructions + 1 + (scrub != 0 ? scrub + 1 : 0), OPENMXU_INSTRUCTION_BYTES);
}

static bool is_sound(const openmxu_image_header *header) {
    const uint32_t end = header->bytes, inputs = header->inputs, outputs = header->outputs;
    if (size_of(header) == 0 || inputs > 0xFFFF || outputs > 0xFFFF || header->tensors % 4 != 0 ||
        !is_inside(header->tensors, times(inputs + outputs, sizeof(openmxu_image_tensor)), end) ||
        header->instructions - 1 >= end || header->scrub_instructions >= end ||
        header->ring_bytes != ring_bytes(header->instructions, header->scrub_instructions) ||
        !is_inside(header->ring, header->ring_bytes, end) || !is_inside(header->weights, header->weight_bytes, end) ||
        !is_inside(header->constants, header->constant_bytes, end) ||
        !is_inside(header->constant_place, header->constant_bytes, header->host_bytes)) {
        return false;
    }
    for (uint32_t i = 0; i != inputs + outputs; ++i) {
        if (!is_tensor(header, tensors_of(header) + i, i >= inputs)) return false;
    }
    return true;
}

static openmxu_status check(const openmxu_image *image) {
    const openmxu_image_header *header = image->data;
    const uint32_t *words = image->data;
    uint32_t sum = 0, sum_of_sums = 0;
    if ((uintptr_t)image->data % sizeof(uint32_t) != 0) return OPENMXU_MISALIGNED;
    if (image->size < sizeof(uint32_t)) return OPENMXU_TRUNCATED;
    if (words[0] != OPENMXU_IMAGE_MAGIC) return OPENMXU_NO_IMAGE;
    if (image->size < sizeof *header) return OPENMXU_TRUNCATED;
    if (header->version != OPENMXU_IMAGE_VERSION) return OPENMXU_OTHER_IMAGE;
    if (header->bytes > image->size) return OPENMXU_TRUNCATED;
    if (header->bytes < sizeof *header || header->bytes % 4 != 0) return OPENMXU_DAMAGED;
    for (uint32_t i = OPENMXU_IMAGE_CHECKED; i != header->bytes / 4; ++i) sum_of_sums += sum += words[i];
    if (sum != header->sum || sum_of_sums != header->sum_of_sums || !is_sound(header)) return OPENMXU_DAMAGED;
    return OPENMXU_OK;
}

static void copy(void *target, const void *source, uint32_t size) {
    uint8_t *to = target;
    const uint8_t *from = source;
    while (size-- != 0) *to++ = *from++;
}

/* Check the bus addresses of `size` bytes on a port with addresses of `width` bits. */
static openmxu_status reach(uint64_t address, uint32_t size, uint32_t alignment, uint32_t width) {
    const uint64_t last = width < 64 ? ((uint64_t)1 << width) - 1 : UINT64_MAX;
    if (address % alignment != 0) return OPENMXU_MISALIGNED;
    return address > last || (size != 0 && size - 1 > last - address) ? OPENMXU_OUT_OF_REACH : OPENMXU_OK;
}

/* Copy a part of the image to a buffer, unless the device reads it in the image; `address` gets its bus address. */
static openmxu_status put(const openmxu_device *device, const openmxu_image *image, uint32_t first, uint32_t size,
                          const openmxu_buffer *buffer, uint32_t alignment, uint32_t width, uint64_t *address) {
    const uint8_t *source = (const uint8_t *)image->data + first;
    *address = buffer == NULL ? image->address + first : buffer->address;
    if (buffer != NULL && buffer->size < size) return OPENMXU_TOO_SMALL;
    const openmxu_status status = reach(*address, size, alignment, width);
    if (status != OPENMXU_OK) return status;
    if (buffer != NULL) copy(buffer->data, source, size);
    clean(device, buffer == NULL ? source : buffer->data, size);
    return OPENMXU_OK;
}

openmxu_status openmxu_load(openmxu_program *program, openmxu_device *device, const openmxu_image *image,
                            const openmxu_buffer *host, const openmxu_buffer *ring, const openmxu_buffer *weights) {
    if (device->program != NULL) return OPENMXU_RUNNING;
    openmxu_status status = check(image);
    if (status != OPENMXU_OK) return status;
    const openmxu_image_header *header = image->data;
    for (uint32_t i = 0; i != OPENMXU_IMAGE_CONFIG_WORDS; ++i) {
        if (openmxu_read(device, OPENMXU_CONFIG_SIZE + 4 * i) != header->config[i]) return OPENMXU_OTHER_CONFIGURATION;
    }
    const uint32_t host_width = openmxu_read(device, OPENMXU_CONFIG_HOST_ADDRESS_WIDTH);
    const uint32_t weight_width = openmxu_read(device, OPENMXU_CONFIG_WEIGHT_ADDRESS_WIDTH);
    if (host->size < header->host_bytes) return OPENMXU_TOO_SMALL;
    status = reach(host->address, header->host_bytes, OPENMXU_IMAGE_ALIGNMENT, host_width);
    if (status != OPENMXU_OK) return status;
    status = put(device, image, header->ring, header->ring_bytes, ring, OPENMXU_INSTRUCTION_BYTES, host_width,
                 &program->ring);
    if (status != OPENMXU_OK) return status;
    status = put(device, image, header->weights, header->weight_bytes, weights, OPENMXU_IMAGE_ALIGNMENT, weight_width,
                 &program->weights);
    if (status != OPENMXU_OK) return status;
    uint8_t *memory = host->data;
    for (uint32_t i = 0; i != header->host_bytes; ++i) memory[i] = 0;
    copy(memory + header->constant_place, (const uint8_t *)image->data + header->constants, header->constant_bytes);
    program->header = header;
    program->tensors = tensors_of(header);
    program->host = *host;
    program->time_limit = header->time_limit;
    return OPENMXU_OK;
}

/* Programs */

static void start(openmxu_device *device, const openmxu_program *program, uint64_t ring, uint32_t instructions) {
    device->program = program;
    clean(device, program->host.data, program->header->host_bytes);
    write_wide(device, OPENMXU_HOST_OFFSET, program->host.address);
    write_wide(device, OPENMXU_HOST_BASE, 0);
    write_wide(device, OPENMXU_HOST_LIMIT, program->header->host_bytes);
    write_wide(device, OPENMXU_WEIGHT_OFFSET, program->weights);
    write_wide(device, OPENMXU_WEIGHT_BASE, 0);
    write_wide(device, OPENMXU_WEIGHT_LIMIT, program->header->weight_bytes);
    write_wide(device, OPENMXU_RING_BASE, ring);
    openmxu_write(device, OPENMXU_RING_SIZE, (instructions + 1) * OPENMXU_INSTRUCTION_BYTES);
    openmxu_write(device, OPENMXU_TIME_LIMIT, program->time_limit);
    openmxu_acknowledge(device);
    openmxu_write(device, OPENMXU_CONTROL, OPENMXU_CONTROL_ENABLE_MASK);
    OPENMXU_BARRIER();
    openmxu_write(device, OPENMXU_RING_HEAD, instructions * OPENMXU_INSTRUCTION_BYTES);
}

static openmxu_status make_ready(openmxu_device *device) {
    if (device->program != NULL) return OPENMXU_RUNNING;
    return device->is_ready ? OPENMXU_OK : openmxu_reset(device);
}

openmxu_status openmxu_start(openmxu_device *device, const openmxu_program *program) {
    const openmxu_status status = make_ready(device);
    if (status == OPENMXU_OK) start(device, program, program->ring, program->header->instructions);
    return status;
}

/* Take the program's events, as many as a working device can have; returns the kind of the last one, or NO_EVENT. */
static uint32_t take_events(openmxu_device *device) {
    uint32_t event, kind = NO_EVENT, reads = 0;
    while (FIELD(event = openmxu_read(device, OPENMXU_EVENT), EVENT_VALID) && ++reads != OPENMXU_STATUS_READS) {
        kind = FIELD(event, EVENT_KIND);
        if (kind == OPENMXU_EVENT_KIND_FAULT) {
            device->fault.code = FIELD(event, EVENT_FAULT);
            device->fault.index = openmxu_read(device, OPENMXU_EVENT_INDEX);
        }
        openmxu_write(device, OPENMXU_COMMAND, OPENMXU_COMMAND_POP_EVENT_MASK);
        if (kind == OPENMXU_EVENT_KIND_HOST_SYNCHRONIZE) {
            write_wide(device, OPENMXU_CORE_COMMAND, OPENMXU_CORE_COMMAND_ACKNOWLEDGE_MASK);
        }
    }
    return kind;
}

/* After a bus error or a time-out, which need a reset. */
static openmxu_status stop(openmxu_device *device, uint32_t code) {
    openmxu_fault *fault = &device->fault;
    fault->code = code;
    fault->index = openmxu_read(device, OPENMXU_FAULT_INDEX);
    if (code == OPENMXU_FAULT_CODE_BUS_ERROR) {
        const uint32_t error = openmxu_read(device, OPENMXU_BUS_ERROR);
        fault->port = FIELD(error, BUS_ERROR_PORT);
        fault->response = FIELD(error, BUS_ERROR_RESPONSE);
        fault->address = read_wide(device, OPENMXU_BUS_ERROR_ADDRESS);
    }
    return openmxu_reset(device) == OPENMXU_OK ? OPENMXU_STOPPED : OPENMXU_STUCK;
}

openmxu_status openmxu_poll(openmxu_device *device) {
    const openmxu_program *program = device->program;
    if (program == NULL) return OPENMXU_OK;
    const uint32_t last = take_events(device); /* Halt and faults are the last ones of a program */
    /* After the events, so that an error of this program's last writes is not missed. */
    const uint32_t status = openmxu_read(device, OPENMXU_STATUS);
    if (FIELD(status, STATUS_BUS_ERROR)) return stop(device, OPENMXU_FAULT_CODE_BUS_ERROR);
    if (FIELD(status, STATUS_TIME_OUT)) return stop(device, OPENMXU_FAULT_CODE_TIME_OUT);
    if (last != OPENMXU_EVENT_KIND_HALT && last != OPENMXU_EVENT_KIND_FAULT) return OPENMXU_RUNNING;
    device->program = NULL;
    openmxu_write(device, OPENMXU_CONTROL, 0);
    device->is_ready = is_clear_in_time(device, OPENMXU_STATUS, OPENMXU_STATUS_FETCHING_MASK);
    if (!device->is_ready) return OPENMXU_STUCK;
    if (last == OPENMXU_EVENT_KIND_FAULT) {
        write_wide(device, OPENMXU_CORE_COMMAND, OPENMXU_CORE_COMMAND_CLEAR_FAULT_MASK);
        return OPENMXU_STOPPED;
    }
    OPENMXU_BARRIER();
    for (uint32_t i = 0; i != program->header->outputs && device->hooks.invalidate != NULL; ++i) {
        const openmxu_image_tensor *tensor = openmxu_output(program, i);
        device->hooks.invalidate(device->hooks.context, (uint8_t *)program->host.data + tensor->place,
                                 extent_of(program->header, tensor));
    }
    return OPENMXU_OK;
}

static openmxu_status finish(openmxu_device *device) {
    openmxu_status status;
    while ((status = openmxu_poll(device)) == OPENMXU_RUNNING) {
        if (device->hooks.wait != NULL && !device->hooks.wait(device->hooks.context)) {
            status = openmxu_reset(device);
            return status == OPENMXU_OK ? OPENMXU_GAVE_UP : status;
        }
    }
    return status;
}

openmxu_status openmxu_run(openmxu_device *device, const openmxu_program *program) {
    const openmxu_status status = openmxu_start(device, program);
    return status == OPENMXU_OK ? finish(device) : status;
}

openmxu_status openmxu_scrub(openmxu_device *device, const openmxu_program *program) {
    const openmxu_image_header *header = program->header;
    openmxu_status status = make_ready(device);
    if (status != OPENMXU_OK) return status;
    if (header->scrub_instructions != 0) {
        start(device, program, program->ring + ring_bytes(header->instructions, 0), header->scrub_instructions);
        status = finish(device);
        openmxu_clear_counters(device);
        return status;
    }
    write_wide(device, OPENMXU_CORE_COMMAND, OPENMXU_CORE_COMMAND_SCRUB_MASK);
    return is_clear_in_time(device, OPENMXU_CORE_STATUS, OPENMXU_CORE_STATUS_SCRUBBING_MASK) ? OPENMXU_OK
                                                                                            : OPENMXU_STUCK;
}

/* Tensors */

#ifndef OPENMXU_NO_FLOAT
static const float *scales_of(const openmxu_program *program, const openmxu_image_tensor *tensor) {
    return (const float *)(const void *)((const uint8_t *)program->header + tensor->scales);
}

/* Round half to even, and saturate; NaN becomes the least. */
static int32_t quantized(const openmxu_image_tensor *tensor, float scaled) {
    const int32_t most = (int32_t)(UINT32_MAX >> (32 + tensor->is_signed - 8 * tensor->value_bytes));
    const int32_t least = tensor->is_signed ? -most - 1 : 0;
    if (!(scaled > (float)least - (float)tensor->zero_point)) return least;
    if (scaled >= (float)most - (float)tensor->zero_point) return most;
    int32_t whole = (int32_t)scaled;
    const float rest = scaled - (float)whole;
    if (rest > 0.5F || (rest == 0.5F && whole % 2 != 0)) ++whole;
    if (rest < -0.5F || (rest == -0.5F && whole % 2 != 0)) --whole;
    return whole + tensor->zero_point;
}
#endif

static uint32_t index_of(const openmxu_image_tensor *tensor, uint32_t position, uint32_t column) {
    if (!tensor->channels_first) return position * tensor->columns + column;
    return column * tensor->image_height * tensor->image_width + position;
}

/* The lowest byte of the first value in a row of an element's plane in host memory. */
static uint8_t *row_of(const openmxu_program *program, const openmxu_image_tensor *tensor, uint32_t element,
                       uint32_t plane, uint32_t row) {
    const uint32_t rows = (plane * program->header->batch + element) * tensor->height * tensor->width + row;
    return (uint8_t *)program->host.data + tensor->place + rows * tensor->value_bytes * size_of(program->header);
}

/* Where the values of a lane come from. */
typedef struct {
    uint32_t x, y, offset;       /* position of the first one, and its bytes in the caller's row y */
    uint32_t height, width, row; /* of positions with values; width and first byte in one row */
    int32_t other;               /* in the place of positions without a value */
} lane_source;

void openmxu_write_values(const openmxu_program *program, const openmxu_image_tensor *tensor, uint32_t element,
                          const void *values, bool is_float) {
    const uint32_t size = size_of(program->header), bytes = tensor->value_bytes, count = size < 4 ? size : 4;
    const uint32_t value_bytes = is_float ? (uint32_t)sizeof(float) : bytes, stride = (uint32_t)tensor->stride_x;
    const uint32_t next_column = value_bytes * index_of(tensor, 0, 1), next = value_bytes * index_of(tensor, 1, 0);
    uint32_t column = 0, u = 0, v = 0;
    lane_source lanes[4], *const end = lanes + count, *from;
    /* Four lanes of all rows, and the next ones: to store a word in DRAM takes as long as to store a byte. */
    for (uint32_t lane = 0; v < tensor->packed_rows || lane % size != 0; lane += count) {
        for (from = lanes; from != end; ++from) {
            from->x = (uint32_t)tensor->origin_x + u * (uint32_t)tensor->dilation_x; /* before the image it is large */
            from->y = (uint32_t)tensor->origin_y + v * (uint32_t)tensor->dilation_y;
            from->offset = column * next_column + from->x * next;
            from->height = v < tensor->packed_rows ? tensor->image_height : 0;
            from->other = v < tensor->packed_rows ? tensor->outside : tensor->fill;
            if (++column == tensor->columns) column = 0, ++u;
            if (u == tensor->packed_columns) u = 0, ++v;
        }
        uint8_t *target = row_of(program, tensor, element, lane / size, 0) + lane % size;
        for (uint32_t i = 0; i != tensor->height; ++i) {
            for (from = lanes; from != end; ++from) {
                const uint32_t y = from->y + i * (uint32_t)tensor->stride_y;
                from->width = y < from->height ? tensor->image_width : 0;
                from->row = y * tensor->image_width * next + from->offset;
            }
            for (uint32_t k = 0, right = 0; k != tensor->width; ++k, right += stride) {
                for (uint32_t byte = 0; byte != bytes; ++byte, target += size) {
                    uint32_t word = 0, shift = 0;
                    for (from = lanes; from != end; ++from, shift += 8) {
                        const uint8_t *value = (const uint8_t *)values + (uint32_t)(from->row + right * next);
                        uint32_t part = (uint32_t)from->other >> 8 * byte;
                        if (from->x + right < from->width) part = value[byte];
#ifndef OPENMXU_NO_FLOAT
                        if (is_float && from->x + right < from->width) {
                            const float scaled = *(const float *)(const void *)value / *scales_of(program, tensor);
                            part = (uint32_t)quantized(tensor, scaled) >> 8 * byte;
                        }
#endif
                        word |= (part & 0xFF) << shift;
                    }
                    if (count == 4) *(uint32_t *)(void *)target = word;
                    if (count == 2) *(uint16_t *)(void *)target = (uint16_t)word;
                }
            }
        }
    }
}

void openmxu_read_values(const openmxu_program *program, const openmxu_image_tensor *tensor, uint32_t element,
                         void *values, bool is_float) {
    const uint32_t size = size_of(program->header), bytes = tensor->value_bytes;
    for (uint32_t position = 0; position != tensor->height * tensor->width; ++position) {
        for (uint32_t column = 0; column != tensor->columns; ++column) {
            const uint8_t *source = row_of(program, tensor, element, column / size, position) + column % size;
            const uint32_t index = index_of(tensor, position, column), first = index * bytes;
            for (uint32_t i = 0; i != bytes && !is_float; ++i) ((uint8_t *)values)[first + i] = source[i * size];
#ifndef OPENMXU_NO_FLOAT
            if (!is_float) continue;
            const float scale = scales_of(program, tensor)[tensor->scale_count == 1 ? 0 : column];
            uint32_t value = 0, sign = tensor->is_signed ? (uint32_t)1 << (8 * bytes - 1) : 0;
            for (uint32_t i = 0; i != bytes; ++i) value |= (uint32_t)source[i * size] << 8 * i;
            ((float *)values)[index] = (float)((int32_t)((value ^ sign) - sign) - tensor->zero_point) * scale;
#endif
        }
    }
}
