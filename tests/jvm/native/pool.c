/* A library that maps memory when loaded: mappings as long as G1's or Parallel's tables for a 128 MiB heap, each before
 * a guard so that the kernel merges none. The library's data points to 8 MiB, which alone point to 4 MiB; only a malloc
 * block points to 2 MiB. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char *volatile pool;
static char **volatile object;

static char *mapped(size_t mib) {
    size_t bytes = mib << 20;
    char *at = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + bytes, 4096, PROT_NONE)) abort();
    memset(at, 1, bytes);
    return at;
}

int JNI_OnLoad(void *vm, void *reserved) {
    (void)vm, (void)reserved;
    pool = mapped(8);
    *(char **)(pool + 4096) = mapped(4);
    object = malloc(64);
    object[3] = mapped(2);
    return 0x00010008;
}
