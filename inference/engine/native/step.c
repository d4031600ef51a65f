/* One step of a decoder model: packed tokens in, logits out, keys and values into the paged cache.

   The same arithmetic as transformers' own code of these models, in float with weights as they are stored;
   whether it is the same is checked at every load. */
#include "attention.h"

/* Intermediate results, kept between steps; one step at a time. */
static struct {
    float *x, *h, *qkv, *mixed, *gates, *inner;
    int64_t x_size, h_size, qkv_size, mixed_size, gates_size, inner_size;
    attention_piece *pieces;
    int64_t pieces_size;
} kept;

static void *room(void *had, int64_t *size, int64_t wanted, int64_t cell) {
    if (*size >= wanted) return had;
    free(had);
    void *got = NULL;
    if (posix_memalign(&got, 64, (size_t)(wanted * cell))) abort();
    *size = wanted;
    return got;
}

#define ROOM(name, wanted) kept.name = room(kept.name, &kept.name##_size, (wanted), sizeof(*kept.name))

/* y = x / rms(x) * weight */
static void norm_row(const float *x, const float *weight, int n, float eps, float *y) {
    v squares = {0};
    float rest = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES) squares += *(const v *)(x + i) * *(const v *)(x + i);
    for (; i < n; i++) rest += x[i] * x[i];
    float scale = 1 / sqrtf((sum(squares) + rest) / n + eps);
    for (i = 0; i + LANES <= n; i += LANES) *(v *)(y + i) = *(const v *)(x + i) * scale * *(const v *)(weight + i);
    for (; i < n; i++) y[i] = x[i] * scale * weight[i];
}

typedef struct {
    const model *m;
    const layer *l;
    const step *s;
    const float *weight, *from;
    float *to;
    int adds;
} rows_work;

#define ROWS 8 /* tokens in a piece of row-wise work */

static void norm_piece(void *what, int piece, int worker) {
    rows_work *w = what;
    int n = w->m->hidden, last = (piece + 1) * ROWS < w->s->tokens ? (piece + 1) * ROWS : w->s->tokens;
    for (int row = piece * ROWS; row < last; row++) {
        const float *x = w->from + (int64_t)row * n;
        float *y = w->to + (int64_t)row * n;
        if (!w->adds) {
            norm_row(x, w->weight, n, w->m->eps, y);
            continue;
        }
        float *normed = (float *)space_of(worker, sizeof(float) * n);
        norm_row(x, w->weight, n, w->m->eps, normed);
        for (int i = 0; i < n; i++) y[i] += normed[i];
    }
}

/* to = norm(from), or to += norm(from). */
static void norm(const model *m, const step *s, const float *weight, const float *from, float *to, int adds) {
    rows_work w = {.m = m, .s = s, .weight = weight, .from = from, .to = to, .adds = adds};
    share(norm_piece, &w, (s->tokens + ROWS - 1) / ROWS);
}

static void embed_piece(void *what, int piece, int worker) {
    (void)worker;
    rows_work *w = what;
    const model *m = w->m;
    int last = (piece + 1) * ROWS < w->s->tokens ? (piece + 1) * ROWS : w->s->tokens;
    for (int row = piece * ROWS; row < last; row++) {
        int64_t from = (int64_t)w->s->ids[row] * m->hidden;
        float *x = w->to + (int64_t)row * m->hidden;
        for (int i = 0; i < m->hidden; i++) {
            float value;
            if (m->embedding_format == BF16) {
                uint32_t bits = (uint32_t)((const uint16_t *)m->embedding)[from + i] << 16;
                memcpy(&value, &bits, 4);
            } else {
                value = ((const float *)m->embedding)[from + i];
            }
            x[i] = value * m->embedding_scale;
        }
    }
}

/* Turn the first `rotary` dimensions of one head by its position: pairs are (i, i + rotary / 2). */
INLINE void rotate(float *x, const float *cosines, const float *sines, int half) {
    for (int i = 0; i < half; i++) {
        float a = x[i], b = x[i + half];
        x[i] = a * cosines[i] - b * sines[i];
        x[i + half] = b * cosines[i] + a * sines[i];
    }
}

static void put(const model *m, void *pool_of, int head, int64_t slot, const float *x) {
    if (m->kv_format == BF16) {
        uint16_t *to = (uint16_t *)kv_row(m, pool_of, head, slot);
        for (int i = 0; i < m->head_dim; i++) to[i] = to_bf16(x[i]);
    } else {
        memcpy((float *)kv_row(m, pool_of, head, slot), x, sizeof(float) * m->head_dim);
    }
}

/* Norms and positions of queries and keys, then keys and values into the cache. */
static void positions_piece(void *what, int piece, int worker) {
    (void)worker;
    rows_work *w = what;
    const model *m = w->m;
    const layer *l = w->l;
    int dim = m->head_dim, both = m->heads + m->kv_heads, half = m->rotary / 2;
    int last = (piece + 1) * ROWS < w->s->tokens ? (piece + 1) * ROWS : w->s->tokens;
    for (int row = piece * ROWS; row < last; row++) {
        float *qkv = w->to + (int64_t)row * (m->heads + 2 * m->kv_heads) * dim;
        float *keys = qkv + (int64_t)m->heads * dim, *values = keys + (int64_t)m->kv_heads * dim;
        if (l->q_norm && l->norm_is_wide) {
            norm_row(qkv, l->q_norm, m->heads * dim, m->eps, qkv);
            norm_row(keys, l->k_norm, m->kv_heads * dim, m->eps, keys);
        } else if (l->q_norm) {
            for (int head = 0; head < both; head++)
                norm_row(qkv + head * dim, head < m->heads ? l->q_norm : l->k_norm, dim, m->eps, qkv + head * dim);
        }
        if (l->cosines) {
            int64_t at = (int64_t)w->s->positions[row] * half;
            for (int head = 0; head < both; head++) rotate(qkv + head * dim, l->cosines + at, l->sines + at, half);
        }
        for (int head = 0; head < m->kv_heads; head++) {
            put(m, l->keys, head, w->s->slots[row], keys + (int64_t)head * dim);
            put(m, l->values, head, w->s->slots[row], values + (int64_t)head * dim);
        }
    }
}

typedef struct {
    const matrix *w;
    const float *a;
    float *gates, *inner;
    int64_t rows, width, hidden, pairs;
    int activation, at_once;
} gated;

/* Pairs of panels: act(gate) * up, while both are in the cache. */
static void gated_piece(void *what, int piece, int worker) {
    gated *g = what;
    float *space = (float *)space_of(worker, PANEL_SPACE);
    int64_t last = (int64_t)(piece + 1) * g->at_once;
    if (last > g->pairs) last = g->pairs;
    for (int64_t pair = (int64_t)piece * g->at_once; pair < last; pair++) {
        panel_of(g->w, pair * 2, g->a, g->rows, g->hidden, g->gates, g->width * 2, 0, space);
        panel_of(g->w, pair * 2 + 1, g->a, g->rows, g->hidden, g->gates, g->width * 2, 0, space);
        for (int64_t row = 0; row < g->rows; row++) {
            const float *both = g->gates + row * g->width * 2 + pair * 2 * NR;
            float *to = g->inner + row * g->width + pair * NR;
            for (int i = 0; i < NR; i += LANES) {
                v gate = *(const v *)(both + i), up = *(const v *)(both + NR + i);
                *(v *)(to + i) = (g->activation == SILU ? vsilu(gate) : vgelu(gate)) * up;
            }
        }
    }
}

static void feed_forward(const model *m, const layer *l, int64_t rows, float *to, int add) {
    gated g = {&l->gate_up, kept.h, kept.gates, kept.inner, rows, m->inner, m->hidden, m->inner / NR, m->activation, 1};
    g.at_once = panels_at_once(g.pairs);
    share(gated_piece, &g, (int)((g.pairs + g.at_once - 1) / g.at_once));
    multiply(&l->down, kept.inner, rows, m->inner, to, m->hidden, add);
}

static void attend(const model *m, const layer *l, const step *s, int pieces) {
    int64_t width = (int64_t)(m->heads + 2 * m->kv_heads) * m->head_dim;
    multiply(&l->qkv, kept.h, s->tokens, m->hidden, kept.qkv, width, 0);
    rows_work positions = {.m = m, .l = l, .s = s, .to = kept.qkv};
    share(positions_piece, &positions, (s->tokens + ROWS - 1) / ROWS);
    attention_work work = {m, l, s, kept.qkv, kept.mixed, width, kept.pieces};
    share(attention_piece_do, &work, pieces);
}

/* One layer; where a norm follows a part of it, that part's result waits in h before it is added to x. */
static void layer_of(const model *m, const layer *l, const step *s, int pieces) {
    int64_t rows = s->tokens;
    if (l->attn_in) norm(m, s, l->attn_in, kept.x, kept.h, 0);
    else memcpy(kept.h, kept.x, sizeof(float) * rows * m->hidden);
    attend(m, l, s, pieces);
    float *to = l->attn_out ? kept.h : kept.x;
    multiply(&l->o, kept.mixed, rows, (int64_t)m->heads * m->head_dim, to, m->hidden, !l->attn_out);
    if (l->attn_out) norm(m, s, l->attn_out, kept.h, kept.x, 1);

    if (l->mlp_in) norm(m, s, l->mlp_in, kept.x, kept.h, 0);
    else memcpy(kept.h, kept.x, sizeof(float) * rows * m->hidden);
    if (l->mlp_out) {
        feed_forward(m, l, rows, kept.h, 0);
        norm(m, s, l->mlp_out, kept.h, kept.x, 1);
    } else {
        feed_forward(m, l, rows, kept.x, 1);
    }
}

static void logits_of(const model *m, const step *s) {
    for (int i = 0; i < s->kept; i++) { /* only the rows that are wanted */
        const float *x = kept.x + (int64_t)s->rows[i] * m->hidden;
        norm_row(x, m->final_norm, m->hidden, m->eps, kept.h + (int64_t)i * m->hidden);
    }
    multiply(&m->head, kept.h, s->kept, m->hidden, s->logits, m->vocabulary, 0);
    if (m->logit_cap)
        for (int64_t i = 0; i < (int64_t)s->kept * m->vocabulary; i++)
            s->logits[i] = tanhf(s->logits[i] / m->logit_cap) * m->logit_cap;
}

/* Threads and intermediate results are the process's: a second caller waits. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

void pg_step(const model *m, const step *s) {
    pthread_mutex_lock(&one_at_a_time);
    int64_t tokens = s->tokens, heads = (int64_t)m->heads * m->head_dim, kv = (int64_t)m->kv_heads * m->head_dim;
    ROOM(x, tokens * m->hidden);
    ROOM(h, tokens * m->hidden);
    ROOM(qkv, tokens * (heads + 2 * kv));
    ROOM(mixed, tokens * heads);
    ROOM(gates, tokens * m->inner * 2);
    ROOM(inner, tokens * m->inner);
    ROOM(pieces, (tokens + s->spans) * m->kv_heads);
    int pieces = attention_plan(m, s, kept.pieces);
    rows_work ids = {.m = m, .s = s, .to = kept.x};
    share(embed_piece, &ids, (s->tokens + ROWS - 1) / ROWS);
    for (int number = 0; number < m->layers; number++) layer_of(m, m->layer + number, s, pieces);
    if (s->kept) logits_of(m, s);
    pthread_mutex_unlock(&one_at_a_time);
}

/* Y [rows, n] = X [rows, k] · Wᵀ + bias: one linear layer, for models whose step is not described here. */
void pg_linear(const matrix *w, const float *x, int64_t rows, float *y) {
    pthread_mutex_lock(&one_at_a_time);
    multiply(w, x, rows, w->k, y, w->n, 0);
    pthread_mutex_unlock(&one_at_a_time);
}

int pg_threads(int threads) { return start_threads(threads); }

int pg_panel(void) { return NR; }

/* Sizes of the structures that are shared with Python. */
void pg_sizes(int64_t *sizes) {
    sizes[0] = sizeof(matrix), sizes[1] = sizeof(layer), sizes[2] = sizeof(model), sizes[3] = sizeof(step);
}

int64_t pg_buffer_bytes(void) {
    int64_t cells = kept.x_size + kept.h_size + kept.qkv_size + kept.mixed_size + kept.gates_size + kept.inner_size;
    int64_t bytes = cells * (int64_t)sizeof(float) + kept.pieces_size * (int64_t)sizeof(attention_piece);
    for (int worker = 0; worker < pool.threads; worker++) bytes += (int64_t)pool.space_bytes[worker];
    return bytes;
}
