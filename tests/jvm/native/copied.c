/* A library that loads a renamed allocator from its own folder and keeps 48 blocks of 512 KiB from it. ALLOCATE is the
 * allocator's function. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void *blocks[48];

int JNI_OnLoad(void *vm, void *reserved) {
    (void)vm, (void)reserved;
    Dl_info self;
    char path[4096];
    if (!dladdr(&blocks, &self) || strlen(self.dli_fname) + 16 > sizeof path) abort();
    strcpy(path, self.dli_fname);
    strcpy(strrchr(path, '/') + 1, "libinner.so");
    void *inner = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *(*allocate)(size_t) = inner ? (void *(*)(size_t))dlsym(inner, ALLOCATE) : NULL;
    if (!allocate) abort();
    for (int n = 0; n < 48; n++) memset(blocks[n] = allocate(512 << 10), 1, 512 << 10);
    return 0x00010008;
}
