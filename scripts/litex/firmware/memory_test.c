/* LiteX's test of memory, for dram.c, with the headers of quiet/. */
#include <libbase/memtest.c>

void flush_l2_cache(void) {} /* there is none */
