/* A native program with a known appetite for malloc, to be linked with musl.
 *
 * Allocates blocks of all sizes, frees some of each, prints a marker with both totals, and waits. Frees come last, so
 * that no block is reused. Sizes fill a mallocng slot (16 bytes times its class, less 4), except for the blocks counted
 * to the byte.
 *
 * Arguments: FILLING, `exact` (full slots), `odd` (any size, also aligned and resized blocks), or `busy` (like exact,
 * plus two threads that keep allocating and freeing).
 *
 * Keys: live, live_bytes (requested), alone_bytes (requested in blocks with their own mapping), freed,
 * freed_resident_bytes and freed_pages_bytes (the parts of freed blocks on resident pages, and on pages without live
 * blocks, both from /proc/self/pagemap).
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS_MAX = 400000, PAGE = 4096, HEADER = 4, ALONE_MIN = 131052 };
static const int classes[] = {1, 2, 3, 5, 18, 31, 63, 127, 255, 511, 818, 1637, 3276, 5460};
static char *at[BLOCKS_MAX];
static uint32_t size[BLOCKS_MAX];
static char freed[BLOCKS_MAX];
static int count;
static unsigned seed = 11;

static void keep(void *block, uint32_t bytes) {
    if (!block || count == BLOCKS_MAX) {
        abort();
    }
    memset(block, 0x6b, bytes);
    at[count] = block;
    size[count++] = bytes;
}

static void plant(int odd) {
    for (unsigned n = 0; n < sizeof classes / sizeof *classes; n++) {
        uint32_t full = classes[n] * 16 - HEADER;
        int blocks = 4000000 / (full + HEADER);
        for (int i = 0; i < (blocks > 8000 ? 8000 : blocks); i++) {
            uint32_t bytes = odd ? 1 + rand_r(&seed) % full : full;
            int kind = odd ? rand_r(&seed) % 8 : 0;
            void *block = NULL;
            if (kind == 6 && posix_memalign(&block, 1 << (4 + rand_r(&seed) % 9), bytes)) {
                abort();
            } else if (kind == 7) {
                block = realloc(malloc(bytes / 2 + 1), bytes);
            }
            keep(block ? block : malloc(bytes), bytes);
        }
    }
    for (int i = 0; i < 20; i++) {
        uint32_t bytes = odd ? 200000 + rand_r(&seed) % 100000 : 64 * PAGE - 20;
        keep(malloc(bytes), bytes);
    }
}

static int in_memory(int map, uintptr_t page) {
    uint64_t entry = 0;
    return pread(map, &entry, 8, page / PAGE * 8) == 8 && entry >> 63;
}

static void say(void) {
    int map = open("/proc/self/pagemap", O_RDONLY);
    long live = 0, live_bytes = 0, alone = 0, gone = 0, resident = 0, pages = 0;
    for (int i = 0; i < count; i++) {
        if (!freed[i]) {
            live++;
            live_bytes += size[i];
            alone += size[i] >= ALONE_MIN ? size[i] : 0;
            continue;
        }
        gone++;
        /* Including its header. */
        uintptr_t start = (uintptr_t)at[i] - HEADER, end = (uintptr_t)at[i] + size[i];
        for (uintptr_t page = start & -PAGE; page < end; page += PAGE) {
            uintptr_t from = page > start ? page : start, to = page + PAGE < end ? page + PAGE : end;
            long there = in_memory(map, page) ? to - from : 0;
            resident += there;
            pages += there == PAGE ? PAGE : 0;
        }
    }
    char text[400];
    int length = snprintf(text, sizeof text,
        "loadline: phase=planted live=%ld live_bytes=%ld alone_bytes=%ld freed=%ld freed_resident_bytes=%ld "
        "freed_pages_bytes=%ld\n", live, live_bytes, alone, gone, resident, pages);
    if (write(1, text, length) != length) {
        abort();
    }
}

static void *churn(void *mine) {
    unsigned own = (unsigned)(uintptr_t)mine;
    for (;;) {
        char *blocks[8];
        for (int i = 0; i < 8; i++) {
            blocks[i] = malloc(16 + rand_r(&own) % 3000);
            blocks[i][0] = 1;
        }
        for (int i = 0; i < 8; i++) {
            free(blocks[i]);
        }
    }
    return mine;
}

int main(int arguments, char **argument) {
    const char *filling = arguments > 1 ? argument[1] : "exact";
    plant(!strcmp(filling, "odd"));
    /* Frees a third of each size, small blocks in runs: this frees some pages, in part or whole, but no whole group. */
    for (int i = 0; i < count; i++) {
        if ((size[i] < 2000 ? i / 40 : i) % 3 == 1) {
            freed[i] = 1;
            free(at[i]);
        }
    }
    if (!strcmp(filling, "busy")) {
        for (uintptr_t n = 1; n <= 2; n++) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, churn, (void *)n)) {
                abort();
            }
        }
    }
    say();
    sleep(600);
    return 0;
}
