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
  const dot = (one, other) => one.reduce((total, value, place) => total + value * other[place], 0);
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
        const share = dot(column, columns[other]);
        for (let k = 0; k < column.length; k++) column[k] -= share * columns[other][k];
      }
      const length = Math.sqrt(dot(column, column));
      for (let k = 0; k < column.length; k++) column[k] /= length;
      const share = dot(column, vector);
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
        const move = projected(samples, truths[task].map((value, k) => value - expert[k])); // (5)
        for (let k = 0; k < FEATURES; k++) expert[k] += move[k];
        const errors = truths.map(distance);
        if (t > 1) curve[t] = (dot(visits, errors) - known) / (t - 1); // (15)
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
      const move = projected(columns, Float64Array.from(own, (value, k) => SCALE * Number(k === task) - value)); // (5)
      for (let k = 0; k < FEATURES; k++) own[k] += move[k];
      visits[chosen] += 1;
      let normaliser = 0;
      for (let m = 0; m < experts; m++) normaliser += Math.exp(outputs[m] - largest);
      const softmax = (m) => Math.exp(outputs[m] - largest) / normaliser; // (2)
      const cost = Math.sqrt(dot(move, move)) + (RATE * experts * visits[chosen]) / time ** 2; // (6) and (7), alpha = eta
      const step = RATE * cost * softmax(chosen);
      for (let m = 0; m < experts; m++) {
        const slope = step * (Number(m === chosen) - softmax(m));
        for (let k = 0; k < FEATURES; k++) gates[m][k] -= slope * total[k]; // (9)
      }
    }
    const sizes = new Array(sets).fill(0);
    for (const gate of gates) sizes[gate.slice(0, sets).reduce((at, value, k, all) => (value > all[at] ? k : at), 0)] += 1;
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
      exact: sum(range(0, sets - 1).map((empty) => (-1) ** empty * choose(sets, empty) * (1 - empty / sets) ** experts)),
    }),
  };

  // ---- the tree of merging: boxes of [0, 1]^3, halved, and the simplex of three experts' weights ----
  const EXPERTS = 3;
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
  const halves = ({ lower, upper, path }, dimension) => {
    const middle = (lower[dimension] + upper[dimension]) / 2;
    const cut = (corner) => corner.map((value, k) => (k === dimension ? middle : value));
    return [
      { lower, upper: cut(upper), path: 2 * path },
      { lower: cut(lower), upper, path: 2 * path + 1 },
    ];
  };

  const tree = {
    defaults: { depth: 6, split: "random", ratio: 0.7, smoothness: 1 },
    replicates: 1000,
    // Weights drawn uniformly from the simplex: how wide the leaf around them is, depth by depth. The first has a tree too.
    replicate(seed, index, { depth, split }) {
      const random = generator(seed, index);
      const pick = (at) => (split === "cyclic" ? at % EXPERTS : random.below(EXPERTS));
      const root = { lower: [0, 0, 0], upper: [1, 1, 1], path: 0 };
      const lengths = root.lower.map(() => -Math.log(random.uniform()));
      const weights = lengths.map((length) => length / sum(lengths));
      let leaf = root;
      const widths = range(0, DESCENT).map((at) => {
        const width = longestPart(leaf);
        const dimension = pick(at);
        const [low, high] = halves(leaf, dimension);
        leaf = weights[dimension] < low.upper[dimension] ? low : high;
        return width;
      });
      if (index > 0) return { width: widths[depth], widths };
      let active = [root];
      const missed = [];
      for (let at = 0; at < depth; at++) {
        const made = active.flatMap((leaf) => halves(leaf, pick(at)));
        missed.push(...made.filter((leaf) => !isFeasible(leaf)).map((leaf) => ({ ...leaf, depth: at + 1 })));
        active = made.filter(isFeasible);
      }
      return { width: widths[depth], widths, active, missed };
    },
    printed: ({ depth, ratio, smoothness }) => ({ diameter: smoothness * ratio ** depth, leaves: 2 ** depth }),
    holds: ({ depth }) => ({
      diameter: 2 ** -Math.floor(depth / EXPERTS),
      leaves: cyclicLeaves(depth),
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

  const experiments = { "theorem-1": theorem1, "equation-17": equation17, "lemma-11": lemma11, tree };
  for (const each of Object.values(experiments)) {
    each.simulate = (seed, settings, count = each.replicates) =>
      range(0, count - 1).map((index) => each.replicate(seed, index, settings));
  }

  // ---- drawing ----
  const number = (value, digits = 3) => {
    if (Math.abs(value) < 5e-5) return "0";
    const text = Math.abs(value) >= 1000 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : value.toPrecision(digits);
    return text.replace("-", "−");
  };
  const short = (value) => String(Number(value.toPrecision(6))).replace("-", "−");
  const percent = (share) => `${short(Number((100 * share).toFixed(1)))} %`;
  const chance = (share) => `${(100 * share).toFixed(2)} %`;
  const margin = (values) => (2 * Math.sqrt(mean(values.map((each) => (each - mean(values)) ** 2)))) / Math.sqrt(values.length);

  const node = (space) => (tag, attributes = {}, ...children) => {
    const made = document.createElementNS(space, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const svg = node("http://www.w3.org/2000/svg");
  const html = node("http://www.w3.org/1999/xhtml");

  // An axis: {low, high, log, ticks, show, label}. A layer gets the two scales and gives nodes.
  const scale = ({ low, high, log }, start, end) => {
    const at = log ? (value) => Math.log(Math.max(value, low / 10)) : (value) => value;
    return (value) => start + ((at(value) - at(low)) / (at(high) - at(low))) * (end - start);
  };
  const chart = ({ width, height, x, y, layers, words }) => {
    const [left, right, top, bottom] = [42, width - 12, 30, height - 38];
    const across = scale(x, 0, right - left);
    const up = scale(y, bottom - top, 0);
    const marks = svg("g", { class: "axes" });
    for (const tick of y.ticks) {
      const at = top + up(tick);
      marks.append(svg("line", { x1: left, x2: right, y1: at, y2: at }));
      marks.append(svg("text", { x: left - 7, y: at + 4, "text-anchor": "end" }, (y.show ?? short)(tick)));
    }
    for (const tick of x.ticks) {
      const at = left + across(tick);
      marks.append(svg("line", { class: "tick", x1: at, x2: at, y1: bottom, y2: bottom + 4 }));
      marks.append(svg("text", { x: at, y: bottom + 17, "text-anchor": "middle" }, (x.show ?? short)(tick)));
    }
    marks.append(svg("line", { class: "base", x1: left, x2: right, y1: bottom, y2: bottom }));
    marks.append(svg("text", { class: "title", x: 0, y: 12 }, y.label));
    marks.append(svg("text", { class: "title", x: right, y: height - 3, "text-anchor": "end" }, x.label));
    const inside = svg("svg", { x: left, y: top, width: right - left, height: bottom - top, class: "plot" });
    const above = svg("g", { transform: `translate(${left} ${top})` }); // dots and words may reach over the edge
    for (const each of layers.flatMap((layer) => layer(across, up, right - left, bottom - top))) {
      (each.matches(".dot, .note") ? above : inside).append(each);
    }
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": words }, marks, inside, above);
  };
  const line = (role, points) => (across, up) => {
    const drawn = points.filter(([, y]) => Number.isFinite(y));
    const path = drawn.map(([x, y], place) => `${place ? "L" : "M"}${across(x).toFixed(1)} ${up(y).toFixed(1)}`).join("");
    return path ? [svg("path", { class: `line ${role}`, d: path })] : [];
  };
  const band = (points) => (across, up) => {
    const lows = points.map(([x, low]) => `${across(x).toFixed(1)} ${up(low).toFixed(1)}`);
    const highs = points.map(([x, , high]) => `${across(x).toFixed(1)} ${up(high).toFixed(1)}`).reverse();
    return points.length ? [svg("path", { class: "band", d: `M${lows.concat(highs).join("L")}Z` })] : [];
  };
  const dots = (role, points) => (across, up, width, height) => {
    const inside = points.filter(([, y]) => up(y) >= -1 && up(y) <= height + 1);
    return inside.map(([x, y]) => svg("circle", { class: `dot ${role}`, cx: across(x), cy: up(y), r: 4.5 }));
  };
  const rule = (x) => (across, up, width, height) => [
    svg("line", { class: "rule", x1: across(x), x2: across(x), y1: 0, y2: height }),
  ];
  const note = (x, y, words, anchor = "start", role = "") => (across, up) => [
    svg("text", { class: `note ${role}`, x: across(x) + (anchor === "end" ? -8 : 8), y: up(y) + 4, "text-anchor": anchor }, words),
  ];
  const powers = (low, high) => range(low, high).map((exponent) => 10 ** exponent);
  const superscript = (value) => `10${[...String(Math.round(Math.log10(value)))].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("")}`;
  const plain = (value) => (value >= 1000 || value < 0.01 ? superscript(value) : short(value));

  // ---- what each experiment lets a reader set, and how it is drawn and said ----
  const listed = (label, values, show = short) => ({ label, values, show });

  const pictures = {
    "theorem-1": {
      controls: {
        samples: listed("samples m", SAMPLES, (value) => value.toLocaleString("en")),
        ratio: listed("experts per sample T/m", [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]),
        granted: { label: "d_N granted to the fixed router", choices: { 1: "1, more than it has", 0: "0, what it has" } },
      },
      tiles({ results, printed, holds }) {
        const gaps = results.map(({ gap }) => gap);
        const above = mean(gaps.map((gap) => Number(gap > printed.bound)));
        return {
          measured: ["largest gap", number(mean(gaps)), `exactly ${number(holds.gap)} on average`],
          printed: ["bound of Theorem 1", number(printed.bound), `exceeded in ${percent(above)} of samples`],
          holds: ["bound that holds", number(holds.bound), holds.bound >= 0.5 ? "above 1/2, no gap is larger: it says nothing" : "twice the mean gap, and a term for chance"],
        };
      },
      says({ settings, results, printed }) {
        const gap = mean(results.map((each) => each.gap));
        const sizes = `m = ${settings.samples.toLocaleString("en")}, T = ${cellsOf(settings.samples, settings.ratio).toLocaleString("en")}`;
        const verdict = gap > printed.bound ? "The printed bound fails here" : "The printed bound covers the gap here";
        return `${verdict}: at ${sizes} the gap is ${number(gap)} and the bound ${number(printed.bound)}, a ratio of ${number(gap / printed.bound)}. A constant in the O( ) would have to be at least that.`;
      },
      draw({ settings, results, printed }, width) {
        const { ratio, granted, samples } = settings;
        const fine = range(0, 80).map((step) => 10 ** (1 + step / 20));
        const bounds = fine.map((size) => [size, theoremBound(size, cellsOf(size, ratio), granted)]);
        const right = SHOWN_SAMPLES.map((size) => [size, experiments["theorem-1"].holds({ samples: size, ratio }).bound]);
        const columns = SHOWN_SAMPLES.map((size, place) => [size, results.map(({ gaps }) => gaps[place])]);
        const means = columns.map(([size, gaps]) => [size, mean(gaps)]);
        const spread = columns.map(([size, gaps]) => [size, quantile(gaps, 0.1), quantile(gaps, 0.9)]);
        const here = mean(results.map(({ gap }) => gap));
        const x = { low: 10, high: 1e5, log: true, ticks: powers(1, 5), show: plain, label: "samples m" };
        const wide = width > 620;
        const first = wide ? Math.round(width * 0.58) : width;
        return [
          chart({
            width: first, height: 300, x, words: "Largest gap and both bounds by the number of samples",
            y: { low: 0.01, high: 3, log: true, ticks: [0.01, 0.03, 0.1, 0.3, 1, 3], label: "gap between empirical and true risk" },
            layers: [rule(samples), band(spread), line("holds", right), line("printed", bounds), line("measured", means), dots("measured", [[samples, here]]), dots("printed", [[samples, printed.bound]])],
          }),
          chart({
            width: wide ? width - first - 16 : width, height: wide ? 300 : 220, x: { ...x, ticks: wide ? [10, 1000, 1e5] : x.ticks },
            words: "The gap divided by the printed bound, by the number of samples",
            y: { low: 0.1, high: 30, log: true, ticks: [0.1, 0.3, 1, 3, 10, 30], label: "gap / printed bound" },
            layers: [rule(samples), line("even", [[10, 1], [1e5, 1]]), note(1e5, 0.72, "gap = bound", "end"), line("measured", means.map(([size, gap]) => [size, gap / theoremBound(size, cellsOf(size, ratio), granted)])), dots("measured", [[samples, here / printed.bound]])],
          }),
        ];
      },
    },
    "equation-17": {
      controls: {
        tasks: listed("tasks N", range(1, 8)),
        cosine: listed("cosine between two truths", range(0, 9).map((tenth) => tenth / 10)),
        columns: listed("samples s, of d = 10", range(1, 9)),
        round: listed("round t", range(2, ROUNDS)),
      },
      tiles({ results, printed, holds, settings }) {
        const found = results.map(({ forgetting }) => forgetting);
        const { ratio, gap } = momentsOf(settings);
        return {
          measured: ["mean forgetting", number(mean(found)), `± ${number(margin(found), 2)}, of ${results.length} experts`],
          printed: ["Eq. (17)", number(printed.forgetting), "tends to 0 as t grows"],
          holds: ["with distance 0 to itself", number(holds.forgetting), `tends to (s/d) Δ = ${number((1 - ratio) * gap)}`],
        };
      },
      says({ settings, results, printed, holds }) {
        const { gap } = momentsOf(settings);
        const found = mean(results.map(({ forgetting }) => forgetting));
        const which = settings.tasks === 1 ? "With one task there is no other to be mistaken for, and the two formulas agree" : `Mean squared distance over all pairs Δ = ${number(gap)}, mean squared norm W = 1`;
        return `${which}: after ${settings.round} rounds simulated experts forget ${number(found)}, (17) says ${number(printed.forgetting)}, and the formula with that term ${number(holds.forgetting)}.`;
      },
      draw({ settings, results, printed, holds }, width) {
        const rounds = range(2, ROUNDS);
        const of = (which) => rounds.map((round) => [round, experiments["equation-17"][which]({ ...settings, round }).forgetting]);
        const columns = rounds.map((round) => results.map(({ curve }) => curve[round]));
        const means = rounds.map((round, place) => [round, mean(columns[place])]);
        const spread = rounds.map((round, place) => [round, quantile(columns[place], 0.1), quantile(columns[place], 0.9)]);
        const seen = [...of("printed"), ...of("holds"), ...spread, ...spread.map(([x, , high]) => [x, high])].map(([, y]) => y);
        const step = [0.1, 0.2, 0.25, 0.5, 1].find((each) => (Math.max(...seen, 0) - Math.min(...seen, 0)) / each <= 7) ?? 2;
        const [low, high] = [Math.floor(Math.min(...seen, -0.01) / step), Math.ceil(Math.max(...seen, 0.01) / step)];
        const ticks = range(low, high).map((place) => Number((place * step).toFixed(2)));
        const here = settings.round;
        return [
          chart({
            width, height: 310, words: "Expected forgetting of one expert, round by round",
            x: { low: 2, high: ROUNDS, ticks: [2, 10, 20, 30, 40, 50, 60], label: "round t" },
            y: { low: ticks[0], high: ticks[ticks.length - 1], ticks, label: "forgetting Fₜ" },
            layers: [rule(here), band(spread), line("even", [[2, 0], [ROUNDS, 0]]), line("measured", means), line("holds", of("holds")), line("printed", of("printed")), dots("measured", [[here, mean(results.map(({ forgetting }) => forgetting))]]), dots("printed", [[here, printed.forgetting]]), dots("holds", [[here, holds.forgetting]])],
          }),
        ];
      },
    },
    "lemma-11": {
      controls: {
        sets: listed("tasks N", range(2, 8)),
        experts: listed("experts M", range(2, 120)),
      },
      tiles({ results, printed, holds, settings }) {
        const explored = results.filter((each) => each.explored);
        const covered = explored.filter((each) => each.explored.every((size) => size > 0)).length;
        const least = printed.enough <= settings.experts ? `M ≥ ${printed.enough}: to be at least ${percent(1 - DELTA)}` : `promises ${percent(1 - DELTA)} from M = ${printed.enough} on`;
        return {
          measured: ["runs of Algorithm 1, each task with one", `${covered} of ${explored.length}`, `independent experts: ${percent(mean(results.map((each) => each.covered)))} of ${results.length.toLocaleString("en")} runs`],
          printed: ["product in the proof", chance(printed.product), least],
          holds: ["if experts were independent", chance(holds.exact), `at least ${chance(Math.max(holds.union, 0))} by the union bound; for Algorithm 1 none is known`],
        };
      },
      says({ results, settings, printed, holds }) {
        const explored = results.filter((each) => each.explored).map((each) => each.explored);
        const empty = mean(explored.map((sizes) => sizes.filter((size) => size === 0).length));
        const shared = mean(explored.map((sizes) => Math.max(...sizes))) / settings.experts;
        const below = printed.product > holds.exact + 1e-12 ? ` The product, ${chance(printed.product)}, is not below the probability, ${chance(holds.exact)}.` : "";
        return `In Algorithm 1 ${number(empty, 2)} of ${settings.sets} tasks are left without an expert on average, and ${percent(Number(shared.toPrecision(2)))} of the ${settings.experts} experts share one task.${below}`;
      },
      draw({ settings, results, printed }, width) {
        const { sets, experts } = settings;
        const last = Math.max(experts, Math.ceil(1.6 * printed.enough), 12);
        const numbers = range(1, last);
        const of = (which, name) => numbers.map((count) => [count, experiments["lemma-11"][which]({ sets, experts: count })[name]]);
        const needed = results.map(({ enough }) => enough);
        const measured = numbers.map((count) => [count, mean(needed.map((enough) => Number(enough <= count)))]);
        const explored = results.filter((each) => each.explored).map((each) => each.explored);
        const share = mean(explored.map((sizes) => Number(sizes.every((size) => size > 0))));
        const wide = width > 620;
        const first = wide ? Math.round(width * 0.56) : width;
        const step = [2, 5, 10, 20, 25, 50].find((each) => last / each <= 8);
        const side = experts > last / 2 ? "end" : "start";
        return [
          chart({
            width: first, height: 300, words: "Probability that every task has an expert, by the number of experts",
            x: { low: 1, high: last, ticks: range(1, Math.floor(last / step)).map((place) => place * step), label: "experts M" },
            y: { low: -0.02, high: 1.03, ticks: [0, 0.2, 0.4, 0.6, 0.8, 1], show: (value) => `${Math.round(100 * value)} %`, label: "chance that every task has an expert" },
            layers: [rule(experts), line("measured", measured), line("holds", of("holds", "union").filter(([, y]) => y > -0.1)), line("printed", of("printed", "product")), dots("measured ring", [[experts, share]]), note(experts, Math.min(Math.max(share, 0.03), 0.9) + 0.035, "Algorithm 1", side, "measured")],
          }),
          bins(wide ? width - first - 16 : width, 300, sets, experts, results[0]),
        ];
      },
    },
    tree: {
      controls: {
        depth: listed("depth h", range(0, 10)),
        split: { label: "the side that is halved", choices: { random: "random, as in the paper", cyclic: "one after another" } },
        ratio: listed("ρ", range(30, 95).map((hundredth) => hundredth / 100)),
        smoothness: listed("ν₁", range(20, 40).map((part) => part / 20)),
      },
      tiles({ settings, results, printed, holds }) {
        const { active } = results[0];
        const parts = active.map(longestPart);
        const wide = parts.filter((side) => side > printed.diameter + 1e-12).length;
        return {
          measured: ["widest leaf, within the simplex", number(Math.max(...parts)), `${wide} of ${active.length} feasible leaves are wider than printed`],
          printed: ["Assumption 1: ν₁ρʰ", number(printed.diameter), settings.split === "random" ? "asked of every leaf of depth h" : "asked of every leaf, however split"],
          holds: ["longest side, halved in turn", number(holds.diameter), `exactly, of all boxes; ${holds.leaves} of ${printed.leaves.toLocaleString("en")} meet the simplex then`],
        };
      },
      says({ settings, results, printed, holds }) {
        const { active, missed } = results[0];
        const wide = active.filter((leaf) => longestPart(leaf) > printed.diameter + 1e-12).length;
        const { ratio } = settings;
        const why = ratio < holds.ratioOnSimplex ? "ρ is below 1/√2 ≈ 0.707: no ν₁ and no way of halving boxes keeps even their parts of the simplex within ν₁ρʰ at every depth." : ratio < holds.ratio ? "ρ is below 1/∛2 ≈ 0.794: no ν₁ and no way of halving boxes keeps the boxes themselves within ν₁ρʰ at every depth." : `ρ is at least 1/∛2 ≈ 0.794: boxes whose sides are halved in turn are within ν₁ρʰ at every depth from ν₁ = ρ⁻² = ${number(ratio ** -2)} on.`;
        return `At depth ${settings.depth}, ${active.length} boxes meet the simplex, and ${wide} of their parts of it are wider than ν₁ρʰ = ${number(printed.diameter)} in the sup norm. ${missed.length} boxes on the way miss it: no weights can come from them. ${why}`;
      },
      draw(state, width) {
        const { settings, results, printed } = state;
        const wide = width > 620;
        const first = wide ? Math.round(width * 0.5) : width;
        const depths = range(0, DESCENT);
        const columns = depths.map((depth) => results.map(({ widths }) => widths[depth]));
        const here = Math.max(...results[0].active.map(longestPart));
        const steps = depths.flatMap((depth) => (depth % EXPERTS ? [] : [[depth, 2 ** -(depth / EXPERTS)], [depth + EXPERTS, 2 ** -(depth / EXPERTS)]]));
        return [
          simplex(first, state),
          chart({
            width: wide ? width - first - 16 : width, height: wide ? Math.round(first * 0.86) + 34 : 260, words: "The width, within the simplex, of the leaf around random weights, by its depth",
            x: { low: 0, high: DESCENT, ticks: [0, 2, 4, 6, 8, 10, 12, 14], label: "depth h" },
            y: { low: 0.01, high: 2.1, log: true, ticks: [0.01, 0.03, 0.1, 0.3, 1], label: "width of the leaf around random weights" },
            layers: [rule(settings.depth), band(depths.map((depth) => [depth, quantile(columns[depth], 0.1), quantile(columns[depth], 0.9)])), line("holds", steps), line("measured", depths.map((depth) => [depth, mean(columns[depth])])), line("printed", depths.map((depth) => [depth, settings.smoothness * settings.ratio ** depth])), dots("printed", [[settings.depth, printed.diameter]]), dots("measured ring", [[settings.depth, here]])],
          }),
          icicle(width, state),
          key([["leaf", "", "within ν₁ρʰ"], ["leaf", shade(0.4), "wider"], ["leaf", shade(1), "8 times as wide"], ["inner", "", "was split"], ["missed", "", "misses the simplex"]]),
        ];
      },
    },
  };

  // One run each: independent experts in sets, and those of Algorithm 1, a dot an expert.
  const bins = (width, height, sets, experts, { sizes, explored }) => {
    const made = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `Where ${experts} experts went in one run: independent ${sizes.join(", ")}; Algorithm 1 ${explored.join(", ")}` });
    const cell = width / sets;
    const inner = cell - 10;
    const levels = (counts, across) => Math.ceil(Math.max(...counts) / across);
    const sizeOf = (across) => Math.min(inner / across, 12);
    let across = 1;
    while ((levels(sizes, across) + levels(explored, across)) * sizeOf(across) > height - 96) across += 1;
    const size = sizeOf(across);
    let base = 0;
    [["independent experts, one run", sizes], ["Algorithm 1, one run", explored]].forEach(([words, counts]) => {
      const title = base + (base ? 44 : 12);
      base = title + 14 + Math.max(levels(counts, across) * size, 20);
      made.append(svg("text", { class: "title", x: 0, y: title }, words));
      counts.forEach((count, set) => {
        const start = set * cell + 5;
        made.append(svg("line", { class: count ? "bin" : "bin none", x1: start, x2: start + inner, y1: base, y2: base }));
        for (let place = 0; place < count; place++) {
          const [column, level] = [place % across, Math.floor(place / across)];
          const left = start + (inner - across * size) / 2;
          made.append(svg("circle", { class: "ball", cx: left + (column + 0.5) * size, cy: base - (level + 0.5) * size - 1, r: size * 0.42 }));
        }
        made.append(svg("text", { class: count ? "count" : "count none", x: start + inner / 2, y: base + 15, "text-anchor": "middle" }, count ? String(count) : "none"));
      });
    });
    return made;
  };

  // The corners, in order, of what a box has of the simplex.
  const polygon = ({ lower, upper }) => {
    let corners = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    for (let k = 0; k < EXPERTS; k++) {
      for (const [sign, edge] of [[1, lower[k]], [-1, upper[k]]]) {
        const kept = [];
        corners.forEach((corner, place) => {
          const before = corners[(place || corners.length) - 1];
          const [room, other] = [sign * (corner[k] - edge), sign * (before[k] - edge)];
          if (room >= 0 !== other >= 0) kept.push(before.map((value, axis) => value + (other / (other - room)) * (corner[axis] - value)));
          if (room >= 0) kept.push(corner);
        });
        corners = kept;
      }
    }
    return corners;
  };

  const key = (entries) => {
    const square = (kind, style) => svg("svg", { width: 12, height: 12, "aria-hidden": "true" }, svg("rect", { class: kind, style, width: 12, height: 12 }));
    return html("p", { class: "live-key" }, ...entries.map(([kind, style, words]) => html("span", {}, square(kind, style), words)));
  };

  // How far a width is beyond the printed one, from 0 (within) to 1 (eight times as wide), for a shade.
  const beyond = (side, allowed) => (side > allowed + 1e-12 ? Math.min(0.25 + Math.log2(side / allowed) / 4, 1) : 0);
  const shade = (amount) => (amount ? `fill: color-mix(in srgb, var(--printed) ${Math.round(100 * amount)}%, var(--plot))` : "");

  const simplex = (width, { results, printed }) => {
    const side = Math.min(width - 24, 460);
    const height = Math.round(side * 0.866);
    const [left, top] = [(width - side) / 2, 20];
    const place = ([, second, third]) => `${(left + side * (second + third / 2)).toFixed(1)},${(top + height * (1 - third)).toFixed(1)}`;
    const { active } = results[0];
    const made = svg("svg", { viewBox: `0 0 ${width} ${height + 44}`, width, height: height + 44, role: "img", "aria-label": `The simplex of three weights, cut into ${active.length} leaves` });
    for (const leaf of active) {
      const corners = polygon(leaf);
      if (corners.length < 3) continue;
      const amount = beyond(longestPart(leaf), printed.diameter);
      made.append(svg("polygon", { class: amount ? "leaf wide" : "leaf", style: shade(amount), points: corners.map(place).join(" ") }));
    }
    made.append(svg("polygon", { class: "frame", points: [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map(place).join(" ") }));
    const words = [[left, top + height + 18, "start", "expert 1 alone"], [left + side, top + height + 18, "end", "expert 2 alone"], [left + side / 2, 13, "middle", "expert 3 alone"]];
    for (const [x, y, anchor, text] of words) made.append(svg("text", { class: "title", x, y, "text-anchor": anchor }, text));
    return made;
  };

  // The tree from its root: a box a cell, as wide as its share of all boxes of its depth; hatched where it misses the simplex.
  const icicle = (width, { settings, results, printed }) => {
    const { depth } = settings;
    const { active, missed } = results[0];
    const [top, row] = [22, 20];
    const height = top + row * (Math.max(depth, 1) + 1) + 4;
    const made = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `The tree: ${active.length} boxes meet the simplex, and ${missed.length} that miss it are not split further` });
    made.append(svg("text", { class: "title", x: 0, y: 12 }, "the tree from its root, a row a depth"));
    const cell = (at, path, kind, style = "") => {
      const share = width / 2 ** at;
      const gap = share > 6 ? 1 : 0;
      made.append(svg("rect", { class: kind, style, x: path * share, y: top + row * at, width: Math.max(share - gap, 0.4), height: row - 2 }));
    };
    const inner = new Set();
    for (const leaf of [...active, ...missed]) {
      let path = leaf.path;
      for (let at = (leaf.depth ?? depth) - 1; at >= 0; at--) {
        path = Math.floor(path / 2);
        inner.add(`${at} ${path}`);
      }
    }
    for (const each of inner) cell(...each.split(" ").map(Number), "inner");
    for (const leaf of missed) cell(leaf.depth, leaf.path, "missed");
    for (const leaf of active) {
      const amount = beyond(longestPart(leaf), printed.diameter);
      cell(depth, leaf.path, amount ? "leaf wide" : "leaf", shade(amount));
    }
    return made;
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
      if (choices && Object.keys(choices).includes(text)) settings[setting] = Number.isNaN(Number(text)) ? text : Number(text);
      else if (values && values.includes(Number(text ?? NaN))) settings[setting] = Number(text);
    }
    const seed = Number(given.get("seed") ?? 1);
    return { settings, seed: Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31 ? seed : 1 };
  };
  const write = (name, settings, seed) => `#${name}?${new URLSearchParams({ ...settings, seed })}`;

  const subscripts = (words) => words.split(/_(\w)/).map((part, place) => (place % 2 ? html("sub", {}, part) : part));
  const swatch = (role) =>
    svg("svg", { width: 30, height: 8, "aria-hidden": "true" }, svg("line", { class: `line ${role}`, x1: 0, x2: 30, y1: 4, y2: 4 }));

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
        : html("select", { id, name: setting }, ...Object.entries(choices).map(([value, words]) => html("option", { value }, words)));
      const value = html("span", { class: "live-value" });
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
      form.append(html("p", {}, html("label", { for: id }, html("span", {}, ...subscripts(label)), values ? value : ""), input));
    }
    const again = html("button", { type: "button" }, "Run again");
    const seed = html("input", { id: `live-${name}-seed`, type: "number", min: 0, max: 2 ** 31 - 1, step: 1, name: "seed" });
    again.addEventListener("click", () => ((state.seed = (state.seed + 1) % 2 ** 31), changed()));
    seed.addEventListener("change", () => {
      if (seed.checkValidity() && seed.value !== "") state.seed = Number(seed.value);
      changed();
    });
    sync.seed = () => (seed.value = state.seed);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.append(html("p", { class: "live-run" }, again, html("label", { for: seed.id }, "seed "), seed, link));
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
        html("div", { class: `live-tile ${role}` }, html("span", {}, swatch(role), ROLES[role]), html("b", {}, value), html("span", {}, title), html("small", {}, detail)));
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
      navigator.clipboard?.writeText(location.href).then(() => {
        link.textContent = "Copied";
        setTimeout(() => (link.textContent = "Link to these settings"), 1500);
      }, () => {});
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
    new IntersectionObserver((entries, observer) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      waiting = false;
      start();
    }, { rootMargin: "300px" }).observe(place);
    refresh();
    if (decodeURIComponent(location.hash).startsWith(`#${name}?`)) place.scrollIntoView();
  };

  globalThis.live = { experiments, polygon, isFeasible, longestPart };
  const begin = () => document.querySelectorAll("[data-live]").forEach(mount);
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", begin);
  else begin();
})();
