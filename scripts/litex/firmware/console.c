#include "console.h"

#include <generated/csr.h>

#define RECEIVED 2 /* the UART's event for received bytes; acknowledging it takes one from the queue */

void put(uint8_t byte) {
    while (uart_txfull_read()) continue;
    uart_rxtx_write(byte);
}

bool get(uint8_t *byte, uint32_t cycles) {
    const uint32_t begin = cycles_now_read();
    while (uart_rxempty_read()) {
        if (cycles != 0 && cycles_now_read() - begin > cycles) return false;
    }
    *byte = (uint8_t)uart_rxtx_read();
    uart_ev_pending_write(RECEIVED);
    return true;
}

void text(const char *letters) {
    while (*letters != '\0') put((uint8_t)*letters++);
}

void number(uint32_t value) {
    uint8_t digits[10];
    int count = 0;
    do digits[count++] = (uint8_t)('0' + value % 10);
    while ((value /= 10) != 0);
    while (count != 0) put(digits[--count]);
}

void field(const char *name, uint32_t value) {
    text(name);
    number(value);
}

void hexadecimal(uint32_t value, uint32_t digits) {
    while (digits-- != 0) put((uint8_t)"0123456789abcdef"[value >> 4 * digits & 15]);
}
