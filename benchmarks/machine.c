/* What this machine's cores can do at most: `machine THREADS` prints one JSON object.
 *
 * fma_flops    float32 operations a second, multiplications and additions fused, all in registers
 * int8_ops     8-bit multiplications and additions a second (only where there is AVX2)
 * read_bytes   bytes a second that all threads together read from memory far larger than the caches
 * Each is the best of many short tries, and arithmetic is timed by the processor's clock, so that other work on
 * the machine spoils it least. Memory is shared, so reading is timed by the wall.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

enum { TRIES = 40, ROUNDS = 100000, CHAINS = 12 };
static const size_t READ_BYTES = (size_t)64 << 20; /* of each thread */

typedef float vector __attribute__((vector_size(VECTOR_BYTES)));
typedef uint64_t words __attribute__((vector_size(VECTOR_BYTES)));

static volatile float float_sink;
static volatile uint64_t word_sink;

static double now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec + at.tv_nsec * 1e-9;
}

/* Twelve chains hide the latency of two units. They are named one by one, so that they stay in registers. */
#define EACH_CHAIN(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

static void *fma_work(void *unused) {
    (void)unused;
    const vector zero = {0}, factor = zero + 0.999f, summand = zero + 0.001f;
#define BEGIN(n) vector a##n = zero + n;
#define STEP(n)                      \
    a##n = a##n * factor + summand; \
    __asm__ volatile("" : "+x"(a##n));
#define END(n) float_sink = a##n[0];
    EACH_CHAIN(BEGIN)
    for (int round = 0; round < ROUNDS; round++) { EACH_CHAIN(STEP) }
    EACH_CHAIN(END)
#undef BEGIN
#undef STEP
#undef END
    return NULL;
}

#ifdef __AVX2__
static void *int8_work(void *unused) {
    (void)unused;
    const __m256i left = _mm256_set1_epi8(1), right = left, ones = _mm256_set1_epi16(1);
#define BEGIN(n) __m256i a##n = _mm256_setzero_si256();
#define STEP(n)                                                       \
    {                                                                 \
        __m256i pairs = _mm256_maddubs_epi16(left, right);            \
        __asm__ volatile("" : "+x"(pairs));                           \
        a##n = _mm256_add_epi32(a##n, _mm256_madd_epi16(pairs, ones)); \
        __asm__ volatile("" : "+x"(a##n));                            \
    }
#define END(n) word_sink = (uint64_t)_mm256_extract_epi64(a##n, 0);
    EACH_CHAIN(BEGIN)
    for (int round = 0; round < ROUNDS; round++) { EACH_CHAIN(STEP) }
    EACH_CHAIN(END)
#undef BEGIN
#undef STEP
#undef END
    return NULL;
}
#endif

static void *read_work(void *memory) {
    const words *at = memory;
    words sums[4] = {0};
    for (size_t n = 0; n + 4 <= READ_BYTES / sizeof(words); n += 4)
        for (int lane = 0; lane < 4; lane++) sums[lane] += at[n + lane];
    for (int lane = 0; lane < 4; lane++) word_sink = sums[lane][0];
    return NULL;
}

struct run {
    void *(*work)(void *);
    void *argument;
    double cpu_s;
};

static void *timed(void *of) {
    struct run *run = of;
    double start = now(CLOCK_THREAD_CPUTIME_ID);
    run->work(run->argument);
    run->cpu_s = now(CLOCK_THREAD_CPUTIME_ID) - start;
    return NULL;
}

/* Seconds of the fastest try of `work` on all threads at once: of the processor, or by the wall. */
static double fastest(void *(*work)(void *), int threads, void **arguments, int by_cpu) {
    double best = 1e30;
    pthread_t *ids = malloc(threads * sizeof *ids);
    struct run *runs = malloc(threads * sizeof *runs);
    for (int attempt = 0; attempt < TRIES; attempt++) {
        double start = now(CLOCK_MONOTONIC), took = 0;
        for (int n = 0; n < threads; n++) {
            runs[n] = (struct run){work, arguments ? arguments[n] : NULL, 0};
            pthread_create(&ids[n], NULL, timed, &runs[n]);
        }
        for (int n = 0; n < threads; n++) {
            pthread_join(ids[n], NULL);
            took = runs[n].cpu_s > took ? runs[n].cpu_s : took;
        }
        if (!by_cpu) took = now(CLOCK_MONOTONIC) - start;
        if (took < best) best = took;
    }
    free(runs);
    free(ids);
    return best;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1;
    if (threads < 1) return 2;
    void **memory = malloc(threads * sizeof *memory);
    for (int n = 0; n < threads; n++) {
        if (posix_memalign(&memory[n], 4096, READ_BYTES)) return 1;
        memset(memory[n], n + 1, READ_BYTES);
    }
    double lanes = sizeof(vector) / sizeof(float), rounds = (double)ROUNDS * CHAINS * threads;
    printf("{\"fma_flops\": %.4g", rounds * lanes * 2 / fastest(fma_work, threads, NULL, 1));
#ifdef __AVX2__
    printf(", \"int8_ops\": %.4g", rounds * 32 * 2 / fastest(int8_work, threads, NULL, 1));
#endif
    printf(", \"read_bytes\": %.4g}\n", (double)READ_BYTES * threads / fastest(read_work, threads, memory, 0));
    return 0;
}
