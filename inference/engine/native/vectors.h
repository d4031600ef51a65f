/* Vectors of the processor's width, through the compiler's own vector types: AVX2, AVX-512 or NEON. */
#ifndef PG_VECTORS_H
#define PG_VECTORS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
#define NR (2 * LANES) /* outputs in a panel: two vectors */
#define MR 6           /* rows in a tile: 6 x 2 accumulators, 2 weights and 1 input fit 16 registers */

#define INLINE static inline __attribute__((always_inline))
#define VECTOR(type, bytes) __attribute__((vector_size(bytes), aligned(sizeof(type))))

typedef float v VECTOR(float, LANES * 4);
typedef int32_t vi VECTOR(int32_t, LANES * 4);
typedef uint32_t vu VECTOR(uint32_t, LANES * 4);
typedef uint16_t vh VECTOR(uint16_t, LANES * 2);
typedef int8_t vb VECTOR(int8_t, LANES);
typedef uint8_t vc VECTOR(uint8_t, LANES);

enum { F32 = 0, BF16 = 1, I8 = 2, I4 = 3 };

/* Written out: `(v){0} + x` would really add, since 0 + -0 is not -0. */
#if LANES == 16
INLINE v all(float x) { return (v){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
#elif LANES == 8
INLINE v all(float x) { return (v){x, x, x, x, x, x, x, x}; }
#else
INLINE v all(float x) { return (v){x, x, x, x}; }
#endif
INLINE v pick(vi mask, v yes, v no) { return (v)((mask & (vi)yes) | (~mask & (vi)no)); }
INLINE v vmax(v a, v b) { return pick(a > b, a, b); }
INLINE v vmin(v a, v b) { return pick(a < b, a, b); }

/* Narrow numbers widened; for AVX2 in its own instructions, of which compilers make something slower. */
#if LANES == 8 && defined(__AVX2__)
#include <immintrin.h>
INLINE vu widen_u16(const void *p) { return (vu)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)); }
INLINE vi widen_i8(const void *p) { return (vi)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
INLINE vi widen_u8(const void *p) { return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
INLINE v to_float(vi x) { return (v)_mm256_cvtepi32_ps((__m256i)x); }
#else
INLINE vu widen_u16(const void *p) { return __builtin_convertvector(*(const vh *)p, vu); }
INLINE vi widen_i8(const void *p) { return __builtin_convertvector(*(const vb *)p, vi); }
INLINE vi widen_u8(const void *p) { return __builtin_convertvector(*(const vc *)p, vi); }
INLINE v to_float(vi x) { return __builtin_convertvector(x, v); }
#endif

INLINE v from_bf16(const uint16_t *p) { return (v)(widen_u16(p) << 16); }

INLINE uint16_t to_bf16(float x) { /* to the nearest, ties to even; NaN stays NaN */
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 64);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

INLINE float sum(v x) {
    float total[LANES], all_lanes = 0;
    *(v *)total = x;
    for (int width = LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++) total[i] += total[i + width];
    all_lanes = total[0];
    return all_lanes;
}

/* The sums of LANES vectors, as one vector. */
INLINE v sums_of(const v *x) {
#if LANES == 8 && defined(__AVX2__)
    __m256 a = _mm256_hadd_ps(_mm256_hadd_ps((__m256)x[0], (__m256)x[1]), _mm256_hadd_ps((__m256)x[2], (__m256)x[3]));
    __m256 b = _mm256_hadd_ps(_mm256_hadd_ps((__m256)x[4], (__m256)x[5]), _mm256_hadd_ps((__m256)x[6], (__m256)x[7]));
    return (v)(_mm256_permute2f128_ps(a, b, 0x20) + _mm256_permute2f128_ps(a, b, 0x31));
#else
    v all_sums;
    for (int i = 0; i < LANES; i++) all_sums[i] = sum(x[i]);
    return all_sums;
#endif
}

INLINE float largest(v x) {
    float lanes[LANES];
    *(v *)lanes = x;
    float most = lanes[0];
    for (int i = 1; i < LANES; i++) most = lanes[i] > most ? lanes[i] : most;
    return most;
}

/* e^x by range reduction and a polynomial (coefficients of Cephes' expf); error below 2 ulp, no infinities. */
INLINE v vexp(v x) {
    x = vmin(vmax(x, all(-87.0f)), all(88.0f));
    const v magic = all(12582912.0f);
    v n = (x * 1.44269504088896341f + magic) - magic;
    v r = x - n * 0.693359375f - n * -2.12194440e-4f;
    v p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    v y = p * r * r + r + 1.0f;
    vi power = (__builtin_convertvector(n, vi) + 127) << 23;
    return y * (v)power;
}

INLINE v vsilu(v x) { return x / (1.0f + vexp(-x)); }

INLINE v vtanh(v x) { /* 1 - 2 / (e^2x + 1) */
    return 1.0f - 2.0f / (vexp(2.0f * x) + 1.0f);
}

INLINE v vgelu(v x) { return 0.5f * x * (1.0f + vtanh(0.7978845608028654f * (x + 0.044715f * x * x * x))); }

#endif
