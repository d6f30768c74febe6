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
    const word = () => mix(mix((first + Math.imul(counter++, 0x9e3779b9)) | 0) ^ second);
    const uniform = () => (word() + 0.5) / 4294967296;
    const below = (count) => Math.floor(uniform() * count);
    const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
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

  const cellsOf = (samples, ratio) => Math.max(1, Math.round(ratio * samples));

  const meanDistance = (steps) => {
    const half = Math.ceil(steps / 2); // E|S_n| = 2 Gamma(h + 1/2) / (sqrt(pi) Gamma(h)), h = ceil(n / 2)
    return (2 / Math.sqrt(Math.PI)) * Math.exp(logGamma(half + 0.5) - logGamma(half));
  };

  // The bound with d_N = 1, more than a fixed router has.
  const theoremBound = (samples, cells) => {
    const inside = 2 * (1 + Math.log(cells)) + Math.log(2 * samples) + Math.log(4 / DELTA);
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
    const sums = new Int32Array(cells);
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
    defaults: { samples: 500, ratio: 10 },
    replicates: 100,
    replicate(seed, index, { samples, ratio }) {
      const random = generator(seed, index);
      const gap = largestGap(random, samples, cellsOf(samples, ratio));
      return { gap, gaps: SHOWN_SAMPLES.map((size) => largestGap(random, size, cellsOf(size, ratio))) };
    },
    printed: ({ samples, ratio }) => ({ bound: theoremBound(samples, cellsOf(samples, ratio)) }),
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
        const error = truths[task].map((value, k) => value - expert[k]);
        const move = projected(samples, error); // (5)
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
      const seen = new Set();
      let enough = 0; // experts until no set is empty
      while (seen.size < sets) {
        seen.add(random.below(sets));
        enough += 1;
      }
      const explored = index < ALGORITHM_RUNS ? exploredSets(generator(~seed, index), sets, experts) : null;
      return { covered: Number(enough <= experts), enough, explored };
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

  const experiments = { "theorem-1": theorem1, "equation-17": equation17, "lemma-11": lemma11 };

  // ---- words and numbers ----
  const number = (value, digits = 3) => {
    if (Math.abs(value) < 5e-5) return "0";
    const isWhole = Math.abs(value) >= 1000 || Number.isInteger(value);
    return (isWhole ? Math.round(value).toLocaleString("en") : value.toPrecision(digits)).replace("-", "−");
  };
  const short = (value) => String(Number(value.toPrecision(6))).replace("-", "−");
  const percent = (share) => `${short(Number((100 * share).toFixed(1)))} %`;
  const chance = (share) => (share < 1 && share > 0.99995 ? "over 99.99 %" : `${(100 * share).toFixed(2)} %`);
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
  const text = (kind, x, y, anchor, words) => svg("text", { class: kind, x, y, "text-anchor": anchor }, words);

  // An axis from its first tick to its last, unless `more` says otherwise.
  const linear = (label, ticks, more) =>
    ({ label, ticks, low: ticks[0], high: ticks[ticks.length - 1], at: (value) => value, show: short, ...more });
  const logarithmic = (label, ticks, more) =>
    linear(label, ticks, { at: (value) => Math.log(Math.max(value, 1e-9)), ...more });
  const scale = ({ low, high, at }, start, end) => (value) =>
    start + ((at(value) - at(low)) / (at(high) - at(low))) * (end - start);

  // A layer is given the two scales and the frame's height, and returns nodes.
  const chart = (words, x, y, layers) => {
    const [width, height] = [700, 310];
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
    inside.append(...layers.flatMap((layer) => layer(across, up, bottom - top)));
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words }, axes, inside);
  };
  const path = (points) => points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
  const line = (role, places, value) => (across, up) =>
    [svg("path", { class: `line ${role}`, d: `M${path(places.map((x, place) => [across(x), up(value(x, place))]))}` })];
  const dot = (role, x, y) => (across, up) => [svg("circle", { class: `dot ${role}`, cx: across(x), cy: up(y), r: 4.5 })];
  const rule = (x) => (across, up, height) =>
    [svg("line", { class: "rule", x1: across(x), x2: across(x), y1: 0, y2: height })];

  // ---- what a reader may set of each experiment, and how it is told and drawn ----
  const listed = (label, values, show = short) => ({ label, values, show });

  const pictures = {
    "theorem-1": {
      controls: {
        samples: listed("samples m", SAMPLES, number),
        ratio: listed("experts per sample T/m", [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]),
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
      draw({ settings: { samples, ratio }, results, printed }) {
        const fine = range(0, 80).map((step) => 10 ** (1 + step / 20));
        const columns = SHOWN_SAMPLES.map((_, place) => results.map(({ gaps }) => gaps[place]));
        const right = (size) => theorem1.holds({ samples: size, ratio }).bound;
        const x = logarithmic("samples m", [10, 100, 1000, 1e4, 1e5], { show: number });
        const y = logarithmic("gap between empirical and true risk", [0.01, 0.03, 0.1, 0.3, 1, 3]);
        return chart("The largest gap and both bounds by the number of samples", x, y, [
          rule(samples),
          line("holds", SHOWN_SAMPLES, right),
          line("printed", fine, (size) => theoremBound(size, cellsOf(size, ratio))),
          line("measured", SHOWN_SAMPLES, (_, place) => mean(columns[place])),
          dot("measured", samples, mean(results.map(({ gap }) => gap))),
          dot("printed", samples, printed.bound),
        ]);
      },
    },

    "equation-17": {
      controls: {
        tasks: listed("tasks N", range(1, 8)),
        cosine: listed("cosine between two truths", range(0, 9).map((part) => part / 10)),
        columns: listed("samples s, of d = 10", range(1, 9)),
        round: listed("round t", range(2, ROUNDS)),
      },
      tiles({ settings, results, printed, holds }) {
        const found = results.map(({ forgetting }) => forgetting);
        const { ratio, gap } = momentsOf(settings);
        const limit = number((1 - ratio) * gap);
        const spread = `± ${number(2 * standardError(found), 2)}, ${found.length} experts`;
        return {
          measured: ["mean forgetting", number(mean(found)), spread],
          printed: ["Eq. (17)", number(printed.forgetting), "tends to 0 as t grows"],
          holds: ["with distance 0 to itself", number(holds.forgetting), `tends to (s/d) Δ = ${limit}`],
        };
      },
      draw({ settings, results, printed, holds }) {
        const rounds = range(2, ROUNDS);
        const columns = rounds.map((round) => results.map(({ curve }) => curve[round]));
        const of = (which) => (round) => equation17[which]({ ...settings, round }).forgetting;
        const seen = [...rounds.map(of("printed")), ...rounds.map(of("holds")), -0.01, 0.01];
        seen.push(...columns.map(mean));
        const [low, high] = [Math.min(...seen), Math.max(...seen)];
        const step = [0.1, 0.2, 0.25, 0.5].find((each) => (high - low) / each <= 7) ?? 1;
        const ticks = range(Math.floor(low / step), Math.ceil(high / step)).map((place) => place * step);
        const x = linear("round t", [2, 10, 20, 30, 40, 50, 60]);
        return chart("Mean forgetting of one expert, round by round", x, linear("forgetting Fₜ", ticks), [
          rule(settings.round),
          line("measured", rounds, (_, place) => mean(columns[place])),
          line("holds", rounds, of("holds")),
          line("printed", rounds, of("printed")),
          dot("measured", settings.round, mean(results.map(({ forgetting }) => forgetting))),
          dot("printed", settings.round, printed.forgetting),
          dot("holds", settings.round, holds.forgetting),
        ]);
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
      draw({ settings: { sets, experts }, results, printed }) {
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
        const y = linear("probability that every task has an expert (ring: Algorithm 1)", [0, 0.2, 0.4, 0.6, 0.8, 1], { low: -0.02, high: 1.03, show });
        return chart("The probability that every task has an expert, by the number of experts", x, y, [
          rule(experts),
          line("measured", numbers, reached),
          line("holds", numbers, (count) => Math.max(lemma11.holds({ sets, experts: count }).union, -1)),
          line("printed", numbers, (count) => lemma11.printed({ sets, experts: count }).product),
          dot("measured ring", experts, covered),
        ]);
      },
    },
  };

  // ---- joining both: controls, tiles and a picture ----
  const ROLES = { measured: "measured", printed: "as printed", holds: "corrected" };
  const LONGEST_SLICE = 12; // milliseconds of a frame

  const tile = ([role, [title, value, detail]]) => {
    const swatch = svg("svg", { width: 30, height: 8 }, svg("line", { class: `line ${role}`, x2: 30, y1: 4, y2: 4 }));
    const parts = [html("span", {}, swatch, ROLES[role]), html("b", {}, value), html("span", {}, title)];
    return html("div", { class: `live-tile ${role}` }, ...parts, html("small", {}, detail));
  };

  const mount = (place) => {
    const name = place.dataset.live;
    const { controls, tiles, draw } = pictures[name];
    const experiment = experiments[name];
    const state = { settings: { ...experiment.defaults }, seed: 1 };
    const form = html("form", { class: "live-controls" });
    const cards = html("div", { class: "live-tiles", "aria-live": "polite" });
    const figure = html("div", { class: "live-pictures" });

    const show = () => {
      cards.replaceChildren(...Object.entries(tiles(state)).map(tile));
      figure.replaceChildren(draw(state));
      place.toggleAttribute("data-running", state.results.length < experiment.replicates);
    };
    const frame = (results) => {
      if (results !== state.results) return; // another setting was chosen
      const end = performance.now() + LONGEST_SLICE;
      while (results.length < experiment.replicates && performance.now() < end) {
        results.push(experiment.replicate(state.seed, results.length, state.settings));
      }
      show();
      if (results.length < experiment.replicates) requestAnimationFrame(() => frame(results));
    };
    const start = () => {
      state.results = [];
      state.printed = experiment.printed(state.settings);
      state.holds = experiment.holds(state.settings);
      frame(state.results);
    };

    for (const [setting, { label, values, show: shown }] of Object.entries(controls)) {
      const id = `live-${name}-${setting}`;
      const first = values.indexOf(state.settings[setting]);
      const input = html("input", { id, type: "range", min: 0, max: values.length - 1, value: first });
      const value = html("span", { class: "live-value", "aria-hidden": "true" });
      const read = () => {
        state.settings[setting] = values[Number(input.value)];
        value.textContent = shown(state.settings[setting]);
        input.setAttribute("aria-valuetext", value.textContent);
      };
      input.addEventListener("input", () => {
        read();
        start();
      });
      read();
      form.append(html("p", {}, html("label", { for: id }, label, value), input));
    }
    const again = html("button", { type: "button" }, "Run again");
    again.addEventListener("click", () => {
      state.seed += 1;
      start();
    });
    form.append(html("p", { class: "live-run" }, again));
    place.replaceChildren(form, cards, figure);
    place.classList.add("is-live");
    start();
  };

  globalThis.live = { experiments };
  const begin = () => document.querySelectorAll("[data-live]").forEach(mount);
  addEventListener("DOMContentLoaded", begin);
})();
