/* A library with its own jemalloc: 64 blocks of 1 MiB, half of them freed but retained, and 100,000 of 112 bytes, a
 * quarter of them freed. */
#include <jemalloc/jemalloc.h>
#include <stdlib.h>
#include <string.h>

const char *malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1,tcache:false";
static void *volatile large[64], *volatile small[100000];

int JNI_OnLoad(void *vm, void *reserved) {
    (void)vm, (void)reserved;
    for (int n = 0; n < 64; n++) memset((void *)(large[n] = mallocx(1 << 20, 0)), 1, 1 << 20);
    for (int n = 0; n < 100000; n++) memset(small[n] = mallocx(112, 0), 1, 112);
    for (int n = 0; n < 64; n += 2) dallocx(large[n], 0), large[n] = NULL;
    for (int n = 0; n < 100000; n += 4) dallocx(small[n], 0), small[n] = NULL;
    return 0x00010008;
}
