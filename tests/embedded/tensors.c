/* Values of tensors in files to host memory, and back, with the driver.
 *
 * Usage: tensors IMAGE IS_FLOAT FROM TO: writes the first input of FROM to host memory, and that to TO; and reads the
 * first output in host memory, appended to TO.
 */
#include <stdio.h>
#include <stdlib.h>

#include "openmxu.h"

static const openmxu_image_header *header;

uint32_t openmxu_read(const openmxu_device *device, uint32_t offset) {
    (void)device;
    if (offset == OPENMXU_IDENTIFICATION) return (uint32_t)OPENMXU_ID;
    if (offset == OPENMXU_IDENTIFICATION + 4) return (uint32_t)(OPENMXU_ID >> 32);
    if (offset == OPENMXU_SHELL) return OPENMXU_MAP_VERSION << OPENMXU_SHELL_VERSION_SHIFT;
    return offset < OPENMXU_CONFIG_SIZE ? 0 : header->config[(offset - OPENMXU_CONFIG_SIZE) / 4];
}

void openmxu_write(openmxu_device *device, uint32_t offset, uint32_t value) { (void)device, (void)offset, (void)value; }

static uint8_t *contents(const char *name, size_t *size) {
    FILE *file = fopen(name, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) exit(2);
    *size = (size_t)ftell(file);
    uint8_t *bytes = malloc(*size);
    rewind(file);
    if (fread(bytes, 1, *size, file) != *size) exit(2);
    fclose(file);
    return bytes;
}

int main(int count, char **arguments) {
    openmxu_device device;
    openmxu_program program;
    openmxu_image image = {NULL, 0, 0};
    size_t size;
    if (count != 5) return 2;
    image.data = header = (const void *)contents(arguments[1], &image.size);
    const bool is_float = arguments[2][0] == '1';
    uint8_t *values = contents(arguments[3], &size);
    const openmxu_buffer host = {malloc(header->host_bytes), 0, header->host_bytes};
    if (openmxu_open(&device, NULL, NULL) != OPENMXU_OK) return 1;
    if (openmxu_load(&program, &device, &image, &host, NULL, NULL) != OPENMXU_OK) return 1;
    const openmxu_image_tensor *input = openmxu_input(&program, 0), *output = openmxu_output(&program, 0);
    const size_t in_bytes = input->values * (is_float ? sizeof(float) : input->value_bytes);
    const size_t out_bytes = output->values * (is_float ? sizeof(float) : output->value_bytes);
    if (size != in_bytes * header->batch) return 1;
    uint8_t *results = malloc(out_bytes * header->batch);
    for (uint32_t i = 0; i != header->batch; ++i) {
        openmxu_write_values(&program, input, i, values + i * in_bytes, is_float);
    }
    FILE *target = fopen(arguments[4], "wb");
    if (target == NULL || fwrite(host.data, 1, host.size, target) != host.size) return 2;
    /* The output's bytes are those of the input, if it lies there. */
    for (uint32_t i = 0; i != header->batch; ++i) {
        openmxu_read_values(&program, output, i, results + i * out_bytes, is_float);
    }
    if (fwrite(results, out_bytes, header->batch, target) != header->batch) return 2;
    return fclose(target) == 0 ? 0 : 1;
}
