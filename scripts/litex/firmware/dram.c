#include "dram.h"

#include <generated/csr.h>
#include <generated/mem.h>
#include <generated/sdram_phy.h>

#ifdef SDRAM_PHY_READ_LEVELING_CAPABLE

/* LiteDRAM's own software finds the delays. It is made for LiteX's BIOS, whose libraries are not here: quiet/ has the
 * headers of the C library that it includes, without a console. As a part of this file the compiler drops the
 * functions that nobody calls. */
#define SDRAM_TEST_DISABLE /* of megabytes, with a timer */
#include <liblitedram/sdram.c>
#include <liblitedram/accessors.c>
#include <libbase/memtest.h>

#define BUS_BYTES 512
#define TESTED_BYTES 0x10000

bool initialize_dram(void) {
    unsigned int *memory = (unsigned int *)MAIN_RAM_BASE;
    struct memtest_config quiet = {0, 0, NULL, NULL};
    sdram_init();
    return memtest_bus(memory, BUS_BYTES) == 0 && memtest_data(memory, TESTED_BYTES, 1, &quiet) == 0;
}

#else

bool initialize_dram(void) {
    init_sequence();
    sdram_dfii_control_write(DFII_CONTROL_SEL);
    return true;
}

#endif
