/* A core on the bus of a Linux system, from user space: registers by UIO, memory by u-dma-buf.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef OPENMXU_LINUX_H
#define OPENMXU_LINUX_H

#include "openmxu.h"

typedef struct {
    openmxu_buffer memory; /* the buffer of u-dma-buf, mapped without caches; divide it as you like */
    volatile uint32_t *registers;
    openmxu_hooks hooks; /* for openmxu_open(): waits for the interrupts that openmxu_enable_interrupts() lets through,
                            and gives up after a second without */
    int uio;
} openmxu_linux;

/* Open for example "/dev/uio0" and "/dev/udmabuf0", whose bus address and size are in the files phys_addr and size of
 * `attributes`, for example "/sys/class/u-dma-buf/udmabuf0". Returns 0, or an error number; then nothing is open. */
int openmxu_linux_open(openmxu_linux *system, const char *uio, const char *memory, const char *attributes);
void openmxu_linux_close(openmxu_linux *system);

#endif
