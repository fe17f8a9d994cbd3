/* Loops over rows, pairs and residues: what numpy would spread over many passes.

   Each function computes, to the bit, what the Python function of its name does; that
   one's docstring says what. Arithmetic is IEEE's, in the order written: the compiler
   may not contract, reorder or approximate (-ffp-contract=off, no -ffast-math), so the
   clones for other vector units give the same bits.

   Python passes an array as its address and shape; a vector has one column. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t i64;
typedef uint64_t u64;
typedef struct { double *at; i64 n, m; } reals;
typedef struct { i64 *at; i64 n, m; } integers;
typedef struct { u64 *at; i64 n, m; } words;
typedef struct { uint8_t *at; i64 n, m; } mask;

#define INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(ONE_CLONE)
#define KERNEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KERNEL
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* The loader compares it with the source beside which it lies. */
const char source_digest[] = SOURCE_DIGEST;

static void *take(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        abort();
    return memory;
}

/* Passes over rows (algorithms/row_kernels.py), in blocks that stay in the cache,
   features first, so that inner loops run over rows whatever k and F are. */

enum { BLOCK = 256, AT_ONCE = 8 };

INLINE void scale_block(const double *restrict X, i64 F, i64 size,
                        const double *restrict offset, const double *restrict inverse,
                        double *restrict block)
{
    i64 whole = size - size % AT_ONCE;
    for (i64 first = 0; first < whole; first += AT_ONCE)
        for (i64 f = 0; f < F; f++)
            for (i64 i = first; i < first + AT_ONCE; i++)
                block[f * BLOCK + i] = (X[i * F + f] - offset[f]) * inverse[f];
    for (i64 i = whole; i < size; i++)
        for (i64 f = 0; f < F; f++)
            block[f * BLOCK + i] = (X[i * F + f] - offset[f]) * inverse[f];
}

/* Four features a turn: a quarter of the loads and stores of D. */
INLINE void measure(const double *restrict block, i64 size, const double *restrict V,
                    i64 k, i64 F, double *restrict D)
{
    i64 whole = F - F % 4;
    for (i64 c = 0; c < k; c++) {
        const double *v = V + c * F;
        double *d = D + c * BLOCK;
        for (i64 i = 0; i < size; i++)
            d[i] = 0.0;
        for (i64 f = 0; f < whole; f += 4) {
            const double *x0 = block + f * BLOCK, *x1 = x0 + BLOCK;
            const double *x2 = x1 + BLOCK, *x3 = x2 + BLOCK;
            double v0 = v[f], v1 = v[f + 1], v2 = v[f + 2], v3 = v[f + 3];
            for (i64 i = 0; i < size; i++) {
                double a = x0[i] - v0, b = x1[i] - v1, e = x2[i] - v2, g = x3[i] - v3;
                d[i] += (a * a + b * b) + (e * e + g * g);
            }
        }
        for (i64 f = whole; f < F; f++) {
            const double *x0 = block + f * BLOCK;
            double v0 = v[f];
            for (i64 i = 0; i < size; i++) {
                double a = x0[i] - v0;
                d[i] += a * a;
            }
        }
    }
}

INLINE void find_nearest(const double *restrict D, i64 k, i64 size, double tie,
                         i64 *restrict labels, double *restrict smallest)
{
    for (i64 i = 0; i < size; i++) {
        smallest[i] = D[i];
        labels[i] = 0;
    }
    for (i64 c = 1; c < k; c++) {
        const double *d = D + c * BLOCK;
        for (i64 i = 0; i < size; i++) {
            int nearer = d[i] < smallest[i] - tie;
            smallest[i] = nearer ? d[i] : smallest[i];
            labels[i] = nearer ? c : labels[i];
        }
    }
}

INLINE void sum_rows(const double *restrict X, i64 F, i64 size, const i64 *restrict labels,
                     const double *restrict offset, const double *restrict inverse,
                     const double *restrict units, i64 *restrict sums,
                     i64 *restrict counts)
{
    for (i64 i = 0; i < size; i++) {
        i64 c = labels[i];
        counts[c]++;
        for (i64 f = 0; f < F; f++) {
            double x = (X[i * F + f] - offset[f]) * inverse[f];
            sums[c * F + f] += (i64)rint(x * units[f]);
        }
    }
}

KERNEL void squared_distances(reals A, reals B, reals D)
{
    for (i64 i = 0; i < A.n; i++)
        for (i64 c = 0; c < B.n; c++) {
            double total = 0.0;
            for (i64 f = 0; f < A.m; f++) {
                double apart = A.at[i * A.m + f] - B.at[c * A.m + f];
                total += apart * apart;
            }
            D.at[i * B.n + c] = total;
        }
}

KERNEL void nearest_sums(reals X, reals offset, reals inverse, reals V, reals units,
                         integers sums, integers counts, reals within_units,
                         integers within, double tie)
{
    i64 F = X.m, k = V.n, labels[BLOCK];
    double smallest[BLOCK];
    double *block = take(F * BLOCK, 8), *D = take(k * BLOCK, 8);
    for (i64 begin = 0; begin < X.n; begin += BLOCK) {
        i64 size = MIN(BLOCK, X.n - begin);
        const double *rows = X.at + begin * F;
        scale_block(rows, F, size, offset.at, inverse.at, block);
        measure(block, size, V.at, k, F, D);
        find_nearest(D, k, size, tie, labels, smallest);
        sum_rows(rows, F, size, labels, offset.at, inverse.at, units.at, sums.at,
                 counts.at);
        for (i64 i = 0; i < size; i++) {
            double away = smallest[i] * within_units.at[0], whole = floor(away);
            within.at[0] += (i64)whole;
            within.at[1] += (i64)((away - whole) * within_units.at[1]);
        }
    }
    free(block);
    free(D);
}

KERNEL void add_rows(reals X, integers labels, reals offset, reals inverse, reals units,
                     integers sums, integers counts)
{
    sum_rows(X.at, X.m, labels.n, labels.at, offset.at, inverse.at, units.at, sums.at,
             counts.at);
}

KERNEL void update_nearest(reals X, reals offset, reals inverse, reals V, i64 first,
                         integers labels, reals smallest, double tie)
{
    i64 F = X.m, k = V.n, nearest[BLOCK];
    double away[BLOCK];
    double *block = take(F * BLOCK, 8), *D = take(k * BLOCK, 8);
    for (i64 begin = 0; begin < X.n; begin += BLOCK) {
        i64 size = MIN(BLOCK, X.n - begin);
        scale_block(X.at + begin * F, F, size, offset.at, inverse.at, block);
        measure(block, size, V.at, k, F, D);
        find_nearest(D, k, size, tie, nearest, away);
        for (i64 i = 0; i < size; i++)
            if (away[i] < smallest.at[begin + i] - tie) {
                smallest.at[begin + i] = away[i];
                labels.at[begin + i] = first + nearest[i];
            }
    }
    free(block);
    free(D);
}

KERNEL void absolute_sums(reals X, reals offset, reals units, integers sums)
{
    for (i64 i = 0; i < X.n; i++)
        for (i64 f = 0; f < X.m; f++)
            sums.at[f] += (i64)rint(fabs(X.at[i * X.m + f] - offset.at[f]) * units.at[f]);
}

KERNEL void reach(reals X, reals offset, reals largest)
{
    for (i64 i = 0; i < X.n; i++)
        for (i64 f = 0; f < X.m; f++) {
            double away = fabs(X.at[i * X.m + f] - offset.at[f]), old = largest.at[f];
            largest.at[f] = old >= away || isnan(old) ? old : away;
        }
}

/* llf (protocols/llf/kernels.py) */

INLINE void memberships_of(double *restrict D, i64 k, i64 size,
                           const double *restrict smallest, double exponent,
                           double *restrict total)
{
    for (i64 i = 0; i < size; i++)
        total[i] = 0.0;
    for (i64 c = 0; c < k; c++) {
        double *d = D + c * BLOCK;
        for (i64 i = 0; i < size; i++) {
            double ratio = d[i] == smallest[i] ? 1.0 : smallest[i] / d[i];
            d[i] = exponent == 1.0 || ratio == 1.0 ? ratio : pow(ratio, exponent);
            total[i] += d[i];
        }
    }
    for (i64 c = 0; c < k; c++)
        for (i64 i = 0; i < size; i++)
            D[c * BLOCK + i] /= total[i];
}

/* Whole numbers below 2^53 add up exactly, so any order will do. */
INLINE double sum_units(const double *restrict a, const double *restrict b, double unit,
                        i64 size)
{
    double lanes[8] = {0}, total = 0.0;
    i64 whole = size - size % 8;
    for (i64 i = 0; i < whole; i += 8)
        for (i64 lane = 0; lane < 8; lane++)
            lanes[lane] += rint(a[i + lane] * b[i + lane] * unit);
    for (i64 i = whole; i < size; i++)
        total += rint(a[i] * b[i] * unit);
    for (i64 lane = 0; lane < 8; lane++)
        total += lanes[lane];
    return total;
}

KERNEL void fuzzy_sums(reals X, reals offset, reals inverse, reals V, double fuzzifier,
                       reals units, double weight_unit, reals sums, reals weights)
{
    i64 F = X.m, k = V.n, labels[BLOCK];
    double smallest[BLOCK], total[BLOCK], ones[BLOCK];
    double *block = take(F * BLOCK, 8), *D = take(k * BLOCK, 8);
    double exponent = 1.0 / (fuzzifier - 1.0);
    for (i64 i = 0; i < BLOCK; i++)
        ones[i] = 1.0;
    for (i64 begin = 0; begin < X.n; begin += BLOCK) {
        i64 size = MIN(BLOCK, X.n - begin);
        scale_block(X.at + begin * F, F, size, offset.at, inverse.at, block);
        measure(block, size, V.at, k, F, D);
        find_nearest(D, k, size, 0.0, labels, smallest);
        memberships_of(D, k, size, smallest, exponent, total);
        for (i64 c = 0; c < k; c++) {
            double *u = D + c * BLOCK;
            for (i64 i = 0; i < size; i++)
                u[i] = fuzzifier == 2.0 ? u[i] * u[i] : pow(u[i], fuzzifier);
            weights.at[c] += sum_units(u, ones, weight_unit, size);
            for (i64 f = 0; f < F; f++)
                sums.at[c * F + f] += sum_units(u, block + f * BLOCK, units.at[f], size);
        }
    }
    free(block);
    free(D);
}

KERNEL void assign(reals X, reals offset, reals inverse, reals V, double exponent,
                   integers labels, reals memberships, reals within)
{
    i64 F = X.m, k = V.n;
    double smallest[BLOCK], total[BLOCK];
    double *block = take(F * BLOCK, 8), *D = take(k * BLOCK, 8);
    for (i64 begin = 0; begin < X.n; begin += BLOCK) {
        i64 size = MIN(BLOCK, X.n - begin);
        scale_block(X.at + begin * F, F, size, offset.at, inverse.at, block);
        measure(block, size, V.at, k, F, D);
        find_nearest(D, k, size, 0.0, labels.at + begin, smallest);
        for (i64 i = 0; i < size; i++)
            for (i64 c = 0; c < k; c++)
                within.at[(begin + i) * k + c] = D[c * BLOCK + i];
        if (exponent > 0.0)
            memberships_of(D, k, size, smallest, exponent, total);
        for (i64 i = 0; i < size; i++)
            for (i64 c = 0; c < k; c++)
                memberships.at[(begin + i) * k + c] =
                    exponent > 0.0 ? D[c * BLOCK + i] : labels.at[begin + i] == c;
    }
    free(block);
    free(D);
}

KERNEL void distance_units(reals X, reals offset, reals inverse, reals V, double unit,
                           integers places, words out)
{
    i64 F = X.m, k = V.n;
    double *block = take(F * BLOCK, 8), *D = take(k * BLOCK, 8);
    for (i64 begin = 0; begin < X.n; begin += BLOCK) {
        i64 size = MIN(BLOCK, X.n - begin);
        scale_block(X.at + begin * F, F, size, offset.at, inverse.at, block);
        measure(block, size, V.at, k, F, D);
        for (i64 i = 0; i < size; i++)
            for (i64 c = 0; c < k; c++) {
                /* beyond 64 bits a cast may give any word; the caller refuses 2^63 */
                double units = rint(D[c * BLOCK + i] * unit);
                out.at[places.at[begin + i] * k + c]
                    = units < 0x1p63 ? (u64)units : (u64)1 << 63;
            }
    }
    free(block);
    free(D);
}

/* Sums of labelled rows (quality/block_sums.py) */

KERNEL void sum_by_label(reals X, reals offset, reals inverse, integers labels, reals sums)
{
    for (i64 i = 0; i < X.n; i++) {
        double *own = sums.at + labels.at[i] * X.m;
        for (i64 f = 0; f < X.m; f++)
            own[f] += (X.at[i * X.m + f] - offset.at[f]) * inverse.at[f];
    }
}

KERNEL double sum_around(reals X, reals offset, reals inverse, reals means,
                         integers labels, integers counts, reals squares, reals lengths)
{
    i64 F = X.m, k = means.n;
    double others[BLOCK], silhouettes = 0.0;
    double *block = take(F * BLOCK, 8), *D = take(k * BLOCK, 8);
    for (i64 begin = 0; begin < X.n; begin += BLOCK) {
        i64 size = MIN(BLOCK, X.n - begin);
        const i64 *own = labels.at + begin;
        scale_block(X.at + begin * F, F, size, offset.at, inverse.at, block);
        measure(block, size, means.at, k, F, D);
        for (i64 i = 0; i < size; i++)
            others[i] = INFINITY;
        for (i64 c = 0; c < k; c++)
            for (i64 i = 0; counts.at[c] && i < size; i++)
                if (own[i] != c && D[c * BLOCK + i] < others[i])
                    others[i] = D[c * BLOCK + i];
        for (i64 i = 0; i < size; i++) {
            i64 c = own[i];
            double within = D[c * BLOCK + i];
            double a = sqrt(within), b = sqrt(others[i]), larger = b > a ? b : a;
            squares.at[c] += within;
            lengths.at[c] += a;
            if (counts.at[c] > 1 && larger > 0.0 && isfinite(b))
                silhouettes += (b - a) / larger;
        }
    }
    free(block);
    free(D);
    return silhouettes;
}

/* Condensed distances (algorithms/condensed_distances.py) */

INLINE void copy_row(const double *restrict condensed, i64 n, i64 i, double *restrict row)
{
    i64 at = i - 1, begin = i * n - i * (i + 1) / 2;
    for (i64 j = 0; j < i; j++) {
        row[j] = condensed[at];
        at += n - j - 2;
    }
    row[i] = 0.0;
    memcpy(row + i + 1, condensed + begin, (n - i - 1) * sizeof(double));
}

void read_row(reals condensed, i64 n, i64 i, reals row)
{
    copy_row(condensed.at, n, i, row.at);
}

void fill_nearest(reals condensed, i64 n, integers rows, reals distances)
{
    i64 count = rows.m;
    double *buffer = take(n, 8);
    for (i64 i = 0; i < n; i++) {
        i64 *best = rows.at + i * count, held = 0;
        double *away = distances.at + i * count;
        copy_row(condensed.at, n, i, buffer);
        buffer[i] = -1.0;
        for (i64 j = 0; j < n; j++) {
            double value = buffer[j];
            if (held == count && value >= away[count - 1])
                continue;
            i64 at = held < count ? held : count - 1;
            held = MIN(held + 1, count);
            for (; at > 0 && away[at - 1] > value; at--) {
                away[at] = away[at - 1];
                best[at] = best[at - 1];
            }
            away[at] = value;
            best[at] = j;
        }
        away[0] = 0.0;
    }
    free(buffer);
}

double find_outside(reals condensed, mask inside, integers pair)
{
    i64 n = inside.n;
    double *buffer = take(n, 8), least = INFINITY;
    for (i64 i = 0; i < n; i++) {
        if (!inside.at[i])
            continue;
        copy_row(condensed.at, n, i, buffer);
        for (i64 j = 0; j < n; j++)
            if (!inside.at[j] && buffer[j] < least) {
                pair.at[0] = i;
                pair.at[1] = j;
                least = buffer[j];
            }
    }
    free(buffer);
    return least;
}

/* FasterPAM (algorithms/kmedoids.py) */

/* The nearest medoid's place and the two least distances of each row; what the removal
   of each medoid would add to the loss. */
INLINE void two_nearest(const double *restrict rows, i64 k, i64 n, double far,
                        i64 *restrict first, double *restrict near,
                        double *restrict second, double *restrict removal)
{
    for (i64 place = 0; place < k; place++)
        removal[place] = 0.0;
    for (i64 o = 0; o < n; o++) {
        first[o] = 0;
        near[o] = second[o] = far;
        for (i64 place = 0; place < k; place++) {
            double value = rows[place * n + o];
            if (value < near[o]) {
                second[o] = near[o];
                first[o] = place;
                near[o] = value;
            } else if (value < second[o])
                second[o] = value;
        }
        removal[first[o]] += second[o] - near[o];
    }
}

void improve(reals condensed, integers medoids, reals rows, i64 max_iter)
{
    i64 n = rows.m, k = medoids.n, unchanged = 0;
    i64 *first = take(n, 8);
    double *near = take(n, 8), *second = take(n, 8), *row = take(n, 8);
    double *removal = take(k, 8), *change = take(k, 8), far = 0.0;
    for (i64 at = 0; at < condensed.n; at++)
        far = MAX(far, condensed.at[at]);
    far = 2.0 * far + 1.0;
    two_nearest(rows.at, k, n, far, first, near, second, removal);
    for (i64 step = 0; step < max_iter * n && unchanged < n; step++) {
        i64 candidate = step % n, place = 0, is_medoid = 0;
        double shared = 0.0, loss = 0.0;
        unchanged++;
        for (i64 c = 0; c < k; c++)
            is_medoid |= medoids.at[c] == candidate;
        if (is_medoid)
            continue;
        copy_row(condensed.at, n, candidate, row);
        memcpy(change, removal, k * sizeof(double));
        for (i64 o = 0; o < n; o++) {
            if (row[o] < near[o]) {
                shared += row[o] - near[o];
                change[first[o]] += near[o] - second[o];
            } else if (row[o] < second[o])
                change[first[o]] += row[o] - second[o];
            loss += near[o];
        }
        for (i64 c = 0; c < k; c++) {
            change[c] += shared;
            place = change[c] < change[place] ? c : place;
        }
        if (change[place] < -1e-12 * loss) {
            medoids.at[place] = candidate;
            memcpy(rows.at + place * n, row, n * sizeof(double));
            two_nearest(rows.at, k, n, far, first, near, second, removal);
            unchanged = 0;
        }
    }
    free(first);
    free(near);
    free(second);
    free(row);
    free(removal);
    free(change);
}

/* Fuzzy c-means (algorithms/fuzzy_cmeans.py) */

INLINE void degrees_of(const double *restrict row, const double *restrict columns, i64 F,
                       i64 k, double fuzziness, double *restrict squared,
                       double *restrict degrees)
{
    double total = 0.0, least;
    for (i64 c = 0; c < k; c++)
        squared[c] = 0.0;
    for (i64 f = 0; f < F; f++)
        for (i64 c = 0; c < k; c++) {
            double away = row[f] - columns[f * k + c];
            squared[c] += away * away;
        }
    least = squared[0];
    for (i64 c = 1; c < k; c++)
        least = MIN(squared[c], least);
    for (i64 c = 0; c < k; c++) {
        degrees[c] = squared[c] == least
                         ? 1.0
                         : pow(least / squared[c], 1.0 / (fuzziness - 1.0));
        total += degrees[c];
    }
    for (i64 c = 0; c < k; c++)
        degrees[c] /= total;
}

KERNEL void fill_degrees(reals X, reals columns, double fuzziness, reals out)
{
    i64 k = columns.m;
    double *squared = take(k, 8);
    for (i64 i = 0; i < X.n; i++)
        degrees_of(X.at + i * X.m, columns.at, X.m, k, fuzziness, squared, out.at + i * k);
    free(squared);
}

KERNEL double add_weighted(reals X, reals columns, double fuzziness, reals totals,
                           reals weights)
{
    i64 F = X.m, k = columns.m;
    double *squared = take(k, 8), *degrees = take(k, 8), objective = 0.0;
    for (i64 i = 0; i < X.n; i++) {
        const double *row = X.at + i * F;
        degrees_of(row, columns.at, F, k, fuzziness, squared, degrees);
        for (i64 c = 0; c < k; c++) {
            double weight = pow(degrees[c], fuzziness);
            weights.at[c] += weight;
            objective += weight * squared[c];
            for (i64 f = 0; f < F; f++)
                totals.at[c * F + f] += weight * row[f];
        }
    }
    free(squared);
    free(degrees);
    return objective;
}

/* Residues modulo p = 2^61 - 1 (secrecy/field.py): the bits above the 61st are added to
   those below. Products are made of 31-bit limbs, so that every partial product fits a
   word, and masked, as the product of words that are short is one vector instruction. */

#define P 0x1FFFFFFFFFFFFFFFULL
#define LOW_LIMB 0x7FFFFFFFULL
#define LOW_30 0x3FFFFFFFULL
#define LOW_29 0x1FFFFFFFULL

INLINE u64 fold(u64 x) { return (x & P) + (x >> 61); }

INLINE u64 reduce(u64 x)
{
    u64 y = fold(x);
    return y >= P ? y - P : y;
}

/* low + 2^31 middle + 2^62 high, to be folded */
INLINE u64 join_limbs(u64 low, u64 middle, u64 high)
{
    return (low & P) + (low >> 61) + ((middle & LOW_30) << 31) + (middle >> 30)
           + (high << 1);
}

KERNEL void add_multiples(words total, words weights, words a, words b, words c, words d)
{
    u64 low_weights[4], high_weights[4];
    for (int w = 0; w < 4; w++) {
        low_weights[w] = weights.at[w] & LOW_LIMB;
        high_weights[w] = weights.at[w] >> 31;
    }
    u64 p0 = low_weights[0], q0 = low_weights[1], r0 = low_weights[2], s0 = low_weights[3];
    u64 p1 = high_weights[0], q1 = high_weights[1], r1 = high_weights[2];
    u64 s1 = high_weights[3];
    for (i64 i = 0; i < total.n; i++) {
        u64 a0 = a.at[i] & LOW_LIMB, b0 = b.at[i] & LOW_LIMB;
        u64 c0 = c.at[i] & LOW_LIMB, d0 = d.at[i] & LOW_LIMB;
        u64 a1 = (a.at[i] >> 31) & LOW_LIMB, b1 = (b.at[i] >> 31) & LOW_LIMB;
        u64 c1 = (c.at[i] >> 31) & LOW_LIMB, d1 = (d.at[i] >> 31) & LOW_LIMB;
        u64 low = a0 * p0 + b0 * q0 + c0 * r0 + d0 * s0;
        u64 middle = (a0 * p1 + a1 * p0) + (b0 * q1 + b1 * q0) + (c0 * r1 + c1 * r0)
                     + (d0 * s1 + d1 * s0);
        u64 high = a1 * p1 + b1 * q1 + c1 * r1 + d1 * s1;
        total.at[i] = fold(total.at[i] + join_limbs(low, middle, high));
    }
}

KERNEL void add(words total, words part)
{
    for (i64 i = 0; i < total.n; i++)
        total.at[i] = fold(total.at[i] + part.at[i]);
}

KERNEL void subtract(words total, words part)
{
    for (i64 i = 0; i < total.n; i++)
        total.at[i] = fold(total.at[i] + (P - part.at[i]));
}

KERNEL void canonicalise(words total)
{
    for (i64 i = 0; i < total.n; i++)
        total.at[i] = reduce(total.at[i]);
}

KERNEL void weighted_blocks(integers values, words weights, words out)
{
    i64 length = weights.n;
    for (i64 block = 0; block < out.n; block++) {
        const i64 *row = values.at + block * length;
        i64 size = MIN(length, values.n - block * length);
        u64 total = 0;
        for (i64 i = 0; i < size; i++) {
            u64 x = row[i] >= 0 ? (u64)row[i] : P - (u64)-row[i];
            u64 a0 = x & LOW_LIMB, a1 = x >> 31;
            u64 b0 = weights.at[i] & LOW_LIMB, b1 = weights.at[i] >> 31;
            total = fold(total + join_limbs(a0 * b0, a0 * b1 + a1 * b0, a1 * b1));
        }
        out.at[block] = reduce(total);
    }
}

/* omnifc (protocols/omnifc/maths.py): a tile of sums and four columns stay in the
   first cache. */

enum { ROWS = 16, COLUMNS = 256 };

INLINE u64 apart(u64 x, u64 y)
{
    i64 difference = (i64)x - (i64)y;
    return (u64)(difference < 0 ? -difference : difference);
}

/* a word equal to a² + b² + c² + d² mod p, below 6.1 · 2^61: x² = x0² + 2^32 x0 x1 +
   2^62 x1², and four terms are the most that Σ x0² may have in one word */
INLINE u64 squares(u64 a, u64 b, u64 c, u64 d)
{
    u64 a0 = a & LOW_LIMB, b0 = b & LOW_LIMB, c0 = c & LOW_LIMB, d0 = d & LOW_LIMB;
    u64 a1 = (a >> 31) & LOW_LIMB, b1 = (b >> 31) & LOW_LIMB;
    u64 c1 = (c >> 31) & LOW_LIMB, d1 = (d >> 31) & LOW_LIMB;
    u64 low = a0 * a0 + b0 * b0 + c0 * c0 + d0 * d0;
    u64 middle = a0 * a1 + b0 * b1 + c0 * c1 + d0 * d1;
    u64 high = a1 * a1 + b1 * b1 + c1 * c1 + d1 * d1;
    return (low & P) + (low >> 61) + ((middle & LOW_29) << 32) + (middle >> 29)
           + (high << 1);
}

KERNEL void fill_distances(words columns, i64 first, i64 last, words out)
{
    i64 n = columns.m, before = first * n - first * (first + 1) / 2;
    u64 tile[ROWS][COLUMNS];
    for (i64 top = first; top < last; top += ROWS) {
        i64 bottom = MIN(last, top + ROWS);
        for (i64 left = top; left < n; left += COLUMNS) {
            i64 size = MIN(n - left, COLUMNS);
            memset(tile, 0, sizeof tile);
            for (i64 f = 0; f < columns.n; f += 4) {
                const u64 *a = columns.at + f * n, *b = a + n, *c = b + n, *d = c + n;
                for (i64 i = top; i < bottom; i++) {
                    u64 *restrict sums = tile[i - top];
                    u64 ai = a[i], bi = b[i], ci = c[i], di = d[i];
                    for (i64 j = 0; j < size; j++)
                        sums[j] = fold(sums[j]
                                       + squares(apart(ai, a[left + j]),
                                                 apart(bi, b[left + j]),
                                                 apart(ci, c[left + j]),
                                                 apart(di, d[left + j])));
                }
            }
            for (i64 i = top; i < bottom; i++) {
                u64 *row = out.at + (i * n - i * (i + 1) / 2 - i - 1 - before);
                for (i64 j = MAX(left, i + 1); j < left + size; j++)
                    row[j] = reduce(tile[i - top][j - left]);
            }
        }
    }
}

/* dc (protocols/dc/maths.py) */

KERNEL void add_products(reals X, reals G, i64 first, reals image)
{
    i64 width = X.m, m = G.m, whole = width - width % 4;
    double *block = take(width * BLOCK, 8), *added = take(m * BLOCK, 8);
    for (i64 begin = 0; begin < X.n; begin += BLOCK) {
        i64 size = MIN(BLOCK, X.n - begin);
        for (i64 i = 0; i < size; i++)
            for (i64 j = 0; j < width; j++)
                block[j * BLOCK + i] = X.at[(begin + i) * width + j];
        for (i64 f = 0; f < m; f++) {
            double *restrict sum = added + f * BLOCK;
            for (i64 i = 0; i < size; i++)
                sum[i] = 0.0;
            for (i64 j = 0; j < whole; j += 4) {
                const double *x0 = block + j * BLOCK, *x1 = x0 + BLOCK;
                const double *x2 = x1 + BLOCK, *x3 = x2 + BLOCK;
                const double *g = G.at + j * m + f;
                double a = g[0], b = g[m], c = g[2 * m], d = g[3 * m];
                for (i64 i = 0; i < size; i++)
                    sum[i] += (x0[i] * a + x1[i] * b) + (x2[i] * c + x3[i] * d);
            }
            for (i64 j = whole; j < width; j++) {
                double a = G.at[j * m + f];
                for (i64 i = 0; i < size; i++)
                    sum[i] += block[j * BLOCK + i] * a;
            }
        }
        for (i64 i = 0; i < size; i++)
            for (i64 f = 0; f < m; f++)
                image.at[(begin + i) * image.m + first + f] += added[f * BLOCK + i];
    }
    free(block);
    free(added);
}

/* pqmds (protocols/pqmds/maths.py) */

KERNEL void draw_starts(reals features, reals draws, integers starts)
{
    i64 d = features.n, n = features.m;
    double *near = take(n, 8), *away = take(n, 8);
    for (i64 i = 0; i < n; i++)
        near[i] = 1.0;
    for (i64 start = 0; start < draws.n; start++) {
        double wanted = 0.0, so_far = near[0];
        i64 row = 0;
        for (i64 i = 0; i < n; i++)
            wanted += near[i];
        wanted *= draws.at[start];
        while (so_far < wanted && row < n - 1)
            so_far += near[++row];
        starts.at[start] = row;
        for (i64 i = 0; i < n; i++)
            away[i] = 0.0;
        for (i64 f = 0; f < d; f++) {
            const double *x = features.at + f * n;
            double here = x[row];
            for (i64 i = 0; i < n; i++)
                away[i] += (x[i] - here) * (x[i] - here);
        }
        for (i64 i = 0; i < n; i++)
            near[i] = start == 0 || away[i] < near[i] ? away[i] : near[i];
    }
    free(near);
    free(away);
}
