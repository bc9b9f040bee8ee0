/* Makes large or obstructive processes for bench/hostile.py, which builds this program next to a `libjvm.so`.
 *   hostile maps N PATH   maps N files, created if missing; `%ld` in PATH is each file's number
 *   hostile threads N     N threads sleep, and one reads the clock every 0.2 ms; for each line of input, prints the
 *                         longest gap since the previous line, in milliseconds */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile double gap_ms;

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void *sleeps(void *ignored) {
    for (;;) pause();
    return ignored;
}

static void *ticks(void *ignored) {
    double before = now_ms();
    for (;;) {
        usleep(200);
        double now = now_ms();
        if (now - before > gap_ms) gap_ms = now - before;
        before = now;
    }
    return ignored;
}

static void start(void *(*run)(void *)) {
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    if (pthread_create(&thread, &small, run, NULL)) { perror("pthread_create"); exit(1); }
}

int main(int count, char **words) {
    if (count < 3) return 2;
    long number = atol(words[2]);
    if (strcmp(words[1], "maps") == 0) {
        for (long n = 0; n < number; n++) {
            char path[4096];
            snprintf(path, sizeof path, words[3], n);
            int file = open(path, O_RDWR | O_CREAT, 0600);
            if (file < 0 || ftruncate(file, 4096)) { perror(path); return 1; }
            volatile char *at = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
            if (at == MAP_FAILED) { perror("mmap"); return 1; }
            (void)at[0];
            close(file);
        }
    } else {
        for (long n = 0; n < number; n++) start(sleeps);
        start(ticks);
    }
    char line[16];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        printf("%.1f\n", gap_ms);
        fflush(stdout);
        gap_ms = 0;
    }
    return 0;
}
