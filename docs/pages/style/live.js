// The experiments of live.md. No request, no dependency: `experiments` computes, `pictures` draws, `mount` joins both.
"use strict";
(() => {
  // ---- random numbers: replicate i of seed s has a stream of its own, whoever draws it and when ----
  const mix = (word) => {
    word = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
    word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35);
    return (word ^ (word >>> 16)) >>> 0;
  };

  const generator = (seed, replicate) => {
    const first = mix((mix((seed + 0x9e3779b9) | 0) + replicate) | 0);
    const second = mix(first ^ 0x5bd1e995);
    let counter = 0;
    let spare = null;
    const word = () => mix(mix((first + Math.imul(counter++, 0x9e3779b9)) | 0) ^ second);
    const uniform = () => (word() + 0.5) / 4294967296;
    const below = (count) => Math.floor(uniform() * count);
    const normal = () => {
      if (spare !== null) {
        const kept = spare;
        spare = null;
        return kept;
      }
      const radius = Math.sqrt(-2 * Math.log(uniform()));
      const angle = 2 * Math.PI * uniform();
      spare = radius * Math.sin(angle);
      return radius * Math.cos(angle);
    };
    return { word, uniform, below, normal };
  };

  // ---- numerics ----
  const logGamma = (x) => {
    let shift = 0;
    for (; x < 12; x++) shift += Math.log(x);
    const square = 1 / (x * x);
    const series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / x;
    return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series - shift;
  };
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const mean = (values) => sum(values) / values.length;
  const inner = (one, other) => one.reduce((total, value, place) => total + value * other[place], 0);
  const quantile = (values, share) => {
    const sorted = Float64Array.from(values).sort();
    return sorted[Math.round(share * (sorted.length - 1))];
  };
  const range = (start, end) => Array.from({ length: end - start + 1 }, (_, place) => start + place);

  // The projection of `vector` on the span of `columns`, which are made orthonormal in place.
  const projected = (columns, vector) => {
    const found = new Float64Array(vector.length);
    columns.forEach((column, place) => {
      for (let other = 0; other < place; other++) {
        const share = inner(column, columns[other]);
        for (let k = 0; k < column.length; k++) column[k] -= share * columns[other][k];
      }
      const length = Math.sqrt(inner(column, column));
      for (let k = 0; k < column.length; k++) column[k] /= length;
      const share = inner(column, vector);
      for (let k = 0; k < column.length; k++) found[k] += share * column[k];
    });
    return found;
  };

  // ---- Theorem 1 of generalization: T cells of [0, 1], an expert +1 or -1 in each, labels that are fair coins ----
  const DELTA = 0.05;
  const LIPSCHITZ = 0.5; // of the loss (1 - y f) / 2
  const SAMPLES = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000];
  const SHOWN_SAMPLES = [10, 32, 100, 316, 1000, 3162, 10000, 31623, 100000];
  let sums = new Int32Array(0);

  const cellsOf = (samples, ratio) => Math.max(1, Math.round(ratio * samples));

  const meanDistance = (steps) => {
    const half = Math.ceil(steps / 2); // E|S_n| = 2 Gamma(h + 1/2) / (sqrt(pi) Gamma(h)), h = ceil(n / 2)
    return (2 / Math.sqrt(Math.PI)) * Math.exp(logGamma(half + 0.5) - logGamma(half));
  };

  const theoremBound = (samples, cells, dimension) => {
    const inside = 2 * dimension * (1 + Math.log(cells)) + dimension * Math.log(2 * samples) + Math.log(4 / DELTA);
    return (4 * LIPSCHITZ * meanDistance(samples)) / samples + 2 * Math.sqrt(inside / (2 * samples));
  };

  // R_m of the class with its cells given: (T / m) E|S_n| over n ~ Binomial(m, 1 / T).
  const cellsComplexity = (samples, cells) => {
    if (cells === 1) return meanDistance(samples) / samples;
    const chance = 1 / cells;
    const reach = 12 * Math.sqrt(samples * chance) + 40;
    const last = Math.min(samples, Math.ceil(samples * chance + reach));
    let total = 0;
    for (let n = Math.max(1, Math.floor(samples * chance - reach)); n <= last; n++) {
      const ways = logGamma(samples + 1) - logGamma(n + 1) - logGamma(samples - n + 1);
      total += Math.exp(ways + n * Math.log(chance) + (samples - n) * Math.log1p(-chance)) * meanDistance(n);
    }
    return (cells / samples) * total;
  };

  const largestGap = (random, samples, cells) => {
    if (sums.length < cells) sums = new Int32Array(cells);
    sums.fill(0, 0, cells);
    let total = 0;
    for (let i = 0; i < samples; i++) {
      const cell = random.below(cells);
      const label = random.word() & 1 ? 1 : -1;
      total += sums[cell] * label >= 0 ? 1 : -1; // by how much |S_j| grows
      sums[cell] += label;
    }
    return total / (2 * samples);
  };

  const theorem1 = {
    defaults: { samples: 500, ratio: 10, granted: 1 },
    replicates: 100,
    replicate(seed, index, { samples, ratio }) {
      const random = generator(seed, index);
      const gap = largestGap(random, samples, cellsOf(samples, ratio));
      return { gap, gaps: SHOWN_SAMPLES.map((size) => largestGap(random, size, cellsOf(size, ratio))) };
    },
    printed: ({ samples, ratio, granted }) => ({ bound: theoremBound(samples, cellsOf(samples, ratio), granted) }),
    holds({ samples, ratio }) {
      const complexity = cellsComplexity(samples, cellsOf(samples, ratio));
      const bound = 2 * LIPSCHITZ * complexity + Math.sqrt(Math.log(2 / DELTA) / (2 * samples));
      return { bound, gap: complexity / 2 };
    },
  };

  // ---- Eq. (17) of continual: one expert, minimum-norm updates on Gaussian samples, N unit truths alike in c ----
  const FEATURES = 10;
  const ROUNDS = 60;

  const truthsOf = (tasks, cosine) =>
    range(1, tasks).map((place) => {
      const truth = new Float64Array(FEATURES);
      truth[0] = Math.sqrt(cosine);
      truth[place] = Math.sqrt(1 - cosine);
      return truth;
    });

  // r, Delta (over all pairs, equal ones too; W is 1), and the mean of r^tau over tau < t.
  const momentsOf = ({ tasks, cosine, columns, round }) => {
    const ratio = 1 - columns / FEATURES;
    const earlier = mean(range(1, round - 1).map((tau) => ratio ** tau));
    return { ratio, gap: (2 * (1 - cosine) * (tasks - 1)) / tasks, last: ratio ** round, earlier };
  };

  const equation17 = {
    defaults: { tasks: 2, cosine: 0, columns: 6, round: 60 },
    replicates: 400,
    replicate(seed, index, { tasks, cosine, columns, round }) {
      const random = generator(seed, index);
      const truths = truthsOf(tasks, cosine);
      const visits = new Float64Array(tasks);
      const expert = new Float64Array(FEATURES);
      const curve = new Float64Array(ROUNDS + 1); // F_t at t = 2, 3, ...
      const distance = (truth) => truth.reduce((total, value, k) => total + (value - expert[k]) ** 2, 0);
      let known = 0; // the errors right after each earlier round
      for (let t = 1; t <= ROUNDS; t++) {
        const task = random.below(tasks);
        const samples = Array.from({ length: columns }, () => Float64Array.from({ length: FEATURES }, random.normal));
        const move = projected(
          samples,
          truths[task].map((value, k) => value - expert[k]),
        ); // (5)
        for (let k = 0; k < FEATURES; k++) expert[k] += move[k];
        const errors = truths.map(distance);
        if (t > 1) curve[t] = (inner(visits, errors) - known) / (t - 1); // (15)
        visits[task] += 1;
        known += errors[task];
      }
      return { forgetting: curve[round], curve };
    },
    printed(settings) {
      const { gap, last, earlier } = momentsOf(settings);
      return { forgetting: (earlier - last) * (gap - 1) };
    },
    holds(settings) {
      const { ratio, gap, last, earlier } = momentsOf(settings);
      return { forgetting: last - earlier + (1 - ratio - last + ratio * earlier) * gap };
    },
  };

  // ---- Lemma 11 of continual: experts in sets, independently as its proof has them, and by Algorithm 1 ----
  const SCALE = 0.01; // sigma_0; eta, alpha, lambda and sigma_t are of the orders that Algorithm 1 asks for
  const RATE = Math.sqrt(SCALE);
  const PERTURBATION = SCALE ** 1.25;
  const NOISE = SCALE / 4;
  const COLUMNS = 6;
  const ALGORITHM_RUNS = 40; // the first of the replicates are also run by Algorithm 1

  const choose = (n, k) => range(1, k).reduce((ways, place) => (ways * (n - k + place)) / place, 1);

  // How many experts have each task as the one of their largest gate output (11), after ceil(M / eta) rounds.
  const exploredSets = (random, sets, experts) => {
    const gates = Array.from({ length: experts }, () => new Float64Array(FEATURES));
    const weights = Array.from({ length: experts }, () => new Float64Array(FEATURES));
    const visits = new Float64Array(experts);
    const outputs = new Float64Array(experts);
    const rounds = Math.ceil(experts / RATE - 1e-9);
    for (let time = 1; time <= rounds; time++) {
      const task = random.below(sets);
      const columns = Array.from({ length: COLUMNS }, (_, place) =>
        Float64Array.from({ length: FEATURES }, (_, k) => (place ? NOISE * random.normal() : Number(k === task))),
      );
      const total = Float64Array.from({ length: FEATURES }, (_, k) => sum(columns.map((column) => column[k])));
      let chosen = 0;
      let best = -Infinity;
      let largest = -Infinity;
      for (let m = 0; m < experts; m++) {
        let output = 0;
        for (let k = 0; k < FEATURES; k++) output += gates[m][k] * total[k];
        outputs[m] = output;
        largest = Math.max(largest, output);
        const perturbed = output + PERTURBATION * random.uniform(); // (1)
        if (perturbed > best) [best, chosen] = [perturbed, m];
      }
      const own = weights[chosen];
      const move = projected(
        columns,
        Float64Array.from(own, (value, k) => SCALE * Number(k === task) - value),
      ); // (5)
      for (let k = 0; k < FEATURES; k++) own[k] += move[k];
      visits[chosen] += 1;
      let normaliser = 0;
      for (let m = 0; m < experts; m++) normaliser += Math.exp(outputs[m] - largest);
      const softmax = (m) => Math.exp(outputs[m] - largest) / normaliser; // (2)
      // (6) and (7), with alpha = eta
      const cost = Math.sqrt(inner(move, move)) + (RATE * experts * visits[chosen]) / time ** 2;
      const step = RATE * cost * softmax(chosen);
      for (let m = 0; m < experts; m++) {
        const slope = step * (Number(m === chosen) - softmax(m));
        for (let k = 0; k < FEATURES; k++) gates[m][k] -= slope * total[k]; // (9)
      }
    }
    const sizes = new Array(sets).fill(0);
    for (const gate of gates)
      sizes[gate.slice(0, sets).reduce((at, value, k, all) => (value > all[at] ? k : at), 0)] += 1;
    return sizes;
  };

  const lemma11 = {
    defaults: { sets: 6, experts: 29 },
    replicates: 1000,
    replicate(seed, index, { sets, experts }) {
      const random = generator(seed, index);
      const sizes = new Array(sets).fill(0);
      const seen = new Set();
      let enough = 0; // experts until no set is empty
      for (let thrown = 1; thrown <= experts || !enough; thrown++) {
        const set = random.below(sets);
        if (thrown <= experts) sizes[set] += 1;
        if (!enough && seen.add(set).size === sets) enough = thrown;
      }
      const explored = index < ALGORITHM_RUNS ? exploredSets(generator(~seed, index), sets, experts) : null;
      return { covered: Number(enough <= experts), enough, sizes, explored };
    },
    printed: ({ sets, experts }) => ({
      product: (1 - (1 - 1 / sets) ** experts) ** sets,
      enough: Math.ceil(sets * Math.log(sets / DELTA)),
    }),
    holds: ({ sets, experts }) => ({
      union: 1 - sets * (1 - 1 / sets) ** experts,
      exact: sum(
        range(0, sets - 1).map((empty) => (-1) ** empty * choose(sets, empty) * (1 - empty / sets) ** experts),
      ),
    }),
  };

  // ---- solvable instances of continual: one sample, truths along signals that are a simplex's corners, alpha = 0 ----
  const SMALL = 1e-4; // sigma_0
  const SMALL_RATE = SMALL ** 0.5;
  const WATCHED = [10, 20, 50, 100, 200, 500, 1000, 2000];

  // With u for a corner's unit signal, models and gates are kept as their products with all signals, in units of sigma_0
  // and of eta sigma_0 / M.
  const cornersRun = (random, tasks, experts, rounds) => {
    const between = -1 / (tasks - 1); // u'u of two corners
    const models = Array.from({ length: experts }, () => new Float64Array(tasks));
    const gates = Array.from({ length: experts }, () => new Float64Array(tasks));
    const last = new Array(experts).fill(-1);
    const unit = (SMALL_RATE * SMALL) / experts;
    const own = []; // experts that prefer what they learned last, at the rounds that are watched
    for (let time = 1; time <= rounds; time++) {
      const task = random.below(tasks);
      const outputs = gates.map((gate) => unit * gate[task]);
      const scores = outputs.map((output) => output + SMALL ** 1.25 * random.uniform()); // (1)
      const chosen = scores.indexOf(Math.max(...scores));
      const weights = outputs.map(Math.exp);
      const total = sum(weights); // (2)
      const move = 1 - models[chosen][task]; // (5)
      last[chosen] = task;
      for (let k = 0; k < tasks; k++) {
        const shown = move * (k === task ? 1 : between);
        models[chosen][k] += shown;
        const slope = (experts * weights[chosen]) / total; // (6), (9)
        for (let m = 0; m < experts; m++) gates[m][k] -= slope * (Number(m === chosen) - weights[m] / total) * shown;
      }
      if (WATCHED.includes(time)) {
        own.push(mean(gates.map((gate, m) => Number(last[m] >= 0 && gate[last[m]] === Math.max(...gate)))));
      }
    }
    return { models, gates, own };
  };

  const gates = {
    defaults: { tasks: 3, experts: 10, round: 2000 },
    replicates: 60,
    replicate(seed, index, { tasks, experts, round }) {
      const random = generator(seed, index);
      const { models, gates, own } = cornersRun(random, tasks, experts, round);
      const middle = range(0, tasks - 1).map((k) => mean(models.map((model) => model[k])));
      const points = models.flatMap((model, m) => middle.map((value, k) => [model[k] - value, gates[m][k]]));
      const left = Math.max(...points.map(([x, y]) => Math.abs(x + y)));
      const move = 1 - models[0][random.below(tasks)]; // of the first expert, at the next task
      return { own: own[own.length - 1], move, left, curve: own, points };
    },
    printed: () => ({ own: 1 }),
    // The remainder's bound in units of eta sigma_0 / M, with the reach A = N sigma_0.
    holds: ({ tasks, experts, round }) => ({
      remainder: (8 * tasks ** 2 * SMALL * SMALL_RATE * round) / experts,
      move: 1,
    }),
  };

  // ---- a baseline in the locality loss: orthonormal signals, experts that learn at once, no noise, alpha = 0, no end ----
  const OWN_SHARE = 0.7; // of an expert's own last move in the baseline
  const THREE = 3; // tasks
  const WINDOWS = [30, 100, 300, 1000, 3000, 10000]; // ends of those that shares are counted in

  // Outputs are kept in units of sigma_0; so are moves. With a baseline, or as printed.
  const settlingRun = (random, experts, truths, isCompared) => {
    const outputs = Array.from({ length: experts }, () => new Float64Array(THREE));
    const last = new Array(experts).fill(-1);
    const [moves, weights] = [new Float64Array(experts), new Float64Array(experts)]; // the last move of each, exp of outputs
    const [rate, lambda] = [SMALL_RATE, SMALL ** 0.25];
    const origin = new Float64Array(truths[0].length);
    let [average, settled, own, from] = [0, 0, 0, 0];
    const shares = [];
    const isSettled = () => {
      for (let task = 0; task < THREE; task++) {
        let highest = -Infinity;
        for (const each of outputs) highest = Math.max(highest, each[task]);
        for (let m = 0; m < experts; m++) if (outputs[m][task] >= highest - lambda && last[m] !== task) return false;
      }
      return true;
    };
    for (let time = 1; time <= WINDOWS[WINDOWS.length - 1]; time++) {
      const task = random.below(THREE);
      let [chosen, best] = [0, -Infinity];
      for (let m = 0; m < experts; m++) {
        const score = outputs[m][task] + lambda * random.uniform(); // (1)
        if (score > best) [chosen, best] = [m, score];
      }
      const model = last[chosen] < 0 ? origin : truths[last[chosen]];
      let square = 0;
      for (let k = 0; k < origin.length; k++) square += (truths[task][k] - model[k]) ** 2;
      const move = Math.sqrt(square);
      const cost = isCompared ? move - OWN_SHARE * moves[chosen] - (1 - OWN_SHARE) * average : move;
      let total = 0;
      for (let m = 0; m < experts; m++) total += weights[m] = Math.exp(SMALL * outputs[m][task]);
      const slope = (rate * cost * weights[chosen]) / total; // (2), (6)
      for (let m = 0; m < experts; m++) outputs[m][task] -= slope * (Number(m === chosen) - weights[m] / total); // (9)
      own += Number(last[chosen] === task);
      [last[chosen], moves[chosen]] = [task, move];
      average += (move - average) / time;
      if (settled === 0 && isSettled()) settled = time;
      if (WINDOWS.includes(time)) {
        shares.push(own / (time - from));
        [own, from] = [0, time];
      }
    }
    return { shares, settled };
  };

  const settling = {
    defaults: { experts: 6 },
    replicates: 40,
    replicate(seed, index, { experts }) {
      const random = generator(seed, index);
      const truths = range(1, THREE).map(() => Float64Array.from({ length: 7 }, () => random.normal()));
      const [own, printed] = [true, false].map((isCompared) =>
        settlingRun(generator(seed, index + 2 ** 20), experts, truths, isCompared));
      const curve = [own.shares, printed.shares];
      return { settled: own.settled, printed: printed.settled, own: own.shares[5], ownPrinted: printed.shares[5], curve };
    },
    printed: () => ({ enough: THREE * Math.log(THREE) }),
    holds: () => ({ needed: THREE }),
  };

  // ---- the tree of merging: boxes of [0, 1]^3, halved, and the simplex of three experts' weights ----
  const EXPERTS = 3;
  const ALONE = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]; // the simplex's corners
  const DESCENT = 14;

  const isFeasible = ({ lower, upper }) => sum(lower) <= 1 && sum(upper) >= 1;
  // The longest side of what a box has of the simplex, which is its diameter in the sup norm.
  const longestPart = ({ lower, upper }) => {
    const below = sum(lower);
    const above = sum(upper);
    const sides = lower.map((low, k) => {
      const least = Math.max(low, 1 - (above - upper[k]));
      return Math.max(Math.min(upper[k], 1 - (below - low)) - least, 0);
    });
    return Math.max(...sides);
  };
  // A box's halves; its path from the root is a number, whose digits are 0 or 1 by the half that was taken.
  const halves = ({ lower, upper, depth, path }, dimension) => {
    const middle = (lower[dimension] + upper[dimension]) / 2;
    const cut = (corner) => corner.map((value, k) => (k === dimension ? middle : value));
    return [
      { lower, upper: cut(upper), depth: depth + 1, path: 2 * path },
      { lower: cut(lower), upper, depth: depth + 1, path: 2 * path + 1 },
    ];
  };

  const tree = {
    defaults: { depth: 6, split: "random", ratio: 0.7, smoothness: 1 },
    replicates: 1000,
    // Widths of the leaf around weights that are uniform on the simplex, depth by depth. The first has a tree too.
    replicate(seed, index, { depth, split }) {
      const random = generator(seed, index);
      const pick = (at) => (split === "cyclic" ? at % EXPERTS : random.below(EXPERTS));
      const root = { lower: [0, 0, 0], upper: [1, 1, 1], depth: 0, path: 0 };
      const lengths = root.lower.map(() => -Math.log(random.uniform()));
      const weights = lengths.map((length) => length / sum(lengths));
      let around = root;
      const widths = range(0, DESCENT).map((at) => {
        const width = longestPart(around);
        const dimension = pick(at);
        const [low, high] = halves(around, dimension);
        around = weights[dimension] < low.upper[dimension] ? low : high;
        return width;
      });
      if (index > 0) return { width: widths[depth], widths };
      let active = [root];
      const missed = [];
      for (let at = 0; at < depth; at++) {
        const made = active.flatMap((box) => halves(box, pick(at)));
        missed.push(...made.filter((box) => !isFeasible(box)));
        active = made.filter(isFeasible);
      }
      return { width: widths[depth], widths, active, missed };
    },
    printed: ({ depth, ratio, smoothness }) => ({ diameter: smoothness * ratio ** depth, leaves: 2 ** depth }),
    holds: ({ depth, ratio }) => ({
      diameter: 2 ** -Math.floor(depth / EXPERTS),
      leaves: cyclicLeaves(depth),
      smoothness: ratio < 2 ** (-1 / EXPERTS) ? Infinity : ratio ** (1 - EXPERTS),
      ratio: 2 ** (-1 / EXPERTS),
      ratioOnSimplex: 2 ** (-1 / (EXPERTS - 1)),
    }),
  };

  // How many boxes at depth h of cyclic halving meet the simplex: by the sums of their beginnings, in whole units.
  const cyclicLeaves = (depth) => {
    const extra = depth % EXPERTS;
    const side = 2 ** (Math.floor(depth / EXPERTS) + 1);
    let counts = [1, ...new Array(side).fill(0)];
    for (let k = 0; k < EXPERTS; k++) {
      const step = k < extra ? 1 : 2;
      const longer = new Array(side + 1).fill(0);
      for (let begin = 0; begin < side; begin += step) {
        for (let place = 0; place + begin <= side; place++) longer[place + begin] += counts[place];
      }
      counts = longer;
    }
    return sum(counts.slice(Math.max(0, side - extra - 2 * (EXPERTS - extra))));
  };

  // ---- regimes: means of recorded runs on a grid, which the page has beside the experiment ----
  const CLUSTERS = 3;
  const REGIMES = { experts: [2, 4, 6, 12, 20], ratios: [0.03, 0.1, 0.3, 1, 3, 10] };
  const DRIVES = [0.03, 0.065, 0.139, 0.3, 0.646, 1.392, 3, 6.463, 13.925, 30]; // kappa
  let parsed; // once
  const grid = () => (parsed ??= JSON.parse(document.getElementById("live-regimes").textContent));
  const rowOf = ({ experts, ratio, gates }, name) =>
    grid()[gates][name][REGIMES.experts.indexOf(experts)][REGIMES.ratios.indexOf(ratio)];

  const regimes = {
    defaults: { experts: 12, drive: 0.3, ratio: 10, gates: "without" },
    replicates: 1, // what is looked up is always the same
    isRecorded: true,
    replicate(seed, index, settings) {
      const at = (name) => rowOf(settings, name)[DRIVES.indexOf(settings.drive)];
      return { own: at("own"), error: at("error"), ownError: at("own_error"), errorError: at("error_error") };
    },
    printed: () => ({ own: 1 }),
    holds: (settings) => ({ critical: rowOf(settings, "critical") }),
  };

  const experiments = { "theorem-1": theorem1, "equation-17": equation17, "lemma-11": lemma11, gates, settling, regimes, tree };
  for (const each of Object.values(experiments)) {
    each.simulate = (seed, settings, count = each.replicates) =>
      range(0, count - 1).map((index) => each.replicate(seed, index, settings));
  }

  // ---- words and numbers ----
  const number = (value, digits = 3) => {
    if (Math.abs(value) < 5e-5) return "0";
    const isWhole = Math.abs(value) >= 1000 || Number.isInteger(value);
    return (isWhole ? Math.round(value).toLocaleString("en") : value.toPrecision(digits)).replace("-", "−");
  };
  const little = (value) => (value < 5e-5 ? "less than 0.0001" : number(value, 2));
  const short = (value) => String(Number(value.toPrecision(6))).replace("-", "−");
  const percent = (share) => `${short(Number((100 * share).toFixed(1)))} %`;
  const chance = (share) => (share < 1 && share > 0.99995 ? "over 99.99 %" : `${(100 * share).toFixed(2)} %`);
  const counted = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;
  const standardError = (values) => {
    const middle = mean(values);
    return Math.sqrt(mean(values.map((value) => (value - middle) ** 2)) / values.length);
  };

  // ---- drawing ----
  const node = (space) => (tag, attributes, ...children) => {
    const made = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const svg = node("http://www.w3.org/2000/svg");
  const html = node("http://www.w3.org/1999/xhtml");
  const picture = (width, height, words, ...children) =>
    svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": words }, ...children);
  const text = (kind, x, y, anchor, words) => svg("text", { class: kind, x, y, "text-anchor": anchor }, words);

  // An axis from its first tick to its last, unless `more` says otherwise.
  const linear = (label, ticks, more) =>
    ({ label, ticks, low: ticks[0], high: ticks[ticks.length - 1], at: (value) => value, show: short, ...more });
  const logarithmic = (label, ticks, more) =>
    linear(label, ticks, { at: (value) => Math.log(Math.max(value, 1e-9)), ...more });
  const scale = ({ low, high, at }, start, end) => (value) =>
    start + ((at(value) - at(low)) / (at(high) - at(low))) * (end - start);

  // A layer is given the two scales and the frame's size, and gives nodes.
  const chart = (width, height, words, x, y, layers) => {
    const [left, right, top, bottom] = [42, width - 12, 30, height - 38];
    const [across, up] = [scale(x, 0, right - left), scale(y, bottom - top, 0)];
    const axes = svg("g", { class: "axes" });
    for (const tick of y.ticks) {
      const at = top + up(tick);
      axes.append(svg("line", { x1: left, x2: right, y1: at, y2: at }));
      axes.append(text("", left - 7, at + 4, "end", y.show(tick)));
    }
    for (const tick of x.ticks) {
      const at = left + across(tick);
      axes.append(svg("line", { class: "tick", x1: at, x2: at, y1: bottom, y2: bottom + 4 }));
      axes.append(text("", at, bottom + 17, "middle", x.show(tick)));
    }
    axes.append(svg("line", { class: "base", x1: left, x2: right, y1: bottom, y2: bottom }));
    axes.append(text("title", 0, 12, "start", y.label), text("title", right, height - 3, "end", x.label));
    const inside = svg("svg", { x: left, y: top, width: right - left, height: bottom - top, class: "plot" });
    const above = svg("g", { transform: `translate(${left} ${top})` }); // dots and words may reach over the edge
    for (const each of layers.flatMap((layer) => layer(across, up, right - left, bottom - top))) {
      (each.matches(".dot, .note") ? above : inside).append(each);
    }
    return picture(width, height, words, axes, inside, above);
  };
  const path = (points) => points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
  const line = (role, places, value) => (across, up) =>
    [svg("path", { class: `line ${role}`, d: `M${path(places.map((x, place) => [across(x), up(value(x, place))]))}` })];
  // The middle 80 % of what was measured at each place.
  const band = (places, columns) => (across, up) => {
    const edge = (share) => places.map((x, place) => [across(x), up(quantile(columns[place], share))]);
    return [svg("path", { class: "band", d: `M${path([...edge(0.1), ...edge(0.9).reverse()])}Z` })];
  };
  const dot = (role, x, y) => (across, up, width, height) => {
    const isInside = up(y) >= -1 && up(y) <= height + 1;
    return isInside ? [svg("circle", { class: `dot ${role}`, cx: across(x), cy: up(y), r: 4.5 })] : [];
  };
  const level = (y) => (across, up, width) =>
    [svg("line", { class: "line even", x1: 0, x2: width, y1: up(y), y2: up(y) })];
  const rule = (x) => (across, up, width, height) =>
    [svg("line", { class: "rule", x1: across(x), x2: across(x), y1: 0, y2: height })];
  const note = (x, y, words, anchor, role = "") => (across, up) =>
    [text(`note ${role}`, across(x) + (anchor === "end" ? -8 : 8), up(y) + 4, anchor, words)];

  // Widths of two pictures: side by side, or below each other where there is no room.
  const GAP = 16;
  const pair = (width, share) => {
    const first = Math.round(share * width);
    return width > 620 ? [first, width - first - GAP] : [width, width];
  };
  const powerOfTen = (value) => {
    if (value >= 0.001 && value < 1000) return short(value);
    const power = Math.round(Math.log10(value));
    return `10${power < 0 ? "⁻" : ""}${"⁰¹²³⁴⁵⁶"[Math.abs(power)]}`;
  };

  // ---- what a reader may set of each experiment, and how it is told and drawn ----
  const listed = (label, values, show = short) => ({ label, values, show });
  const chosen = (label, choices) => ({ label, choices });
  const parts = (first, last, ofOne) => range(first, last).map((part) => part / ofOne);

  const pictures = {
    "theorem-1": {
      controls: {
        samples: listed("samples m", SAMPLES, number),
        ratio: listed("experts per sample T/m", [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]),
        granted: chosen("d_N granted to the fixed router", { 1: "1, more than it has", 0: "0, what it has" }),
      },
      tiles({ results, printed, holds }) {
        const gap = mean(results.map((each) => each.gap));
        const exceeded = mean(results.map((each) => Number(each.gap > printed.bound)));
        const about = holds.bound < 0.5 ? "twice the mean gap, and a term for chance" : "above 1/2, as no gap is here";
        return {
          measured: ["largest gap", number(gap), `exactly ${number(holds.gap)} on average`],
          printed: ["bound of Theorem 1", number(printed.bound), `exceeded in ${percent(exceeded)} of samples`],
          holds: ["bound that holds", number(holds.bound), about],
        };
      },
      says({ settings: { samples, ratio }, results, printed }) {
        const gap = mean(results.map((each) => each.gap));
        const exceeded = mean(results.map((each) => Number(each.gap > printed.bound)));
        return (
          `With m = ${number(samples)} and T = ${number(cellsOf(samples, ratio))} the bound with the proof's ` +
          `constants ${exceeded > DELTA ? "fails" : "holds"}: ${percent(exceeded)} of samples exceed it where ` +
          `${percent(DELTA)} may. The gap is ${number(gap / printed.bound)} times the bound. A constant in the O( ) ` +
          "would have to be at least that, and no constant is large enough for every m."
        );
      },
      draw({ settings: { samples, ratio, granted }, results, printed }, width) {
        const [first, second] = pair(width, 0.58);
        const fine = range(0, 80).map((step) => 10 ** (1 + step / 20));
        const columns = SHOWN_SAMPLES.map((_, place) => results.map(({ gaps }) => gaps[place]));
        const bound = (size) => theoremBound(size, cellsOf(size, ratio), granted);
        const right = (size) => theorem1.holds({ samples: size, ratio }).bound;
        const gap = mean(results.map((each) => each.gap));
        const x = logarithmic("samples m", [10, 100, 1000, 1e4, 1e5], { show: powerOfTen });
        const y = logarithmic("gap between empirical and true risk", [0.01, 0.03, 0.1, 0.3, 1, 3]);
        const share = logarithmic("gap / printed bound", [0.1, 0.3, 1, 3, 10, 30]);
        return [
          chart(first, 300, "The largest gap and both bounds by the number of samples", x, y, [
            rule(samples),
            band(SHOWN_SAMPLES, columns),
            line("holds", SHOWN_SAMPLES, right),
            line("printed", fine, bound),
            line("measured", SHOWN_SAMPLES, (_, place) => mean(columns[place])),
            dot("measured", samples, gap),
            dot("printed", samples, printed.bound),
          ]),
          chart(second, 300, "The gap divided by the printed bound, by the number of samples", x, share, [
            rule(samples),
            level(1),
            note(1e5, 0.72, "gap = bound", "end"),
            line("measured", SHOWN_SAMPLES, (size, place) => mean(columns[place]) / bound(size)),
            dot("measured", samples, gap / printed.bound),
          ]),
        ];
      },
    },

    "equation-17": {
      controls: {
        tasks: listed("tasks N", range(1, 8)),
        cosine: listed("cosine between two truths", parts(0, 9, 10)),
        columns: listed("samples s, of d = 10", range(1, 9)),
        round: listed("round t", range(2, ROUNDS)),
      },
      tiles({ settings, results, printed, holds }) {
        const found = results.map(({ forgetting }) => forgetting);
        const { ratio, gap } = momentsOf(settings);
        const limit = number((1 - ratio) * gap);
        const spread = `± ${number(2 * standardError(found), 2)}, of ${counted(found.length, "expert", "experts")}`;
        return {
          measured: ["mean forgetting", number(mean(found)), spread],
          printed: ["Eq. (17)", number(printed.forgetting), "tends to 0 as t grows"],
          holds: ["with distance 0 to itself", number(holds.forgetting), `tends to (s/d) Δ = ${limit}`],
        };
      },
      says({ settings, results, printed, holds }) {
        const found = number(mean(results.map(({ forgetting }) => forgetting)));
        const start = settings.tasks === 1
          ? "With one task Δ is 0, and the two formulas agree"
          : `Here W = 1 and Δ = ${number(momentsOf(settings).gap)}`;
        return (
          `${start}: after ${settings.round} rounds simulated experts forget ${found}, ` +
          `(17) says ${number(printed.forgetting)}, and the formula with distance 0 says ${number(holds.forgetting)}.`
        );
      },
      draw({ settings, results, printed, holds }, width) {
        const rounds = range(2, ROUNDS);
        const columns = rounds.map((round) => results.map(({ curve }) => curve[round]));
        const of = (which) => (round) => equation17[which]({ ...settings, round }).forgetting;
        const seen = [...rounds.map(of("printed")), ...rounds.map(of("holds")), -0.01, 0.01];
        for (const share of [0.1, 0.9]) seen.push(...columns.map((column) => quantile(column, share)));
        const [low, high] = [Math.min(...seen), Math.max(...seen)];
        const step = [0.1, 0.2, 0.25, 0.5].find((each) => (high - low) / each <= 7) ?? 1;
        const ticks = range(Math.floor(low / step), Math.ceil(high / step)).map((place) => place * step);
        const x = linear("round t", [2, 10, 20, 30, 40, 50, 60]);
        return [
          chart(width, 310, "Mean forgetting of one expert, round by round", x, linear("forgetting Fₜ", ticks), [
            rule(settings.round),
            band(rounds, columns),
            level(0),
            line("measured", rounds, (_, place) => mean(columns[place])),
            line("holds", rounds, of("holds")),
            line("printed", rounds, of("printed")),
            dot("measured", settings.round, mean(results.map(({ forgetting }) => forgetting))),
            dot("printed", settings.round, printed.forgetting),
            dot("holds", settings.round, holds.forgetting),
          ]),
        ];
      },
    },

    "lemma-11": {
      controls: { sets: listed("tasks N", range(2, 8)), experts: listed("experts M", range(2, 120)) },
      tiles({ settings: { experts }, results, printed, holds }) {
        const explored = results.flatMap((each) => (each.explored ? [each.explored] : []));
        const covered = explored.filter((sizes) => Math.min(...sizes) > 0).length;
        const alone = `independent experts: ${percent(mean(results.map((each) => each.covered)))} of runs`;
        const promise = experts < printed.enough
          ? `promises ${percent(1 - DELTA)} from M = ${printed.enough} on`
          : `M ≥ ${printed.enough}: promised are ${percent(1 - DELTA)}`;
        const union = `at least ${chance(Math.max(holds.union, 0))} by the union bound; for Algorithm 1 none is known`;
        return {
          measured: ["runs of Algorithm 1 that cover every task", `${covered} of ${explored.length}`, alone],
          printed: ["product in the proof", chance(printed.product), promise],
          holds: ["if experts were independent", chance(holds.exact), union],
        };
      },
      says({ settings: { sets, experts }, results, printed, holds }) {
        const explored = results.flatMap((each) => (each.explored ? [each.explored] : []));
        const empty = number(mean(explored.map((sizes) => sizes.filter((size) => size === 0).length)), 2);
        const shared = Math.round((100 * mean(explored.map((sizes) => Math.max(...sizes)))) / experts);
        const order = printed.product > holds.exact + 1e-12
          ? ` The product, ${chance(printed.product)}, is above the probability that it is to bound from below.`
          : "";
        return (
          `In Algorithm 1, ${empty} of ${sets} tasks are left without an expert on average, ` +
          `and ${shared} % of the ${experts} experts share one task.${order}`
        );
      },
      draw({ settings: { sets, experts }, results, printed }, width) {
        const [first, second] = pair(width, 0.56);
        const last = Math.max(experts, Math.ceil(1.6 * printed.enough), 12);
        const numbers = range(1, last);
        const needed = Float64Array.from(results, ({ enough }) => enough);
        const reached = (count) => mean(needed.map((enough) => Number(enough <= count)));
        const explored = results.flatMap((each) => (each.explored ? [each.explored] : []));
        const covered = mean(explored.map((sizes) => Number(Math.min(...sizes) > 0)));
        const step = [2, 5, 10, 20].find((each) => last / each <= 8);
        const ticks = range(1, Math.floor(last / step)).map((place) => place * step);
        const x = linear("experts M", ticks, { low: 1, high: last });
        const show = (value) => `${Math.round(100 * value)} %`;
        const y = linear("chance that every task has an expert", parts(0, 5, 5), { low: -0.02, high: 1.03, show });
        const side = experts > last / 2 ? "end" : "start";
        return [
          chart(first, 300, "The chance that every task has an expert, by the number of experts", x, y, [
            rule(experts),
            line("measured", numbers, reached),
            line("holds", numbers, (count) => Math.max(lemma11.holds({ sets, experts: count }).union, -1)),
            line("printed", numbers, (count) => lemma11.printed({ sets, experts: count }).product),
            dot("measured ring", experts, covered),
            note(experts, Math.min(covered, 0.9) + 0.06, "Algorithm 1", side, "measured"),
          ]),
          bins(second, 300, results[0]),
        ];
      },
    },

    gates: {
      controls: {
        tasks: listed("tasks N", range(2, 5), (count) => (count === 2 ? "2, opposite" : short(count))),
        experts: listed("experts M", [2, 3, 5, 10, 20, 40]),
        round: listed("round t", WATCHED, number),
      },
      tiles({ settings: { round, experts }, results, printed, holds }) {
        const own = mean(results.map((each) => each.own));
        const left = Math.max(...results.map((each) => each.left));
        const phase = round * SMALL_RATE > experts ? "after" : "before";
        return {
          measured: ["experts that prefer what they learned last", percent(own), `in ${counted(results.length, "run", "runs")}`],
          printed: ["experts of a task that have learned it last", percent(printed.own), `asked for after T₁; this is ${phase} it`],
          holds: ["gates and minus the models differ by at most", number(holds.remainder, 2), `${little(left)} was found`],
        };
      },
      says({ settings: { tasks, experts, round }, results, holds }) {
        const own = percent(mean(results.map((each) => each.own)));
        const move = number(mean(results.map((each) => each.move)));
        return (
          `After ${number(round)} rounds with N = ${tasks} and M = ${experts}, gates are minus the models up to ` +
          `${little(Math.max(...results.map((each) => each.left)))} (proved: ${number(holds.remainder, 2)}), and ${own} of ` +
          `experts prefer the task that they learned last. The next task moves an expert by ${move} σ₀ on average here; the ` +
          "exact mean is σ₀, whatever was learned."
        );
      },
      draw({ settings: { tasks, round }, results, printed }, width) {
        const [first, second] = pair(width, 0.5);
        const ticks = range(-tasks, tasks);
        const across = linear("model along a signal, less the mean, over σ₀", ticks);
        const up = linear("gate along the signal, over ησ₀/M", ticks);
        const watched = WATCHED.filter((time) => time <= round);
        const columns = watched.map((_, place) => results.map(({ curve }) => curve[place]));
        const x = logarithmic("round t", [10, 100, 1000, 2000], { show: number });
        const show = (value) => `${Math.round(100 * value)} %`;
        const y = linear("experts that prefer what they learned last", parts(0, 5, 5), { low: -0.02, high: 1.03, show });
        return [
          chart(first, 300, "Gates against models of one run: they lie on the line through 0 of slope −1", across, up, [
            line("holds", [-tasks, tasks], (value) => -value),
            ...results[0].points.map(([at, height]) => dot("measured", at, height)),
          ]),
          chart(second, 300, "The share of experts that prefer what they learned last, by the round", x, y, [
            rule(round),
            line("printed", [10, 2000], () => printed.own),
            line("measured", watched, (_, place) => mean(columns[place])),
            dot("measured", round, mean(columns[columns.length - 1])),
          ]),
        ];
      },
    },

    settling: {
      controls: { experts: listed("experts M", [2, 3, 4, 6, 8, 12]) },
      tiles({ settings: { experts }, results, printed, holds }) {
        const of = (key) => percent(mean(results.map((each) => each[key])));
        const done = results.filter(({ settled }) => settled > 0);
        const enough = experts >= holds.needed ? "M ≥ N: a settled state stays" : "M < N: no state is settled";
        return {
          measured: ["own arrivals against the baseline", of("own"), `${done.length} of ${results.length} runs settled`],
          printed: ["own arrivals as printed", of("ownPrinted"), `asked for: M above N ln N = ${number(printed.enough, 2)}`],
          holds: ["experts that are needed", number(holds.needed), enough],
        };
      },
      says({ settings: { experts }, results }) {
        const done = results.flatMap(({ settled }) => (settled > 0 ? [settled] : []));
        const when = done.length
          ? `${done.length} of ${results.length} runs settle, half of them within ${number(quantile(done, 0.5))} rounds; ` +
            "from then on no model moves"
          : "no run settles, as some expert has two tasks";
        const printed = percent(mean(results.map((each) => each.ownPrinted)));
        return (
          `With three tasks and M = ${experts}, ${when}. As printed, ${printed} of the last arrivals meet an expert that had ` +
          `their task last, where ${percent(1 / THREE)} would by chance.`
        );
      },
      draw({ results }, width) {
        const middles = WINDOWS.map((end, place) => Math.sqrt(end * (WINDOWS[place - 1] ?? 10)));
        const columns = [0, 1].map((which) => middles.map((_, place) => results.map(({ curve }) => curve[which][place])));
        const x = logarithmic("round t", [10, 100, 1000, 10000], { show: number });
        const show = (value) => `${Math.round(100 * value)} %`;
        const y = linear("arrivals whose expert had the same task last", parts(0, 5, 5), { low: -0.02, high: 1.03, show });
        return [
          chart(width, 310, "The share of arrivals whose expert had the same task last, as rounds pass", x, y, [
            level(1 / THREE),
            note(10000, 1 / THREE + 0.04, "by chance", "end"),
            band(middles, columns[0]),
            line("printed", middles, (_, place) => mean(columns[1][place])),
            line("measured", middles, (_, place) => mean(columns[0][place])),
          ]),
        ];
      },
    },

    regimes: {
      controls: {
        experts: listed("experts M", REGIMES.experts),
        drive: listed("gate drive κ", DRIVES, (value) => short(Number(value.toPrecision(2)))),
        ratio: listed("drive over perturbation κ/λ", REGIMES.ratios, short),
        gates: chosen("the gates", { without: "learn for ever", with: "are fixed after T₁, as printed" }),
      },
      tiles({ results: [{ own, ownError, error }], holds: { critical } }) {
        const spread = `± ${percent(1.96 * ownError)}; the error is ${number(error)} Δ`;
        return {
          measured: ["arrivals at an expert of their kind", percent(own), spread],
          printed: ["Proposition 1, as σ₀ → 0", "1 − o(1)", "experts keep to what they specialise in"],
          holds: ["critical gate drive", critical === null ? "none" : number(critical, 2), "above it a leader that has paid still leads"],
        };
      },
      says({ settings: { experts, drive, ratio, gates }, results: [{ own }], holds: { critical } }) {
        const side = critical === null || drive < critical ? "below" : "above";
        const frozen = gates === "with" && side === "below" && ratio >= 1;
        return (
          `With M = ${experts} and κ = ${short(Number(drive.toPrecision(2)))}, ${side} the critical drive, ${percent(own)} of ` +
          `arrivals meet an expert that had their kind of task last, where ${percent(1 / CLUSTERS)} would by chance. ` +
          (frozen
            ? "Here it is the freezing that holds a task to an expert: gates that go on learning take it away again."
            : "In Algorithm 1's orders κ goes to 0 with σ₀, and κ/λ like its fourth root.")
        );
      },
      draw({ settings, results: [found], holds: { critical } }, width) {
        const [first, second] = pair(width, 0.5);
        const x = logarithmic("κ", [0.03, 0.1, 0.3, 1, 3, 10, 30], { show: short });
        const panel = (size, key, label, marks, even, words, more) =>
          chart(size, 300, words, x, linear(label, marks, more), [
            ...(critical === null ? [] : [rule(critical)]),
            level(even),
            note(30, even + 0.04, "two random tasks", "end"),
            line("measured", DRIVES, (_, place) => rowOf(settings, key)[place]),
            dot("measured", settings.drive, found[key]),
          ]);
        const show = (value) => `${Math.round(100 * value)} %`;
        return [
          panel(first, "own", "arrivals at an expert of their kind", parts(0, 5, 5), 1 / CLUSTERS,
            "The share of arrivals at an expert of their kind, by the gate drive", { show }),
          panel(second, "error", "generalization error / Δ", parts(0, 7, 5), 1,
            "The generalization error over the gap between tasks, by the gate drive"),
        ];
      },
    },

    tree: {
      controls: {
        depth: listed("depth h", range(0, 10)),
        split: chosen("the side that is halved", { random: "random, as in the paper", cyclic: "one after another" }),
        ratio: listed("ρ", parts(30, 95, 100)),
        smoothness: listed("ν₁", parts(20, 40, 20)),
      },
      tiles({ results, printed, holds }) {
        const { active } = results[0];
        const widths = active.map(longestPart);
        const wide = widths.filter((width) => beyond(width, printed.diameter)).length;
        const leaves = `${wide} of ${counted(active.length, "leaf is", "leaves are")} wider than printed`;
        const boxes = `exactly, of all boxes; ${holds.leaves} of ${number(printed.leaves)} meet the simplex then`;
        return {
          measured: ["widest leaf, within the simplex", number(Math.max(...widths)), leaves],
          printed: ["Assumption 1: ν₁ρʰ", number(printed.diameter), "asked of every node of depth h"],
          holds: ["longest side, halved in turn", number(holds.diameter), boxes],
        };
      },
      says({ settings: { depth, ratio }, results, printed, holds }) {
        const { active, missed } = results[0];
        const wide = active.filter((leaf) => beyond(longestPart(leaf), printed.diameter)).length;
        const never = "no ν₁ and no way of halving boxes keeps";
        const least = `boxes halved in turn are within ν₁ρʰ at every depth if ν₁ ≥ ${number(holds.smoothness)}`;
        const about =
          ratio < holds.ratioOnSimplex
            ? `ρ < 1/√2 ≈ 0.707, ${never} even their parts of the simplex within ν₁ρʰ at every depth`
            : ratio < holds.ratio
              ? `ρ < 1/∛2 ≈ 0.794, ${never} the boxes themselves within ν₁ρʰ at every depth`
              : `ρ ≥ 1/∛2 ≈ 0.794, ${least}`;
        return (
          `At depth ${depth}, ${counted(active.length, "box meets", "boxes meet")} the simplex, and ${wide} of these ` +
          `parts of it are wider than ν₁ρʰ = ${number(printed.diameter)} in the sup norm. ` +
          `${counted(missed.length, "box", "boxes")} on the way missed it and had no weights to offer. As ${about}.`
        );
      },
      draw(state, width) {
        const { settings: { depth, ratio, smoothness }, results, printed } = state;
        const [first, second] = pair(width, 0.5);
        const depths = range(0, DESCENT);
        const columns = depths.map((at) => results.map(({ widths }) => widths[at]));
        const corners = depths.flatMap((at) => (at % EXPERTS || !at ? [at] : [at - 1e-9, at])); // of the steps
        const x = linear("depth h", parts(0, DESCENT / 2, 0.5));
        const y = logarithmic("width of the leaf around random weights", [0.01, 0.03, 0.1, 0.3, 1], { high: 2.1 });
        const height = width > first ? Math.round(0.86 * first) + 34 : 260;
        return [
          simplex(first, state),
          chart(second, height, "The width of the leaf around random weights, by its depth", x, y, [
            rule(depth),
            band(depths, columns),
            line("holds", corners, (at) => tree.holds({ depth: Math.floor(at) }).diameter),
            line("measured", depths, (_, place) => mean(columns[place])),
            line("printed", depths, (at) => smoothness * ratio ** at),
            dot("printed", depth, printed.diameter),
            dot("measured ring", depth, Math.max(...results[0].active.map(longestPart))),
          ]),
          icicle(width, state),
          key({
            "within ν₁ρʰ": leaf(0),
            wider: leaf(0.4),
            "8 times as wide": leaf(1),
            "was split": { class: "inner" },
            "misses the simplex": { class: "missed" },
          }),
        ];
      },
    },
  };

  // One run each, a dot an expert: independent experts in sets, and those of Algorithm 1.
  const bins = (width, height, { sizes, explored }) => {
    const words = `Independent: ${sizes.join(", ")}. Algorithm 1: ${explored.join(", ")}.`;
    const made = picture(width, height, `Experts of each task in one run. ${words}`);
    const cell = width / sizes.length;
    const inner = cell - 10;
    const levels = (counts, columns) => Math.ceil(Math.max(...counts) / columns);
    let columns = 1;
    let size = 12; // of a dot
    const isHigh = () => (levels(sizes, columns) + levels(explored, columns)) * size > height - 96;
    for (; isHigh(); columns++) size = Math.min(inner / (columns + 1), 12);
    let base = 0;
    for (const [title, counts] of [["independent experts, one run", sizes], ["Algorithm 1, one run", explored]]) {
      base += base ? 44 : 12;
      made.append(text("title", 0, base, "start", title));
      base += 14 + Math.max(levels(counts, columns) * size, 20);
      counts.forEach((count, set) => {
        const left = set * cell + 5;
        const none = count ? "" : "none";
        made.append(svg("line", { class: `bin ${none}`, x1: left, x2: left + inner, y1: base, y2: base }));
        made.append(text(`count ${none}`, left + inner / 2, base + 15, "middle", none || String(count)));
        for (let place = 0; place < count; place++) {
          const cx = left + (inner - columns * size) / 2 + ((place % columns) + 0.5) * size;
          const cy = base - (Math.floor(place / columns) + 0.5) * size - 1;
          made.append(svg("circle", { class: "ball", cx, cy, r: 0.42 * size }));
        }
      });
    }
    return made;
  };

  // The corners, in order, of what a box has of the simplex.
  const polygon = ({ lower, upper }) => {
    let corners = ALONE;
    const cut = (room) => {
      corners = corners.flatMap((corner, place) => {
        const before = corners[(place || corners.length) - 1];
        const share = room(before) / (room(before) - room(corner));
        const isCrossed = room(corner) >= 0 !== room(before) >= 0;
        const crossing = isCrossed ? [before.map((value, k) => value + share * (corner[k] - value))] : [];
        return room(corner) >= 0 ? [...crossing, corner] : crossing;
      });
    };
    for (let k = 0; k < EXPERTS; k++) {
      cut((corner) => corner[k] - lower[k]);
      cut((corner) => upper[k] - corner[k]);
    }
    return corners;
  };

  // How far a width is beyond the printed one, from 0 (within) to 1 (eight times as wide), and how a leaf shows it.
  const beyond = (width, allowed) => (width > allowed + 1e-12 ? Math.min(0.25 + Math.log2(width / allowed) / 4, 1) : 0);
  const leaf = (amount) => ({
    class: "leaf",
    style: amount ? `fill: color-mix(in srgb, var(--printed) ${Math.round(100 * amount)}%, var(--plot))` : "",
  });
  const key = (entries) => {
    const square = (look) => svg("svg", { width: 12, height: 12 }, svg("rect", { ...look, width: 12, height: 12 }));
    const shown = Object.entries(entries).map(([words, look]) => html("span", {}, square(look), words));
    return html("p", { class: "live-key" }, ...shown);
  };

  const simplex = (width, { results, printed }) => {
    const { active } = results[0];
    const side = Math.min(width - 24, 460);
    const height = Math.round(side * Math.sqrt(0.75));
    const [left, top] = [(width - side) / 2, 20];
    const point = ([, b, c]) => `${(left + side * (b + c / 2)).toFixed(1)},${(top + height * (1 - c)).toFixed(1)}`;
    const points = (corners) => corners.map(point).join(" ");
    const drawn = active.map((box) => {
      const look = leaf(beyond(longestPart(box), printed.diameter));
      return svg("polygon", { ...look, points: points(polygon(box)) });
    });
    const words = `The simplex of three weights, cut into ${counted(active.length, "leaf", "leaves")}`;
    return picture(
      width,
      height + 44,
      words,
      ...drawn,
      svg("polygon", { class: "frame", points: points(ALONE) }),
      text("title", left, top + height + 18, "start", "expert 1 alone"),
      text("title", left + side, top + height + 18, "end", "expert 2 alone"),
      text("title", left + side / 2, 13, "middle", "expert 3 alone"),
    );
  };

  // The tree, a row a depth: a box is as wide as its share of the boxes of its depth.
  const icicle = (width, { settings: { depth }, results, printed }) => {
    const { active, missed } = results[0];
    const [top, row] = [22, 20];
    const cell = (at, place, look) => {
      const share = width / 2 ** at;
      const size = { width: Math.max(share - (share > 6 ? 1 : 0), 0.4), height: row - 2 };
      return svg("rect", { ...look, x: place * share, y: top + row * at, ...size });
    };
    const cells = new Map();
    const add = (at, place, look) => {
      const name = `${at} ${place}`;
      if (!cells.has(name)) cells.set(name, cell(at, place, look));
    };
    for (const box of [...active, ...missed]) {
      for (let at = 0; at < box.depth; at++) add(at, Math.floor(box.path / 2 ** (box.depth - at)), { class: "inner" });
      const look = isFeasible(box) ? leaf(beyond(longestPart(box), printed.diameter)) : { class: "missed" };
      add(box.depth, box.path, look);
    }
    const words = `The tree: ${active.length} leaves meet the simplex, ${missed.length} boxes on the way miss it`;
    const title = text("title", 0, 12, "start", "the tree from its root, a row a depth");
    return picture(width, top + row * (depth + 1), words, title, ...cells.values());
  };

  // ---- joining both: controls, tiles, pictures, and the state in the address ----
  const ROLES = { measured: "measured", printed: "as printed", holds: "what holds" };
  const LONGEST_SLICE = 12; // milliseconds of a frame
  const stillness = matchMedia("(prefers-reduced-motion: reduce)");

  // The settings in an address such as #theorem-1?samples=500&seed=7, as far as they are among those that can be set.
  const read = (address, name) => {
    const [anchor, query = ""] = decodeURIComponent(address.replace(/^#/, "")).split("?");
    const given = new URLSearchParams(anchor === name ? query : "");
    const settings = { ...experiments[name].defaults };
    for (const [setting, { values, choices }] of Object.entries(pictures[name].controls)) {
      const text = given.get(setting);
      if (choices && Object.keys(choices).includes(text))
        settings[setting] = Number.isNaN(Number(text)) ? text : Number(text);
      else if (values && values.includes(Number(text ?? NaN))) settings[setting] = Number(text);
    }
    const seed = Number(given.get("seed") ?? 1);
    return { settings, seed: Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31 ? seed : 1 };
  };
  const write = (name, settings, seed) => `#${name}?${new URLSearchParams({ ...settings, seed })}`;

  const subscripts = (words) => words.split(/_(\w)/).map((part, place) => (place % 2 ? html("sub", {}, part) : part));
  const swatch = (role) =>
    svg(
      "svg",
      { width: 30, height: 8, "aria-hidden": "true" },
      svg("line", { class: `line ${role}`, x1: 0, x2: 30, y1: 4, y2: 4 }),
    );

  const mount = (place) => {
    const name = place.dataset.live;
    const { controls, tiles, says, draw } = pictures[name];
    const experiment = experiments[name];
    const state = { ...read(location.hash, name), results: [] };
    const form = html("form", { class: "live-controls" });
    const cards = html("div", { class: "live-tiles" });
    const figure = html("div", { class: "live-pictures" });
    const said = html("output", { class: "live-says", "aria-live": "polite" });
    const link = html("a", { class: "live-link" }, "Link to these settings");
    const sync = {};

    for (const [setting, { label, values, choices, show }] of Object.entries(controls)) {
      const id = `live-${name}-${setting}`;
      const input = values
        ? html("input", { id, type: "range", min: 0, max: values.length - 1, step: 1, name: setting })
        : html(
            "select",
            { id, name: setting },
            ...Object.entries(choices).map(([value, words]) => html("option", { value }, words)),
          );
      const value = html("span", { class: "live-value", "aria-hidden": "true" });
      sync[setting] = () => {
        if (values) {
          input.value = values.indexOf(state.settings[setting]);
          value.textContent = show(state.settings[setting]);
          input.setAttribute("aria-valuetext", value.textContent);
        } else input.value = state.settings[setting];
      };
      input.addEventListener("input", () => {
        const text = values ? values[Number(input.value)] : input.value;
        state.settings[setting] = Number.isNaN(Number(text)) ? text : Number(text);
        changed();
      });
      form.append(
        html("p", {}, html("label", { for: id }, html("span", {}, ...subscripts(label)), values ? value : ""), input),
      );
    }
    const again = html("button", { type: "button" }, "Run again");
    const seed = html("input", {
      id: `live-${name}-seed`,
      type: "number",
      min: 0,
      max: 2 ** 31 - 1,
      step: 1,
      name: "seed",
    });
    again.addEventListener("click", () => ((state.seed = (state.seed + 1) % 2 ** 31), changed()));
    seed.addEventListener("change", () => {
      if (seed.checkValidity() && seed.value !== "") state.seed = Number(seed.value);
      changed();
    });
    sync.seed = () => (seed.value = state.seed);
    form.addEventListener("submit", (event) => event.preventDefault());
    const run = experiment.isRecorded ? [] : [again, html("label", { for: seed.id }, "seed "), seed];
    form.append(html("p", { class: "live-run" }, ...run, link));
    place.replaceChildren(form, cards, figure, said);
    place.classList.add("is-live");

    let job = 0;
    let waiting = true; // until it is near the window
    let drawn = 0;
    const step = (until) => {
      const total = experiment.replicates;
      while (state.results.length < total && performance.now() < until) {
        state.results.push(experiment.replicate(state.seed, state.results.length, state.settings));
      }
      return state.results.length === total;
    };
    const show = (isDone) => {
      const shown = Object.entries(tiles(state)).map(([role, [title, value, detail]]) =>
        html(
          "div",
          { class: `live-tile ${role}` },
          html("span", {}, swatch(role), ROLES[role]),
          html("b", {}, value),
          html("span", {}, title),
          html("small", {}, detail),
        ),
      );
      cards.replaceChildren(...shown);
      figure.replaceChildren(...draw(state, Math.max(Math.floor(figure.getBoundingClientRect().width), 280)));
      place.toggleAttribute("data-running", !isDone);
      if (isDone) said.textContent = says(state);
    };
    const frame = (mine) => {
      if (mine !== job) return;
      const isDone = step(performance.now() + LONGEST_SLICE);
      const now = performance.now();
      if (isDone || (!stillness.matches && now - drawn > 120)) {
        show(isDone);
        drawn = performance.now();
      }
      if (!isDone) requestAnimationFrame(() => frame(mine));
    };
    const start = () => {
      job += 1;
      state.results = [];
      state.printed = experiment.printed(state.settings);
      state.holds = experiment.holds(state.settings);
      const mine = job;
      if (!waiting) requestAnimationFrame(() => frame(mine));
    };
    const refresh = () => {
      for (const each of Object.values(sync)) each();
      link.setAttribute("href", write(name, state.settings, state.seed));
      start();
    };
    const changed = () => {
      refresh();
      history.replaceState(history.state, "", link.getAttribute("href"));
    };
    const finish = () => {
      if (waiting || state.results.length < experiment.replicates) {
        waiting = false;
        job += 1;
        step(Infinity);
        show(true);
      }
    };
    link.addEventListener("click", (event) => {
      event.preventDefault();
      history.replaceState(history.state, "", link.getAttribute("href"));
      navigator.clipboard?.writeText(location.href).then(
        () => {
          link.textContent = "Copied";
          setTimeout(() => (link.textContent = "Link to these settings"), 1500);
        },
        () => {},
      );
    });
    addEventListener("hashchange", () => {
      if (!decodeURIComponent(location.hash).startsWith(`#${name}?`)) return;
      Object.assign(state, read(location.hash, name));
      refresh();
      place.scrollIntoView();
    });
    addEventListener("beforeprint", finish);
    let width = 0;
    new ResizeObserver(([entry]) => {
      const isWider = Math.abs(entry.contentRect.width - width) > 1;
      width = entry.contentRect.width;
      if (isWider && state.results.length) show(state.results.length === experiment.replicates);
    }).observe(figure);
    new IntersectionObserver(
      (entries, observer) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        waiting = false;
        start();
      },
      { rootMargin: "300px" },
    ).observe(place);
    refresh();
    if (decodeURIComponent(location.hash).startsWith(`#${name}?`)) place.scrollIntoView();
  };

  globalThis.live = { experiments, polygon, isFeasible, longestPart };
  const begin = () => document.querySelectorAll("[data-live]").forEach(mount);
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", begin);
  else begin();
})();
