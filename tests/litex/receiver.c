/* firmware/receive.c on this machine: frames from standard input, answers to standard output, then the memory. */
#include <poll.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <generated/mem.h>

#include "console.h"
#include "receive.h"

void put(uint8_t byte) {
    if (write(1, &byte, 1) != 1) _exit(2);
}

/* A cycle takes a millisecond. */
bool get(uint8_t *byte, uint32_t cycles) {
    struct pollfd input = {0, POLLIN, 0};
    if (poll(&input, 1, cycles == 0 ? -1 : (int)cycles) == 0) return false;
    if (read(0, byte, 1) != 1) _exit(0);
    return true;
}

int main(void) {
    void *place = (void *)(uintptr_t)MAIN_RAM_BASE;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    if (mmap(place, MAIN_RAM_SIZE, PROT_READ | PROT_WRITE, flags, -1, 0) != place) return 2;
    const uint8_t *bytes = (const uint8_t *)receive();
    for (uint32_t i = 0; i != MAIN_RAM_SIZE; ++i) {
        put((uint8_t)"0123456789abcdef"[bytes[i] >> 4]);
        put((uint8_t)"0123456789abcdef"[bytes[i] & 15]);
    }
    put('\n');
    put(4);
    return 0;
}
