/* A few threads that share out the pieces of one operation after another.

   Pieces are taken from a counter, so that a thread whose core is busy elsewhere holds up no more than the
   piece in its hand. Between the operations of a step threads spin for some microseconds; after it they sleep. */
#ifndef PG_POOL_H
#define PG_POOL_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define MOST_THREADS 256
#define SPINS 4000 /* some 30 microseconds, then the thread sleeps */
#define JOBS 8     /* power of two */

typedef void (*piece_fn)(void *what, int piece, int worker);

typedef struct {
    _Atomic uint32_t number; /* written first and last: a reader that sees it change has read nothing */
    int pieces;
    piece_fn fn;
    void *what;
} job;

static struct {
    int threads;
    job jobs[JOBS];
    _Atomic uint64_t ticket; /* number of the job << 32 | next piece */
    _Atomic int done;
    _Atomic int sleepers;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    char *space[MOST_THREADS]; /* scratch memory of each worker */
    size_t space_bytes[MOST_THREADS];
} pool = {.threads = 1, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static inline void pause_a_little(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Take and do pieces of the current job until none is left; the number of the job that was seen. */
static uint32_t work(int worker) {
    for (;;) {
        uint64_t ticket = atomic_fetch_add(&pool.ticket, 1);
        uint32_t number = (uint32_t)(ticket >> 32);
        int piece = (int)(uint32_t)ticket;
        job *slot = &pool.jobs[number % JOBS];
        if (atomic_load(&slot->number) != number) return number;
        int pieces = slot->pieces;
        piece_fn fn = slot->fn;
        void *what = slot->what;
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load(&slot->number) != number || piece >= pieces) return number;
        fn(what, piece, worker);
        atomic_fetch_add(&pool.done, 1);
    }
}

static void *worker_main(void *argument) {
    int worker = (int)(intptr_t)argument;
    uint32_t seen = 0;
    for (;;) {
        int spins = 0;
        while ((uint32_t)(atomic_load(&pool.ticket) >> 32) == seen) {
            if (++spins < SPINS) {
                pause_a_little();
                continue;
            }
            pthread_mutex_lock(&pool.lock);
            atomic_fetch_add(&pool.sleepers, 1);
            while ((uint32_t)(atomic_load(&pool.ticket) >> 32) == seen) pthread_cond_wait(&pool.wake, &pool.lock);
            atomic_fetch_sub(&pool.sleepers, 1);
            pthread_mutex_unlock(&pool.lock);
        }
        seen = work(worker);
    }
    return NULL;
}

/* Do fn(what, 0 … pieces - 1), in any order, on all threads; returns when all are done. */
static void share(piece_fn fn, void *what, int pieces) {
    if (pool.threads == 1 || pieces == 1) {
        for (int piece = 0; piece < pieces; piece++) fn(what, piece, 0);
        return;
    }
    uint32_t number = (uint32_t)(atomic_load(&pool.ticket) >> 32) + 1;
    job *slot = &pool.jobs[number % JOBS];
    atomic_store(&slot->number, number - JOBS); /* not this one yet */
    slot->pieces = pieces;
    slot->fn = fn;
    slot->what = what;
    atomic_thread_fence(memory_order_release);
    atomic_store(&slot->number, number);
    atomic_store(&pool.done, 0);
    atomic_store(&pool.ticket, (uint64_t)number << 32);
    if (atomic_load(&pool.sleepers)) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_broadcast(&pool.wake);
        pthread_mutex_unlock(&pool.lock);
    }
    work(0);
    for (int spins = 0; atomic_load(&pool.done) < pieces; spins++) {
        if (spins < SPINS) pause_a_little();
        else sched_yield();
    }
}

/* Scratch memory of a worker, at least so large; what was in it may be gone. */
static char *space_of(int worker, size_t bytes) {
    if (pool.space_bytes[worker] < bytes) {
        free(pool.space[worker]);
        void *got = NULL;
        if (posix_memalign(&got, 64, bytes)) abort();
        pool.space[worker] = got;
        pool.space_bytes[worker] = bytes;
    }
    return pool.space[worker];
}

static int start_threads(int threads) {
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    for (; pool.threads < threads; pool.threads++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker_main, (void *)(intptr_t)pool.threads)) break;
        pthread_detach(thread);
    }
    return pool.threads;
}

#endif
