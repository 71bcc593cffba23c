#include "receive.h"

#include <stdbool.h>

#include <generated/mem.h>
#include <generated/soc.h>

#include "console.h"

#define ABORT 0
#define LOAD 1
#define JUMP 2
#define ADDRESS_BYTES 4
#define LONGEST_GAP (CONFIG_CLOCK_FREQUENCY / 8) /* cycles between two bytes of a frame */

struct frame {
    uint8_t length, command;
    uint16_t crc;
    uint8_t payload[255];
};

static uint16_t crc_of(uint16_t crc, uint8_t byte) {
    crc ^= (uint16_t)(byte << 8);
    for (int i = 0; i != 8; ++i) crc = (uint16_t)(crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0));
    return crc;
}

/* While the bytes arrive, so that few of them wait afterwards. Returns false if they stop. */
static bool take(struct frame *frame, uint16_t *crc) {
    uint8_t high, low;
    get(&frame->length, 0);
    if (!get(&high, LONGEST_GAP) || !get(&low, LONGEST_GAP) || !get(&frame->command, LONGEST_GAP)) return false;
    frame->crc = (uint16_t)(high << 8 | low);
    *crc = crc_of(0, frame->command);
    for (uint32_t i = 0; i != frame->length; ++i) {
        if (!get(frame->payload + i, LONGEST_GAP)) return false;
        *crc = crc_of(*crc, frame->payload[i]);
    }
    return true;
}

static uint32_t word(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static bool is_dram(uint32_t address, uint32_t size) {
    const uint32_t place = address - MAIN_RAM_BASE;
    return place < MAIN_RAM_SIZE && size <= MAIN_RAM_SIZE - place;
}

static void copy(uint32_t address, const uint8_t *bytes, uint32_t count) {
    while (count != 0 && address % 4 != 0) *(volatile uint8_t *)(uintptr_t)address = *bytes++, ++address, --count;
    for (; count >= 4; count -= 4, bytes += 4, address += 4) {
        *(volatile uint32_t *)(uintptr_t)address =
            (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
    }
    while (count-- != 0) *(volatile uint8_t *)(uintptr_t)address++ = *bytes++;
}

const struct table *receive(void) {
    for (;;) {
        static struct frame frame;
        uint16_t crc;
        if (!take(&frame, &crc)) {
            put('E');
        } else if (crc != frame.crc) {
            put('C');
        } else if (frame.command == ABORT) {
            put('K');
        } else if (frame.command != LOAD && frame.command != JUMP) {
            put('U');
        } else {
            const uint32_t address = word(frame.payload), count = frame.length - ADDRESS_BYTES;
            const bool is_table = frame.command == JUMP;
            if (frame.length < ADDRESS_BYTES || !is_dram(address, is_table ? sizeof(struct table) : count) ||
                (is_table && address % 4 != 0)) {
                put('E');
                continue;
            }
            put('K');
            if (is_table) return (const struct table *)(uintptr_t)address;
            copy(address, frame.payload + ADDRESS_BYTES, count);
        }
    }
}
