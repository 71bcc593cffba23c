/* The table of contents; contents.py writes it. Places are bytes from the beginning of the DRAM. */
#ifndef TABLE_H
#define TABLE_H

#include <stdint.h>

#define TABLE_MAGIC 0x4C42544DU

struct network {
    char name[16]; /* ends with a 0 */
    uint32_t program, program_bytes;
    uint32_t host, host_bytes; /* room for the program's host memory, twice */
    uint32_t images, image_bytes, image_count;
};

struct table {
    uint32_t magic, count;
    struct network networks[];
};

#endif
