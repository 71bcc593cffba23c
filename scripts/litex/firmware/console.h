/* The UART: bytes, and lines of text. */
#ifndef CONSOLE_H
#define CONSOLE_H

#include <stdbool.h>
#include <stdint.h>

/* Wait until the UART takes a byte. */
void put(uint8_t byte);

/* Wait for a byte, but not longer than some cycles; 0 waits for ever. Returns whether there is one. */
bool get(uint8_t *byte, uint32_t cycles);

void text(const char *letters);
void number(uint32_t value);
void field(const char *name, uint32_t value);
void hexadecimal(uint32_t value, uint32_t digits);

#endif
