/* What a decoder model is made of, as `recipe.py` fills it in; the order of the fields is a contract with it. */
#ifndef PG_MODEL_H
#define PG_MODEL_H

#include "product.h"

enum { SILU = 0, GELU_TANH = 1 };

typedef struct {
    matrix qkv, o, gate_up, down;                       /* gate_up: a panel of gate, a panel of up, and so on */
    const float *attn_in, *attn_out, *mlp_in, *mlp_out; /* norms before and after; none where the model has none */
    const float *q_norm, *k_norm;
    const float *cosines, *sines;                       /* [positions, rotary / 2]; none: positions do not turn */
    void *keys, *values;                                /* [kv_heads, slots, head_dim] */
    int32_t window;                                     /* 0: everything before is seen */
    int32_t norm_is_wide;                               /* q_norm and k_norm span all heads, not each */
} layer;

typedef struct {
    int32_t layers, hidden, heads, kv_heads, head_dim, rotary, inner, vocabulary;
    int32_t activation, kv_format, embedding_format, block_tokens;
    float eps, scaling, attention_cap, logit_cap, embedding_scale;
    int32_t padding;
    int64_t slots;
    const void *embedding; /* [vocabulary, hidden] */
    const float *final_norm;
    matrix head;
    const layer *layer;
} model;

/* A step: packed tokens of several sequences; a span is one sequence's run of them. */
typedef struct {
    int32_t tokens, spans, kept, padding;
    const int32_t *ids, *positions; /* [tokens] */
    const int64_t *slots;           /* [tokens] where keys and values go */
    const int32_t *start, *stop;    /* [spans] packed tokens of a span */
    const int32_t *context;         /* [spans] tokens of the sequence up to the end of the span */
    const int32_t *first_block;     /* [spans] where its blocks begin in: */
    const int32_t *blocks;
    const int32_t *rows; /* [kept] packed tokens whose logits are wanted */
    float *logits;       /* [kept, vocabulary] */
} step;

#endif
