/* See openmxu_linux.h. SPDX-License-Identifier: BSD-2-Clause */
#define _DEFAULT_SOURCE
#include "openmxu_linux.h"

#ifdef __linux__ /* nothing elsewhere, so that firmware may compile all files */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REGISTER_BYTES = 0x1000, PATIENCE = 1000 }; /* milliseconds */

static bool is_interrupted(const openmxu_linux *system) {
    return (system->registers[OPENMXU_STATUS / 4] & OPENMXU_STATUS_INTERRUPT_MASK) != 0;
}

/* The kernel closes the door behind each interrupt, and writing 1 opens it. */
static bool wait(void *context) {
    openmxu_linux *system = context;
    struct pollfd waiting = {system->uio, POLLIN, 0};
    const uint32_t one = 1;
    uint32_t count;
    if (!is_interrupted(system)) {
        if (write(system->uio, &one, sizeof one) != (ssize_t)sizeof one) return false;
        if (poll(&waiting, 1, PATIENCE) == 1 && read(system->uio, &count, sizeof count) < 0) return false;
        if (!is_interrupted(system)) return false;
    }
    /* As openmxu_acknowledge() does; the driver polls after that. */
    system->registers[OPENMXU_INTERRUPT_STATUS / 4] = system->registers[OPENMXU_INTERRUPT_STATUS / 4];
    return true;
}

static int number(const char *folder, const char *name, unsigned long long *value) {
    char path[256];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof path) return ENAMETOOLONG;
    FILE *file = fopen(path, "r");
    if (file == NULL) return errno;
    const int found = fscanf(file, "%lli", (long long *)value);
    fclose(file);
    return found == 1 ? 0 : EINVAL;
}

/* Map a device's first bytes; returns its file, or -1. */
static int map(const char *path, int flags, size_t size, void **address) {
    const int file = open(path, O_RDWR | flags);
    if (file < 0) return -1;
    *address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (*address != MAP_FAILED) return file;
    const int error = errno;
    close(file);
    errno = error;
    return -1;
}

int openmxu_linux_open(openmxu_linux *system, const char *uio, const char *memory, const char *attributes) {
    unsigned long long address, size;
    void *registers, *data;
    int error = number(attributes, "phys_addr", &address);
    if (error == 0) error = number(attributes, "size", &size);
    if (error != 0) return error;
    const int file = map(memory, O_SYNC, (size_t)size, &data); /* O_SYNC: without caches */
    if (file < 0) return errno;
    close(file);
    system->uio = map(uio, 0, REGISTER_BYTES, &registers);
    if (system->uio < 0) {
        error = errno;
        munmap(data, (size_t)size);
        return error;
    }
    system->registers = registers;
    system->memory = (openmxu_buffer){data, address, (size_t)size};
    system->hooks = (openmxu_hooks){system, NULL, NULL, wait};
    return 0;
}

void openmxu_linux_close(openmxu_linux *system) {
    munmap(system->memory.data, system->memory.size);
    munmap((void *)(uintptr_t)system->registers, REGISTER_BYTES);
    close(system->uio);
}

#endif
