/* Causal attention over the paged cache, with a softmax that is kept up to date tile by tile.

   A piece of work is some neighbouring tokens of one sequence, all query heads of one key head: its rows are
   (token, head of the group). Few rows take each key's product by itself; many take the keys of a tile
   transposed once, as a panel. */
#ifndef PG_ATTENTION_H
#define PG_ATTENTION_H

#include "model.h"

#define TILE_KEYS 64 /* at least, in whole blocks */
#define MOST_ROWS 96
#define FEW_ROWS 8

typedef struct {
    int32_t span, head, from, to; /* tokens of the span, counted from its start */
} attention_piece;

typedef struct {
    const model *m;
    const layer *l;
    const step *s;
    const float *qkv;
    float *out;
    int64_t qkv_width;
    attention_piece *pieces;
} attention_work;

INLINE const void *kv_row(const model *m, const void *base, int head, int64_t slot) {
    int64_t at = ((int64_t)head * m->slots + slot) * m->head_dim;
    return m->kv_format == BF16 ? (const void *)((const uint16_t *)base + at) : (const void *)((const float *)base + at);
}

/* Products of each query with `count` keys that lie one after another; `space` holds LANES of them in float. */
INLINE void few_scores(int format, const float *q, int rows, int dim, const void *keys, int count, float *scores,
                       int64_t ld, float *space) {
    int key = 0;
    for (; key + LANES <= count; key += LANES) {
        const float *wide = (const float *)keys + (int64_t)key * dim;
        if (format != F32) {
            for (int i = 0; i < LANES * dim; i += LANES) *(v *)(space + i) = load(format, keys, (int64_t)key * dim + i);
            wide = space;
        }
        for (int r = 0; r < rows; r++) {
            v sums[LANES];
            for (int i = 0; i < LANES; i++) sums[i] = (v){0};
            for (int d = 0; d < dim; d += LANES) {
                v x = *(const v *)(q + r * dim + d);
#pragma GCC unroll 16
                for (int i = 0; i < LANES; i++) sums[i] += x * *(const v *)(wide + i * dim + d);
            }
            *(v *)(scores + r * ld + key) = sums_of(sums);
        }
    }
    for (; key < count; key++)
        for (int r = 0; r < rows; r++) {
            v total = {0};
            for (int d = 0; d < dim; d += LANES)
                total += *(const v *)(q + r * dim + d) * load(format, keys, (int64_t)key * dim + d);
            scores[r * ld + key] = sum(total);
        }
}

/* `count` keys as panels [count / NR][dim][NR]; what is missing of the last panel is zero. */
INLINE void transpose(int format, const void *keys, int count, int dim, float *panels, int first) {
    for (int key = 0; key < count; key++) {
        int place = first + key;
        float *to = panels + (int64_t)(place / NR) * dim * NR + place % NR;
        for (int d = 0; d < dim; d += LANES) {
            float lanes[LANES];
            *(v *)lanes = load(format, keys, (int64_t)key * dim + d);
            for (int i = 0; i < LANES; i++) to[(int64_t)(d + i) * NR] = lanes[i];
        }
    }
}

typedef struct {
    float *q, *scores, *panels, *out, *most, *total;
} attention_space;

INLINE attention_space attention_space_of(const model *m, int worker, int tile_keys) {
    int64_t dim = (m->head_dim + NR - 1) / NR * NR, keys = (tile_keys + NR - 1) / NR * NR;
    int64_t q = MOST_ROWS * dim, scores = MOST_ROWS * keys, panels = keys * dim;
    float *at = (float *)space_of(worker, sizeof(float) * (2 * q + scores + panels + 2 * MOST_ROWS));
    return (attention_space){at, at + q, at + q + scores, at + q + scores + panels, at + 2 * q + scores + panels,
                             at + 2 * q + scores + panels + MOST_ROWS};
}

/* Scores of one row become weights; what was summed before is scaled to the new largest score. */
INLINE void fold(float *scores, int count, float *most, float *total, float *out, int dim) {
    v m = all(*most);
    int i = 0;
    for (; i + LANES <= count; i += LANES) m = vmax(m, *(v *)(scores + i));
    float top = largest(m);
    for (; i < count; i++) top = scores[i] > top ? scores[i] : top;
    if (top > *most) {
        float lanes[LANES];
        *(v *)lanes = vexp(all(*most - top));
        for (int d = 0; d < dim; d += LANES) *(v *)(out + d) *= lanes[0];
        *total *= lanes[0];
        *most = top;
    }
    v added = {0};
    for (i = 0; i + LANES <= count; i += LANES) {
        v weight = vexp(*(v *)(scores + i) - top);
        *(v *)(scores + i) = weight;
        added += weight;
    }
    float rest = 0;
    for (; i < count; i++) {
        float lanes[LANES];
        *(v *)lanes = vexp(all(scores[i] - top));
        rest += scores[i] = lanes[0];
    }
    *total += sum(added) + rest;
}

static void attention_piece_do(void *what, int number, int worker) {
    attention_work *w = what;
    const model *m = w->m;
    const layer *l = w->l;
    const step *s = w->s;
    attention_piece p = w->pieces[number];
    int dim = m->head_dim, group = m->heads / m->kv_heads, block = m->block_tokens;
    int rows = (p.to - p.from) * group, first = s->start[p.span];
    int before = s->context[p.span] - (s->stop[p.span] - first); /* computed before this step */
    int tile_keys = (TILE_KEYS + block - 1) / block * block;
    int64_t wide = (dim + NR - 1) / NR * NR, ld = (tile_keys + NR - 1) / NR * NR;
    attention_space space = attention_space_of(m, worker, tile_keys);
    const int32_t *blocks = s->blocks + s->first_block[p.span];

    for (int r = 0; r < rows; r++) {
        int token = first + p.from + r / group, head = p.head * group + r % group;
        const float *q = w->qkv + token * w->qkv_width + (int64_t)head * dim;
        for (int d = 0; d < dim; d += LANES) *(v *)(space.q + r * dim + d) = *(const v *)(q + d) * m->scaling;
        memset(space.out + r * wide, 0, sizeof(float) * wide);
        space.most[r] = -1e30f;
        space.total[r] = 0;
    }
    int end = before + p.to, begin = 0;
    if (l->window && before + p.from - l->window + 1 > 0) begin = (before + p.from - l->window + 1) / block * block;
    for (int tile_at = begin; tile_at < end; tile_at += tile_keys) {
        int count = end - tile_at < tile_keys ? end - tile_at : tile_keys;
        for (int at = 0; at < count; at += block) {
            int some = count - at < block ? count - at : block;
            const void *keys = kv_row(m, l->keys, p.head, (int64_t)blocks[(tile_at + at) / block] * block);
            if (rows > FEW_ROWS) {
                if (m->kv_format == BF16) transpose(BF16, keys, some, dim, space.panels, at);
                else transpose(F32, keys, some, dim, space.panels, at);
            } else if (m->kv_format == BF16) {
                few_scores(BF16, space.q, rows, dim, keys, some, space.scores + at, ld, space.panels);
            } else {
                few_scores(F32, space.q, rows, dim, keys, some, space.scores + at, ld, space.panels);
            }
        }
        if (rows > FEW_ROWS) /* columns beyond `count` hold what was there before and are never read */
            for (int at = 0; at < count; at += NR)
                tiles_f32(rows, space.q, dim, space.panels + (int64_t)at * dim, NR, dim, space.scores + at, ld, 0);
        for (int r = 0; r < rows; r++) {
            float *scores = space.scores + r * ld;
            int own = before + p.from + r / group; /* the row's position */
            int seen = own + 1 - tile_at < count ? own + 1 - tile_at : count;
            int hidden = l->window ? own - l->window + 1 - tile_at : 0;
            if (hidden > seen) hidden = seen;
            if (m->attention_cap) {
                int i = 0;
                for (; i < seen; i++) scores[i] = tanhf(scores[i] / m->attention_cap) * m->attention_cap;
            }
            if (seen <= 0 || hidden >= seen) {
                memset(scores, 0, sizeof(float) * count);
                continue;
            }
            for (int i = 0; i < hidden; i++) scores[i] = -1e30f;
            fold(scores, seen, space.most + r, space.total + r, space.out + r * wide, dim);
            for (int i = 0; i < hidden; i++) scores[i] = 0;
            for (int i = seen; i < count; i++) scores[i] = 0;
        }
        for (int at = 0; at < count; at += block) {
            int some = count - at < block ? count - at : block;
            const void *values = kv_row(m, l->values, p.head, (int64_t)blocks[(tile_at + at) / block] * block);
            for (int d = 0; d < dim; d += NR) {
                if (m->kv_format == BF16)
                    tiles_bf16(rows, space.scores + at, ld, (const uint16_t *)values + d, dim, some,
                               space.out + d, wide, 1);
                else
                    tiles_f32(rows, space.scores + at, ld, (const float *)values + d, dim, some, space.out + d,
                              wide, 1);
            }
        }
    }
    for (int r = 0; r < rows; r++) {
        int token = first + p.from + r / group, head = p.head * group + r % group;
        float *out = w->out + ((int64_t)token * m->heads + head) * dim, share_of = 1 / space.total[r];
        for (int d = 0; d < dim; d += LANES) *(v *)(out + d) = *(v *)(space.out + r * wide + d) * share_of;
    }
}

/* The pieces of a step, the longest first; room for them must be there. Their number. */
static int attention_plan(const model *m, const step *s, attention_piece *pieces) {
    int group = m->heads / m->kv_heads, at_once = MOST_ROWS / group, number = 0;
    if (at_once > 32) at_once = 32;
    if (at_once < 1) at_once = 1;
    for (int span = s->spans - 1; span >= 0; span--) {
        int tokens = s->stop[span] - s->start[span];
        for (int from = (tokens - 1) / at_once * at_once; from >= 0; from -= at_once)
            for (int head = 0; head < m->kv_heads; head++) {
                int to = from + at_once < tokens ? from + at_once : tokens;
                pieces[number++] = (attention_piece){span, head, from, to};
            }
    }
    return number;
}

#endif
