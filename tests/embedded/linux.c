/* The Linux part of the driver, with ordinary files in place of the kernel's devices.
 *
 * Usage: linux UIO MEMORY ATTRIBUTES; prints what happened.
 */
#include <stdio.h>
#include <string.h>

#include "digits.h"
#include "openmxu_linux.h"

int main(int count, char **arguments) {
    openmxu_linux system;
    openmxu_device device;
    openmxu_program program;
    if (count != 4) return 2;
    const int error = openmxu_linux_open(&system, arguments[1], arguments[2], arguments[3]);
    if (error != 0) {
        puts(strerror(error));
        return 0;
    }
    const size_t space = (DIGITS_HOST_BYTES + 4095) / 4096 * 4096;
    uint8_t *bytes = system.memory.data;
    memcpy(bytes + space, digits_image, sizeof digits_image);
    const openmxu_buffer host = {bytes, system.memory.address, space};
    const openmxu_image image = {bytes + space, system.memory.address + space, system.memory.size - space};
    printf("open %d\n", openmxu_open(&device, system.registers, &system.hooks));
    openmxu_enable_interrupts(&device, OPENMXU_ENDS);
    printf("load %d\n", openmxu_load(&program, &device, &image, &host, NULL, NULL));
    /* A device that never does anything: the program is given up. */
    printf("run %d\n", openmxu_run(&device, &program));
    printf("ring %#x\n", device.registers[OPENMXU_RING_BASE / 4]);
    /* The interrupt is there, and so is the event. */
    openmxu_write(&device, OPENMXU_EVENT, 0);
    printf("start %d\n", openmxu_start(&device, &program));
    openmxu_write(&device, OPENMXU_STATUS, OPENMXU_STATUS_INTERRUPT_MASK | OPENMXU_STATUS_TIME_OUT_MASK);
    printf("wait %d\n", system.hooks.wait(system.hooks.context));
    printf("poll %d\n", openmxu_poll(&device));
    openmxu_linux_close(&system);
    return 0;
}
