// Algorithm 1 of the continual paper, written by hand for vector units: a bound on what a processor can do.
//
// Each lane of a vector is a replicate. A tile is one vector of replicates and plays all its rounds before the next one
// begins, so that its state stays in the first-level cache. Sizes and precision are known to the compiler, which
// `limit.py` calls with -DREAL=float -DNUM_EXPERTS=10 and so on; every loop but those over lanes is over vectors.
//
// The draws are cheaper than the engine's: xoshiro128+ (256 in float64) and not threefry. The signal's column is the
// last one and its place is not drawn, because a round depends on the sum and the span of the columns only.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#if defined(__AVX512F__)
constexpr int BYTES = 64;
#elif defined(__AVX__)
constexpr int BYTES = 32;
#else
constexpr int BYTES = 16;
#endif

using Real = REAL;
constexpr int M = NUM_EXPERTS, N = NUM_TASKS, D = NUM_FEATURES, S = NUM_SAMPLES;
constexpr bool IS_SINGLE = sizeof(Real) == 4;
using Word = std::conditional_t<IS_SINGLE, uint32_t, uint64_t>;
using Whole = std::make_signed_t<Word>;
typedef Real Reals __attribute__((vector_size(BYTES)));
typedef Word Words __attribute__((vector_size(BYTES)));
typedef Whole Wholes __attribute__((vector_size(BYTES)));  // also masks: -1 and 0
constexpr int LANES = BYTES / sizeof(Real);

constexpr int FRACTION = IS_SINGLE ? 23 : 52;  // bits of a number behind the binary point
constexpr Word ONE = IS_SINGLE ? 0x3f800000 : 0x3ff0000000000000;  // the bits of 1.0
constexpr double PI = 3.141592653589793, LOG_2 = 0.6931471805599453;
// Terms of each series that reach the precision on the interval it is used on.
constexpr int SINE_TERMS = IS_SINGLE ? 6 : 11, LOG_TERMS = IS_SINGLE ? 4 : 10, EXP_TERMS = IS_SINGLE ? 8 : 14;

struct Constants {  // as in `rounds.py`
    double learning_rate, balance_weight, perturbation_scale, termination_threshold;
    double signal_scale, min_strength, max_strength, noise_scale;
    double terminate, exploration_rounds;  // 0 or 1, and T1
};

struct Tile {  // what LANES replicates carry from round to round
    Reals truths[N][D], experts[M][D], gates[M][D];
    Reals visits[M], served[M][N];  // arrivals at each expert, and of each task
    Wholes converged[M], terminated;
    Reals forgotten, remaining;  // (t - 1) F_t and t G_t
};

struct Arrival {  // what LANES replicates meet in one round
    Wholes task;
    Reals truth[D];        // w_n of the task
    Reals features[S][D];  // X_t
    Reals perturbation[M];
};

static inline Reals square_root(Reals x) {
    Reals root;
    for (int lane = 0; lane < LANES; ++lane) root[lane] = std::sqrt(x[lane]);
    return root;
}

static inline Reals inner(const Reals* a, const Reals* b) {
    Reals sum = a[0] * b[0];
    for (int i = 1; i < D; ++i) sum += a[i] * b[i];
    return sum;
}

// rows[index], each lane its own.
template <int ROWS, int K>
static inline void look_up(const Reals (&rows)[ROWS][K], Wholes index, Reals (&row)[K]) {
    for (int k = 0; k < K; ++k) row[k] = rows[0][k];
    for (int i = 1; i < ROWS; ++i)
        for (int k = 0; k < K; ++k) row[k] = index == i ? rows[i][k] : row[k];
}

struct Coefficients {
    Real exponential[24]{}, wave[24]{}, artanh[24]{};  // of x^k in e^x, of x^k in sin(x) + cos(x), of z^(2k+1) twice

    constexpr Coefficients() {
        double term = 1;
        for (int k = 0; k < 24; term /= ++k) {
            exponential[k] = Real(term);
            wave[k] = Real(k % 4 > 1 ? -term : term);
            artanh[k] = Real(2.0 / (2 * k + 1));
        }
    }
};
constexpr Coefficients COEFFICIENTS;

// The polynomial of TERMS coefficients that stand STEP apart.
template <int TERMS, int STEP = 1>
static inline Reals polynomial(const Real* coefficients, Reals x) {
    Reals sum = Reals{} + coefficients[(TERMS - 1) * STEP];
#pragma GCC unroll 24
    for (int k = TERMS - 2; k >= 0; --k) sum = sum * x + coefficients[k * STEP];
    return sum;
}

// e^x for x <= 1: 2^k e^r with |r| <= log(2) / 2.
static inline Reals exponential(Reals x) {
    constexpr Real shift = 1.5 * (Word(1) << FRACTION);  // adding it rounds to a whole number, in the lowest bits
    const Real least = IS_SINGLE ? -87 : -708;
    x = x < least ? Reals{} + least : x;
    const Reals shifted = x * Real(1 / LOG_2) + shift;
    const Reals rest = x - (shifted - shift) * Real(LOG_2);
    const Reals sum = polynomial<EXP_TERMS>(COEFFICIENTS.exponential, rest);
    return (Reals)((Words)sum + ((Words)shifted << FRACTION));
}

// log(x) for normal x > 0: log(2^e m) = e log(2) + 2 artanh(z), z = (m - 1) / (m + 1), sqrt(1/2) <= m < sqrt(2).
static inline Reals logarithm(Reals x) {
    constexpr Word root = IS_SINGLE ? 0x3f3504f3 : 0x3fe6a09e667f3bcd;  // the bits of sqrt(1/2)
    const Wholes exponent = (Wholes)((Words)x - root) >> FRACTION;
    const Reals m = (Reals)((Wholes)x - (exponent << FRACTION));
    const Reals z = (m - 1) / (m + 1), square = z * z;
    const Reals sum = polynomial<LOG_TERMS>(COEFFICIENTS.artanh, square);
    return __builtin_convertvector(exponent, Reals) * Real(LOG_2) + z * sum;
}

struct Generator {  // xoshiro128+ or xoshiro256+ in each lane
    Words a, b, c, d;

    Generator(uint64_t seed) {
        for (Words* words : {&a, &b, &c, &d})
            for (int lane = 0; lane < LANES; ++lane) {  // splitmix64
                uint64_t z = seed += 0x9e3779b97f4a7c15;
                z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
                z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
                (*words)[lane] = Word(z ^ (z >> 31));
            }
    }

    inline Words bits() {
        constexpr int shift = IS_SINGLE ? 9 : 17, turn = IS_SINGLE ? 11 : 45, width = 8 * sizeof(Word);
        const Words drawn = a + d, shifted = b << shift;
        c ^= a;
        d ^= b;
        b ^= c;
        a ^= d;
        c ^= shifted;
        d = (d << turn) | (d >> (width - turn));
        return drawn;
    }

    static inline Reals from_one(Words bits) {  // uniform in [1, 2)
        return (Reals)((bits >> (8 * sizeof(Word) - FRACTION)) | ONE);
    }

    inline Reals uniform(double low, double high) {
        return from_one(bits()) * Real(high - low) + Real(2 * low - high);
    }

    // Two normals by the Box-Muller method: an angle in half a circle, and for the other half a sign of the radius.
    inline void normals(Real deviation, Reals* pair) {
        const Words chance = bits();
        const Reals squared = Real(-2) * deviation * deviation * logarithm(2 - from_one(chance));
        const Reals angle = from_one(bits()) * Real(PI) - Real(1.5 * PI), square = angle * angle;
        const Words sign = chance << (8 * sizeof(Word) - 1);  // its lowest bit is not part of the uniform number
        const Reals radius = (Reals)((Words)square_root(squared) | sign);
        pair[0] = radius * polynomial<SINE_TERMS + 1, 2>(COEFFICIENTS.wave, square);
        pair[1] = radius * polynomial<SINE_TERMS, 2>(COEFFICIENTS.wave + 1, square) * angle;
    }
};

// An arrival of Definition 1, its signal in the last column, and the perturbation of (1).
static inline void draw(Generator& generator, const Constants& constants, const Tile& tile, Arrival& arrival) {
    arrival.task = __builtin_convertvector(generator.uniform(0, N), Wholes);
    look_up(tile.truths, arrival.task, arrival.truth);
    Reals* features = arrival.features[0];
    // Of an odd number of normals the last pair reaches into the signal's column, which is written afterwards.
    for (int k = 0; k < (S - 1) * D; k += 2) generator.normals(Real(constants.noise_scale), features + k);
    const Reals strength = generator.uniform(constants.min_strength, constants.max_strength);
    const Reals scale = strength * Real(constants.signal_scale);
    for (int k = 0; k < D; ++k) arrival.features[S - 1][k] = scale * arrival.truth[k];
    for (int m = 0; m < M; ++m) arrival.perturbation[m] = generator.uniform(0, constants.perturbation_scale);
}

// X (X'X)^-1 X' gap, the minimum-norm change of (5), by L D L' of the Gram matrix.
static inline void project(const Reals (&features)[S][D], const Reals (&gap)[D], Reals (&change)[D]) {
    Reals gram[S][S], weights[S], inverse[S];
    for (int i = 0; i < S; ++i)
        for (int j = 0; j <= i; ++j) gram[i][j] = features[i][0] * features[j][0];
    for (int k = 1; k < D; ++k)
        for (int i = 0; i < S; ++i)
            for (int j = 0; j <= i; ++j) gram[i][j] += features[i][k] * features[j][k];
    for (int i = 0; i < S; ++i) weights[i] = inner(features[i], gap);
    for (int j = 0; j < S; ++j) {
        inverse[j] = 1 / gram[j][j];
        for (int i = j + 1; i < S; ++i) {
            const Reals factor = gram[i][j] * inverse[j];
            for (int k = j + 1; k <= i; ++k) gram[i][k] -= factor * gram[k][j];
            weights[i] -= factor * weights[j];
        }
    }
    for (int j = S - 1; j >= 0; --j) {
        for (int i = j + 1; i < S; ++i) weights[j] -= gram[i][j] * weights[i];
        weights[j] *= inverse[j];
    }
    for (int k = 0; k < D; ++k) change[k] = weights[0] * features[0][k];
    for (int i = 1; i < S; ++i)
        for (int k = 0; k < D; ++k) change[k] += weights[i] * features[i][k];
}

// Round t of a tile, t = 1, 2, ...; returns m_t.
// Source: Eqs. (1)-(9), (14)-(16) and Algorithm 1 of `continual`, flags accumulating and q = 1 in (6).
static inline Wholes take_round(const Constants& constants, Tile& tile, const Arrival& arrival, int64_t t) {
    Reals gate_input[D], outputs[M];
    for (int k = 0; k < D; ++k) {
        gate_input[k] = arrival.features[0][k];
        for (int i = 1; i < S; ++i) gate_input[k] += arrival.features[i][k];
    }
    for (int m = 0; m < M; ++m) outputs[m] = inner(tile.gates[m], gate_input);
    Wholes expert{};
    Reals best = outputs[0] + arrival.perturbation[0], chosen = outputs[0];
    for (int m = 1; m < M; ++m) {
        const Reals score = outputs[m] + arrival.perturbation[m];
        expert = score > best ? Wholes{} + m : expert;
        chosen = score > best ? outputs[m] : chosen;
        best = score > best ? score : best;
    }

    Reals before[D], gap[D], change[D], served[N];
    look_up(tile.experts, expert, before);
    look_up(tile.served, expert, served);
    for (int k = 0; k < D; ++k) gap[k] = arrival.truth[k] - before[k];
    project(arrival.features, gap, change);
    // Only this expert's errors on past tasks change: |w' - w_n|^2 - |w - w_n|^2 in centred form.
    Reals moved{}, missing{}, shift{}, total{};
    for (int k = 0; k < D; ++k) {
        moved += change[k] * change[k];
        shift += change[k] * (2 * before[k] + change[k]);
        missing += (gap[k] - change[k]) * (gap[k] - change[k]);
    }
    for (int n = 0; n < N; ++n) total += served[n] * (shift - 2 * inner(tile.truths[n], change));
    tile.forgotten += total;
    tile.remaining += total + missing;

    // The chosen output is at most the perturbations' scale below the largest, and its own weight is 1.
    Reals weights[M], sum{}, visits{};
    for (int m = 0; m < M; ++m) {
        weights[m] = exponential(outputs[m] - chosen);
        sum += weights[m];
    }
    if (t > constants.exploration_rounds) {
        const Real threshold = constants.termination_threshold;
        Wholes all = ~Wholes{};
        for (int m = 0; m < M; ++m) {
            const Reals difference = outputs[m] - chosen;
            tile.converged[m] |= (difference < threshold) & (difference > -threshold);
            all &= tile.converged[m];
        }
        if (constants.terminate) tile.terminated |= all;
    }
    for (int m = 0; m < M; ++m) {
        const Wholes is_chosen = expert == m;
        tile.visits[m] = is_chosen ? tile.visits[m] + 1 : tile.visits[m];
        visits = is_chosen ? tile.visits[m] : visits;
        for (int n = 0; n < N; ++n)
            tile.served[m][n] = is_chosen & (arrival.task == n) ? tile.served[m][n] + 1 : tile.served[m][n];
        for (int k = 0; k < D; ++k) tile.experts[m][k] = is_chosen ? before[k] + change[k] : tile.experts[m][k];
    }
    const Reals cost = square_root(moved) + Real(constants.balance_weight * M / (double(t) * double(t))) * visits;
    const Reals share = 1 / sum;  // the chosen expert's probability
    const Reals pull = tile.terminated ? Reals{} : Real(constants.learning_rate) * cost * share;
    for (int m = 0; m < M; ++m) {
        const Reals slope = pull * ((expert == m ? Reals{} + 1 : Reals{}) - weights[m] * share);
        for (int k = 0; k < D; ++k) tile.gates[m][k] -= slope * gate_input[k];
    }
    return expert;
}

// Replicates `first` and on, at most LANES of them; lanes beyond the end repeat the last one.
static void begin(Tile& tile, const Real* truths, int64_t end, int64_t first) {
    tile = Tile{};
    for (int lane = 0; lane < LANES; ++lane)
        for (int n = 0; n < N; ++n)
            for (int k = 0; k < D; ++k)
                tile.truths[n][k][lane] = truths[(std::min(first + lane, end - 1) * N + n) * D + k];
}

extern "C" {

// G_T (batch) of the replicates from `first` up to `last`, with truths (batch, N, d), on arrivals of their own.
void run(const Constants* constants, const Real* truths, int64_t first, int64_t last, int64_t num_rounds, uint64_t seed,
         Real* error) {
    Tile tile;
    Arrival arrival;
    for (; first < last; first += LANES) {
        begin(tile, truths, last, first);
        Generator generator(seed * 0x9e3779b97f4a7c15 + first * 0xd1342543de82ef95);
        for (int64_t t = 1; t <= num_rounds; ++t) {
            draw(generator, *constants, tile, arrival);
            take_round(*constants, tile, arrival, t);
        }
        for (int lane = 0; lane < LANES && first + lane < last; ++lane)
            error[first + lane] = tile.remaining[lane] / Real(num_rounds);
    }
}

// m_t, G_t and F_t (T, batch) on given tasks (T, batch), features (T, batch, d, s) and perturbations (T, batch, M).
void play(const Constants* constants, const Real* truths, int64_t batch, int64_t num_rounds, const int64_t* tasks,
          const Real* features, const Real* perturbations, int64_t* experts, Real* error, Real* forgetting) {
    Tile tile;
    Arrival arrival;
    for (int64_t first = 0; first < batch; first += LANES) {
        begin(tile, truths, batch, first);
        for (int64_t t = 1; t <= num_rounds; ++t) {
            for (int lane = 0; lane < LANES; ++lane) {
                const int64_t at = (t - 1) * batch + std::min(first + lane, batch - 1);
                arrival.task[lane] = tasks[at];
                for (int i = 0; i < S; ++i)
                    for (int k = 0; k < D; ++k) arrival.features[i][k][lane] = features[(at * D + k) * S + i];
                for (int m = 0; m < M; ++m) arrival.perturbation[m][lane] = perturbations[at * M + m];
            }
            look_up(tile.truths, arrival.task, arrival.truth);
            const Wholes expert = take_round(*constants, tile, arrival, t);
            for (int lane = 0; lane < LANES && first + lane < batch; ++lane) {
                const int64_t at = (t - 1) * batch + first + lane;
                experts[at] = expert[lane];
                error[at] = tile.remaining[lane] / Real(t);
                forgetting[at] = tile.forgotten[lane] / Real(std::max<int64_t>(t - 1, 1));
            }
        }
    }
}

}  // extern "C"
