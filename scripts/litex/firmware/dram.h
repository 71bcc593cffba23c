/* Starting the DRAM: its mode, and the delays of the PHY where it has any. */
#ifndef DRAM_H
#define DRAM_H

#include <stdbool.h>

/* Returns false if what was written is not what is read. The first 64 KiB are lost where there are delays to find. */
bool initialize_dram(void);

#endif
