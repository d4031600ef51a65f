/* Matrix products with packed weights: C[M, N] = A[M, K] · W[N, K]ᵀ, inputs and sums in float.

   Weights lie in panels of NR outputs, [N / NR][K][NR], in float, bfloat16, int8 (one scale an output) or
   int4 (one scale an output and 32 inputs; two inputs share a byte). They are widened in registers where that
   costs little (int8, or few rows), else once into a strip that stays in the first-level cache. */
#ifndef PG_PRODUCT_H
#define PG_PRODUCT_H

#include "pool.h"
#include "vectors.h"

#define STRIP 256 /* inputs in a strip: 16 KiB of widened weights */
#define GROUP 32  /* inputs that share an int4 scale */

typedef struct {
    int64_t n, k;
    int32_t format, padding;
    const void *data;
    const float *scales; /* int8: [panels * NR]; int4: [panels][K / GROUP][NR] */
    const float *bias;   /* [n] or none */
} matrix;

INLINE int64_t panel_bytes(const matrix *w) {
    int64_t cells = w->k * NR;
    return w->format == F32 ? cells * 4 : w->format == BF16 ? cells * 2 : w->format == I8 ? cells : cells / 2;
}

INLINE v load(int format, const void *p, int64_t at) {
    if (format == F32) return *(const v *)((const float *)p + at);
    if (format == BF16) return from_bf16((const uint16_t *)p + at);
    return to_float(widen_i8((const int8_t *)p + at));
}

/* rows x NR of C from rows of A and `k` rows of W that lie `ldw` apart; rows and format are constants.

   Few rows leave few sums to work on at once: `ways` of them, each over its own share of the inputs, hide the
   latency of an addition. */
INLINE void tile(int rows, int format, const float *a, int64_t lda, const void *w, int64_t ldw, int64_t k,
                 const float *scales, float *c, int64_t ldc, int add) {
    const int ways = rows == 1 ? 4 : rows == 2 ? 2 : 1;
    v sums[MR * 2][4];
    for (int r = 0; r < rows * 2; r++)
        for (int way = 0; way < ways; way++) sums[r][way] = (v){0};
    int64_t i = 0;
    for (; i + ways <= k; i += ways)
#pragma GCC unroll 4
        for (int way = 0; way < ways; way++) {
            v w0 = load(format, w, (i + way) * ldw), w1 = load(format, w, (i + way) * ldw + LANES);
#pragma GCC unroll 6
            for (int r = 0; r < rows; r++) {
                v x = all(a[r * lda + i + way]);
                sums[r * 2][way] += x * w0;
                sums[r * 2 + 1][way] += x * w1;
            }
        }
    for (; i < k; i++) {
        v w0 = load(format, w, i * ldw), w1 = load(format, w, i * ldw + LANES);
        for (int r = 0; r < rows; r++) {
            v x = all(a[r * lda + i]);
            sums[r * 2][0] += x * w0;
            sums[r * 2 + 1][0] += x * w1;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int half = 0; half < 2; half++) {
            v total = sums[r * 2 + half][0];
            for (int way = 1; way < ways; way++) total += sums[r * 2 + half][way];
            if (scales) total *= *(const v *)(scales + half * LANES);
            v *out = (v *)(c + r * ldc + half * LANES);
            *out = add ? *out + total : total;
        }
}

INLINE void tiles(int format, int64_t rows, const float *a, int64_t lda, const void *w, int64_t ldw, int64_t k,
                  const float *scales, float *c, int64_t ldc, int add) {
    /* no tail of one or two rows, which would pay for the weights like six: 7 = 4 + 3, 8 = 4 + 4 */
    for (; rows == MR || rows >= MR + 3; rows -= MR, a += MR * lda, c += MR * ldc)
        tile(MR, format, a, lda, w, ldw, k, scales, c, ldc, add);
    if (rows > MR) {
        tile(4, format, a, lda, w, ldw, k, scales, c, ldc, add);
        rows -= 4, a += 4 * lda, c += 4 * ldc;
    }
    switch (rows) {
    case 1: tile(1, format, a, lda, w, ldw, k, scales, c, ldc, add); break;
    case 2: tile(2, format, a, lda, w, ldw, k, scales, c, ldc, add); break;
    case 3: tile(3, format, a, lda, w, ldw, k, scales, c, ldc, add); break;
    case 4: tile(4, format, a, lda, w, ldw, k, scales, c, ldc, add); break;
    case 5: tile(5, format, a, lda, w, ldw, k, scales, c, ldc, add); break;
    }
}

static void tiles_f32(int64_t rows, const float *a, int64_t lda, const void *w, int64_t ldw, int64_t k,
                      float *c, int64_t ldc, int add) {
    tiles(F32, rows, a, lda, w, ldw, k, NULL, c, ldc, add);
}

static void tiles_bf16(int64_t rows, const float *a, int64_t lda, const void *w, int64_t ldw, int64_t k,
                       float *c, int64_t ldc, int add) {
    tiles(BF16, rows, a, lda, w, ldw, k, NULL, c, ldc, add);
}

static void tiles_i8(int64_t rows, const float *a, int64_t lda, const void *w, int64_t k, const float *scales,
                     float *c, int64_t ldc, int add) {
    tiles(I8, rows, a, lda, w, NR, k, scales, c, ldc, add);
}

/* Inputs `from … from + count` of a panel of bfloat16 or int4 in float, [count][NR]. */
static void widen(const matrix *w, const char *panel, int64_t number, int64_t from, int64_t count, float *to) {
    if (w->format == I4) {
        const uint8_t *bytes = (const uint8_t *)panel + from / 2 * NR;
        for (int64_t i = 0; i < count; i += 2, bytes += NR) {
            const float *scale = w->scales + (number * (w->k / GROUP) + (from + i) / GROUP) * NR;
            for (int half = 0; half < 2; half++) {
                vi both = widen_u8(bytes + half * LANES);
                v s = *(const v *)(scale + half * LANES);
                *(v *)(to + i * NR + half * LANES) = to_float((both & 15) - 8) * s;
                *(v *)(to + (i + 1) * NR + half * LANES) = to_float((both >> 4) - 8) * s;
            }
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        *(v *)(to + i * NR) = load(BF16, panel, (from + i) * NR);
        *(v *)(to + i * NR + LANES) = load(BF16, panel, (from + i) * NR + LANES);
    }
}

/* One panel: NR columns of C, all rows. */
static void panel_product(const matrix *w, int64_t number, const float *a, int64_t rows, int64_t lda, float *c,
                          int64_t ldc, int add, float *strip) {
    const char *panel = (const char *)w->data + number * panel_bytes(w);
    if (w->format == F32) {
        tiles_f32(rows, a, lda, panel, NR, w->k, c, ldc, add);
    } else if (w->format == BF16 && rows <= 2 * MR) {
        tiles_bf16(rows, a, lda, panel, NR, w->k, c, ldc, add);
    } else if (w->format == I8) { /* widening int8 hides behind the products, however many */
        tiles_i8(rows, a, lda, panel, w->k, w->scales + number * NR, c, ldc, add);
    } else {
        for (int64_t from = 0; from < w->k; from += STRIP) {
            int64_t count = w->k - from < STRIP ? w->k - from : STRIP;
            widen(w, panel, number, from, count, strip);
            tiles_f32(rows, a + from, lda, strip, NR, count, c, ldc, add || from);
        }
    }
}

/* The same, for a panel that may reach over the last column, with the bias. */
static void panel_of(const matrix *w, int64_t number, const float *a, int64_t rows, int64_t lda, float *c,
                     int64_t ldc, int add, float *space) {
    int64_t columns = w->n - number * NR < NR ? w->n - number * NR : NR;
    float *strip = space, *edge = space + STRIP * NR;
    c += number * NR;
    if (columns == NR) {
        panel_product(w, number, a, rows, lda, c, ldc, add, strip);
    } else {
        for (int64_t r = 0; r < rows; r += MR) {
            int64_t few = rows - r < MR ? rows - r : MR;
            panel_product(w, number, a + r * lda, few, lda, edge, NR, 0, strip);
            for (int64_t i = 0; i < few; i++)
                for (int64_t j = 0; j < columns; j++)
                    c[(r + i) * ldc + j] = edge[i * NR + j] + (add ? c[(r + i) * ldc + j] : 0);
        }
    }
    if (w->bias)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < columns; j++) c[r * ldc + j] += w->bias[number * NR + j];
}

#define PANEL_SPACE ((STRIP * NR + MR * NR) * sizeof(float))

typedef struct {
    const matrix *w;
    const float *a;
    float *c;
    int64_t rows, lda, ldc, panels;
    int add, at_once;
} product;

static void product_piece(void *what, int piece, int worker) {
    product *p = what;
    float *space = (float *)space_of(worker, PANEL_SPACE);
    int64_t last = (int64_t)(piece + 1) * p->at_once;
    if (last > p->panels) last = p->panels;
    for (int64_t number = (int64_t)piece * p->at_once; number < last; number++)
        panel_of(p->w, number, p->a, p->rows, p->lda, p->c, p->ldc, p->add, space);
}

/* Pieces are small enough that no thread waits long for the last one, and no smaller. */
static int panels_at_once(int64_t panels) {
    int64_t most = panels / (pool.threads * 8);
    return most < 1 ? 1 : most > 64 ? 64 : (int)most;
}

/* C (+)= A · Wᵀ + bias, A [rows, lda], C [rows, ldc]. */
static void multiply(const matrix *w, const float *a, int64_t rows, int64_t lda, float *c, int64_t ldc, int add) {
    product p = {w, a, c, rows, lda, ldc, (w->n + NR - 1) / NR, add, 1};
    p.at_once = panels_at_once(p.panels);
    share(product_piece, &p, (int)((p.panels + p.at_once - 1) / p.at_once));
}

#endif
