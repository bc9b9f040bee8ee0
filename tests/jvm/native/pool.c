/* A library that maps memory itself when it is loaded, each stretch as long as a table of G1's or Parallel's with a
 * heap of 128 MiB, and with a guard behind it, so that the kernel joins none of them: 8 MiB that its data name, 4 MiB
 * that only the first of these names, 2 MiB that only an object of malloc names. */
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
