/* Takes the DRAM's contents from the UART, in the frames of LiteX's serial boot ("SFL"):
 *
 *     length, CRC-16 (2 bytes), command, payload of this length
 *
 * The CRC is that of command and payload, with the polynomial 0x1021 from 0 on; it and addresses have the highest byte
 * first. Each frame is answered with a byte: 'K' if it was carried out, 'C' after a wrong CRC, 'U' for an unknown
 * command, 'E' for an address outside the DRAM or a frame that stops in the middle.
 *
 *     0 abort    nothing: its answer shows that somebody listens
 *     1 load     address and bytes to be written there
 *     2 jump     address of a table of contents, whose networks are to run
 */
#ifndef RECEIVE_H
#define RECEIVE_H

#include "table.h"

/* Carry out frames until one names a table of contents. */
const struct table *receive(void);

#endif
