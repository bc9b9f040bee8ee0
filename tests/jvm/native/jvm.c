/* A fake libjvm.so: exports HotSpot's tables (vmStructs.cpp) with contents that keep a reader busy the longest.
 * LIAR=classes:N  N classes of one loader, with names as long as java/nio/Bits
 * LIAR=netty:N    N classes named like Netty's, each with 64 KiB of fields
 * LIAR=threads:N  N threads with 4,096 bytes of counters each
 * LIAR=flags:N    N flags with names and values of 1,000 bytes each */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct field { const char *of, *name; uint64_t is_static, offset; const void *address; };
struct type { const char *name; uint64_t size; };
struct constant { const char *name; uint64_t value; };

static struct { uint64_t next, classes; } loader;
static struct { uint64_t length, threads; } list;
static struct { uint64_t name, value; uint32_t type, origin; } *flag;
static uint64_t loaders, thread_list, flag_count, flags, base;
static uint32_t shift, mirror_at = 8;

#define AT(of, name, offset) { of, name, 0, offset, NULL }
#define IN(of, name, variable) { of, name, 1, 0, &variable }

static const struct field fields[] = {
    IN("ClassLoaderDataGraph", "_head", loaders),
    AT("ClassLoaderData", "_next", 0),
    AT("ClassLoaderData", "_klasses", 8),
    AT("Klass", "_next_link", 0),
    AT("Klass", "_name", 8),
    AT("Klass", "_java_mirror", 0),
    AT("InstanceKlass", "_constants", 0),
    AT("InstanceKlass", "_fieldinfo_stream", 16),
    AT("Array<int>", "_length", 0),
    AT("Array<u1>", "_data", 4),
    AT("Symbol", "_length", 0),
    AT("Symbol", "_body[0]", 2),
    AT("oopDesc", "_compressed_klass", 8),
    IN("CompressedKlassPointers", "_base", base),
    IN("CompressedKlassPointers", "_shift", shift),
    IN("java_lang_Class", "_klass_offset", mirror_at),
    IN("JVMFlag", "flags", flags),
    IN("JVMFlag", "numFlags", flag_count),
    AT("JVMFlag", "_name", 0),
    AT("JVMFlag", "_addr", 8),
    AT("JVMFlag", "_type", 16),
    AT("JVMFlag", "_flags", 20),
    IN("ThreadsSMRSupport", "_java_thread_list", thread_list),
    AT("ThreadsList", "_length", 0),
    AT("ThreadsList", "_threads", 8),
    AT("Thread", "_tlab", 0),
    AT("ThreadLocalAllocBuffer", "_start", 0),
    AT("ThreadLocalAllocBuffer", "_top", 8),
    AT("Thread", "_allocated_bytes", 4088),
    AT("Thread", "_osthread", 16),
    AT("OSThread", "_thread_id", 0),
    { 0 },
};
static const struct type types[] = { { "ConstantPool", 24 }, { "JVMFlag", 24 }, { 0 } };
static const struct constant ints[] = {
    { "FieldInfo::FieldFlags::_ff_initialized", 0 },
    { "FieldInfo::FieldFlags::_ff_generic", 1 },
    { "FieldInfo::FieldFlags::_ff_contended", 2 },
    { "JVMFlag::VALUE_ORIGIN_MASK", 15 },
    { 0 },
};
static const struct constant longs[] = { { 0 } };

const void *gHotSpotVMStructs = fields, *gHotSpotVMTypes = types;
const void *gHotSpotVMIntConstants = ints, *gHotSpotVMLongConstants = longs;
uint64_t gHotSpotVMStructEntryArrayStride = 40, gHotSpotVMStructEntryTypeNameOffset = 0;
uint64_t gHotSpotVMStructEntryFieldNameOffset = 8, gHotSpotVMStructEntryIsStaticOffset = 16;
uint64_t gHotSpotVMStructEntryOffsetOffset = 24, gHotSpotVMStructEntryAddressOffset = 32;
uint64_t gHotSpotVMTypeEntryArrayStride = 16, gHotSpotVMTypeEntryTypeNameOffset = 0, gHotSpotVMTypeEntrySizeOffset = 8;
uint64_t gHotSpotVMIntConstantEntryArrayStride = 16, gHotSpotVMIntConstantEntryNameOffset = 0;
uint64_t gHotSpotVMIntConstantEntryValueOffset = 8, gHotSpotVMLongConstantEntryArrayStride = 16;
uint64_t gHotSpotVMLongConstantEntryNameOffset = 0, gHotSpotVMLongConstantEntryValueOffset = 8;

static void *take(uint64_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) abort();
    return at;
}

/* Each class has its own successor; all share one name and the same fields. */
static void lie_of_classes(uint64_t count, const char *name, uint32_t stream_bytes) {
    struct { uint64_t next, name, stream; } *class = take(count * 24);
    uint8_t *symbol = take(4096 + 4 + stream_bytes);
    *(uint16_t *)symbol = (uint16_t)strlen(name);
    memcpy(symbol + 2, name, strlen(name));
    uint8_t *stream = symbol + 4096;
    *(uint32_t *)stream = stream_bytes;
    for (uint64_t n = 0; n < count; n++) {
        class[n].next = n + 1 < count ? (uint64_t)&class[n + 1] : 0;
        class[n].name = (uint64_t)symbol;
        class[n].stream = (uint64_t)stream;
    }
    loader.classes = (uint64_t)class;
    loaders = (uint64_t)&loader;
}

static void lie_of_threads(uint64_t count) {
    uint64_t *thread = take(count * 8);
    uint8_t *counters = take(4096);
    for (uint64_t n = 0; n < count; n++) thread[n] = (uint64_t)counters;
    list.length = count;
    list.threads = (uint64_t)thread;
}

static void lie_of_flags(uint64_t count) {
    char *text = take(4096);
    memset(text, 'x', 1000);
    *(uint64_t *)(text + 2048) = (uint64_t)text;
    flag = take(count * 24);
    for (uint64_t n = 0; n < count; n++) {
        flag[n].name = (uint64_t)text;
        flag[n].value = (uint64_t)(text + 2048);
        flag[n].type = 8;
    }
    flags = (uint64_t)flag;
    flag_count = count;
}

__attribute__((constructor)) static void lie(void) {
    char kind[16] = "";
    unsigned long count = 0;
    const char *said = getenv("LIAR");
    if (said) sscanf(said, "%15[a-z]:%lu", kind, &count);
    thread_list = (uint64_t)&list;
    if (strcmp(kind, "classes") == 0) lie_of_classes(count, "java/nio/Bite", 0);
    if (strcmp(kind, "netty") == 0) lie_of_classes(count, "io/netty/util/internal/PlatformDependent", 65536);
    if (strcmp(kind, "threads") == 0) lie_of_threads(count);
    if (strcmp(kind, "flags") == 0) lie_of_flags(count);
}
