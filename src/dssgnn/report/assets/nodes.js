// The table of nodes, and one node in a dialog.
const PAGE = 25;
const PARTS = ["train", "val", "test"];
const KIND_NAMES = { hard: "hardest", ood: "most OOD", sample: "sample" };

function nodeTable(data, classes) {
  const { nodes } = data, className = (k) => k < 0 ? null : classes[k];
  const rows = data.row.map((node, k) => ({
    k, node, id: nodes.id[node], part: PARTS[nodes.part[node]] || "none", label: className(nodes.label[node]),
    prediction: missing(nodes.confidence[node]) ? null : className(nodes.prediction[node]), confidence: nodes.confidence[node],
    wrong: nodes.label[node] >= 0 && nodes.label[node] !== nodes.prediction[node], kinds: data.kinds[k],
    loss: data.loss[k], energy: data.energy[k], ood_score: data.ood_score[k], mutual_information: data.mutual_information[k],
    chaos_energy: data.chaos_energy[k], entropy: data.entropy[k],
    degree: data.degree ? data.degree[k] : null, homophily: data.homophily ? data.homophily[k] : null, distance: data.distance ? data.distance[k] : null,
  }));
  const integer = (value) => missing(value) ? MISSING : count(value);
  const COLUMNS = [
    ["id", "Node", null], ["label", "Label", null], ["prediction", "Prediction", null], ["confidence", "Confidence", percent],
    ["loss", "Loss", number, "−log of the probability given to the label: higher is harder"],
    ["ood_score", "OOD score", number, "higher is more out of distribution"],
    ["degree", "Neighbours", integer], ["homophily", "Homophily", percent, "share of labelled neighbours with the same label"], ["distance", "Distance", integer, "hops to the nearest training node"],
    ["energy", "Energy", number], ["mutual_information", "Mutual information", number, "how much the model disagrees with itself, in nats"], ["chaos_energy", "Chaos energy", number, "variance of the logits"],
    ["part", "Part", null], ["kinds", "Listed as", null],
  ].filter(([key]) => key === "id" || rows.some((row) => !missing(row[key])));
  const state = { key: "loss", down: true, text: "", kind: "", shown: PAGE };
  if (!rows.some((row) => !missing(row.loss))) state.key = "ood_score";
  let visible = [];

  const heads = COLUMNS.map(([key, name, , hint]) => {
    const button = h("button", { type: "button", "data-tip": hint }, name, h("span", { class: "arrow", "aria-hidden": "true" }));
    button.addEventListener("click", () => {
      state.down = state.key === key ? !state.down : !["id", "label", "prediction", "part", "kinds"].includes(key);
      state.key = key;
      state.shown = PAGE;
      show();
    });
    return h("th", { scope: "col", "data-key": key }, button);
  });
  $("table").tHead.replaceChildren(h("tr", {}, ...heads));

  const compare = (a, b) => {
    const [left, right] = [a[state.key], b[state.key]];
    if (missing(left) || missing(right)) return missing(left) - missing(right) || a.k - b.k;
    const order = typeof left === "number" ? left - right : String(left).localeCompare(String(right), "en", { numeric: true });
    return (state.down ? -order : order) || a.k - b.k;
  };
  const matches = (row) => (!state.kind || (state.kind === "wrong" ? row.wrong : row.kinds.includes(state.kind))) &&
    [row.id, row.label, row.prediction, row.part].some((text) => !missing(text) && text.toLowerCase().includes(state.text));

  const cell = (row, [key, , format]) => {
    if (key === "id") return h("th", { scope: "row" }, h("bdi", {}, clip(row.id, 40)));
    if (key === "kinds") return h("td", {}, row.kinds.map((kind) => KIND_NAMES[kind]).join(", "));
    if (format) return h("td", { class: "num" }, format(row[key]));
    const mark = key === "prediction" && row.label !== null ? h("span", { class: row.wrong ? "cross" : "check", role: "img", "aria-label": row.wrong ? "wrong" : "right" }, row.wrong ? "✗ " : "✓ ") : null;
    return h("td", {}, mark, missing(row[key]) ? MISSING : h("bdi", {}, clip(row[key], 40)));
  };
  const line = (row) => {
    const tr = h("tr", { tabindex: "0", "aria-haspopup": "dialog", "data-k": row.k }, ...COLUMNS.map((column) => cell(row, column)));
    tr.addEventListener("click", () => open(row));
    tr.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") open(row);
      else if (event.key === "ArrowDown") tr.nextElementSibling?.focus();
      else if (event.key === "ArrowUp") tr.previousElementSibling?.focus();
      else return;
      event.preventDefault();
    });
    return tr;
  };

  function show() {
    visible = rows.filter(matches).sort(compare);
    $("table").tBodies[0].replaceChildren(...visible.slice(0, state.shown).map(line));
    for (const head of heads) {
      const active = head.dataset.key === state.key;
      head.setAttribute("aria-sort", active ? (state.down ? "descending" : "ascending") : "none");
      head.querySelector(".arrow").textContent = active ? (state.down ? " ↓" : " ↑") : "";
    }
    const seen = Math.min(state.shown, visible.length);
    $("count").textContent = visible.length ? `${count(seen)} of ${count(visible.length)} shown` : "No listed node matches.";
    $("more").hidden = visible.length <= state.shown;
  }
  $("search").addEventListener("input", (event) => { state.text = event.target.value.trim().toLowerCase(); state.shown = PAGE; show(); });
  $("kind").addEventListener("change", (event) => { state.kind = event.target.value; state.shown = PAGE; show(); });
  $("more").addEventListener("click", () => {
    const next = state.shown;
    state.shown += 2 * PAGE;
    show();
    $("table").tBodies[0].rows[next]?.focus();
  });
  $("table-note").textContent = `Of ${count(data.eligible)} nodes that are in neither the training nor the validation part, this lists the ` +
    `${count(data.counts.hard)} hardest (least probability on their label), the ${count(data.counts.ood)} most out of distribution and ${count(data.counts.sample)} drawn at random, for comparison. ` +
    "Choose a row, by click or with the arrow keys and Enter, to see its probabilities and its neighbourhood. Bad: hard nodes whose confidence is high.";
  show();

  const dialog = $("detail"), body = dialog.firstElementChild;
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { hideTip(); document.querySelector(`#table tr[data-k="${dialog.dataset.k}"]`)?.focus(); });
  dialog.addEventListener("keydown", (event) => {
    const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (turn) step(turn);
  });
  const step = (by) => {
    const at = visible.findIndex((row) => String(row.k) === dialog.dataset.k), row = visible[at + by];
    if (row) { state.shown = Math.max(state.shown, at + by + 1); open(row); }
  };

  function open(row) {
    if (!document.querySelector(`#table tr[data-k="${row.k}"]`)) show();
    dialog.dataset.k = row.k;
    const button = (text, action) => { const b = h("button", { type: "button" }, text); b.addEventListener("click", action); return b; };
    const at = visible.indexOf(row);
    const previous = button("← Previous", () => step(-1)), next = button("Next →", () => step(1));
    previous.disabled = at <= 0;
    next.disabled = at < 0 || at === visible.length - 1;
    const verdict = row.label === null ? "Its label is unknown." : row.wrong ? "✗ The prediction is wrong." : "✓ The prediction is right.";
    const facts = COLUMNS.filter(([key]) => !["id", "kinds"].includes(key))
      .flatMap(([key, name, format]) => [h("dt", {}, name), h("dd", {}, h("bdi", {}, format ? format(row[key]) : row[key] ?? MISSING))]);
    const close = button("Close", () => dialog.close());
    body.replaceChildren(
      h("div", { class: "dialog-top" }, previous, next, close),
      h("h2", { id: "detail-title" }, "Node ", h("bdi", {}, row.id)),
      h("p", { class: row.wrong ? "cross" : "" }, verdict),
      h("div", { class: "detail" },
        h("div", {}, h("h3", {}, "Probabilities"), probabilities(data.top[row.k], nodes.label[row.node], classes), h("dl", { class: "facts" }, ...facts)),
        h("div", {}, h("h3", {}, "Neighbourhood"), ...(data.near.length ? around(data.near[row.k], row) : [h("p", { class: "absent" }, "The model folder holds no edges (it was written with --no-graph), so the neighbourhood cannot be drawn.")]))));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    close.focus();
  }

  const rowOf = new Map(rows.map((row) => [row.node, row]));
  function around(near, row) {
    const size = 340, middle = size / 2, n = near.nodes.length;
    if (n === 1) return [h("p", { class: "absent" }, "It has no neighbours.")];
    const place = layout(near, middle);
    const present = [...new Set(near.nodes.map((node) => nodes.label[node]).filter((label) => label >= 0))].sort((a, b) => a - b);
    const short = present.every((label) => classes[label].length <= 2); // else letters, explained by the key
    const sign = (label) => label < 0 ? "?" : short ? classes[label] : String.fromCodePoint(65 + present.indexOf(label));
    const svg = s("svg", { viewBox: `0 0 ${size} ${size}`, class: "near", role: "group", "aria-label": "Drawing of the neighbourhood; the list below says the same" });
    for (let e = 0; e < near.edges.length; e += 2) {
      const [a, b] = [near.edges[e], near.edges[e + 1]];
      svg.append(s("line", { class: a === 0 || b === 0 ? "edge own" : "edge", x1: place[a][0], y1: place[a][1], x2: place[b][0], y2: place[b][1] }));
    }
    for (let i = n - 1; i >= 0; i--) {
      const node = near.nodes[i], label = nodes.label[node], other = rowOf.get(node), r = i === 0 ? 15 : near.hops[i] === 1 ? 11 : 8.5;
      const wrong = label >= 0 && label !== nodes.prediction[node], [x, y] = place[i];
      const tip = `${clip(nodes.id[node], 60)} (${PARTS[nodes.part[node]] || "no part"})\nlabel ${label < 0 ? "unknown" : clip(classes[label], 60)}\npredicted ${clip(classes[nodes.prediction[node]], 60)}, ${percent(nodes.confidence[node])}`;
      const linked = other && i > 0;
      const mark = s("g", { class: `node c${label < 0 ? "x" : present.indexOf(label) % 8}${nodes.part[node] === 0 ? " train" : ""}${wrong ? " off" : ""}${linked ? " linked" : ""}`, "data-tip": tip, ...(linked ? { tabindex: "0", role: "button", "aria-label": `Open node ${nodes.id[node]}` } : {}) },
        s("circle", { cx: x, cy: y, r }), wrong ? s("circle", { class: "ring", cx: x, cy: y, r: r + 3.5 }) : null,
        s("text", { x, y: y + (r > 10 ? 4 : 3.2), "text-anchor": "middle", "font-size": r > 10 ? 12 : 9.5 }, sign(label)));
      if (linked) {
        mark.addEventListener("click", () => open(other));
        mark.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(other); } });
      }
      svg.append(mark);
    }
    const key = h("ul", { class: "key" }, ...present.map((label, k) => h("li", {}, s("svg", { width: 18, height: 18, "aria-hidden": "true" }, s("g", { class: `node c${k % 8}` }, s("circle", { cx: 9, cy: 9, r: 8 }), s("text", { x: 9, y: 13, "text-anchor": "middle", "font-size": 10.5 }, sign(label)))), h("bdi", {}, clip(classes[label], 60)))));
    const first = near.nodes.filter((_, i) => near.hops[i] === 1), same = first.filter((node) => nodes.label[node] >= 0 && nodes.label[node] === nodes.label[row.node]).length;
    const known = first.filter((node) => nodes.label[node] >= 0).length, trained = first.filter((node) => nodes.part[node] === 0).length;
    const text = `${count(first.length)} ${near.hidden ? `of ${count(first.length + near.hidden)} ` : ""}neighbours drawn, ${count(n - 1 - first.length)} nodes two hops away (at most 14 of each). ` +
      (row.label !== null && known ? `Of the ${count(known)} labelled neighbours drawn, ${count(same)} ${same === 1 ? "has" : "have"} its label. ` : "") + `${count(trained)} of the neighbours drawn ${trained === 1 ? "was" : "were"} trained on.`;
    const list = numbers(["neighbour", "label", "predicted", "confidence", "part"], first.map((node) => [h("bdi", {}, clip(nodes.id[node], 60)), h("bdi", {}, className(nodes.label[node]) ?? MISSING), h("bdi", {}, classes[nodes.prediction[node]]), percent(nodes.confidence[node]), PARTS[nodes.part[node]] || "none"]));
    list.firstElementChild.textContent = "The neighbours as a list";
    return [svg, key, h("p", { class: "read" }, text, ` ${short ? "Text" : "Letter"} and colour: true class. Heavy outline: a training node. Dashed ring: predicted wrongly.`), list];
  }
}

function probabilities(top, label, classes) {
  const rows = [];
  for (let k = 0; k < top.length; k += 2) {
    const [c, p] = [top[k], top[k + 1]], bar = h("span", { class: c === label ? "bar own" : "bar" });
    bar.style.width = `${100 * (p || 0)}%`;
    rows.push(h("li", {}, h("span", { class: "bar-name" }, h("bdi", {}, clip(classes[c], 80)), c === label ? " ← its label" : ""), h("span", { class: "track" }, bar), h("span", { class: "bar-value" }, percent(p))));
  }
  const rest = classes.length - rows.length;
  return h("ol", { class: "bars" }, ...rows, rest > 0 ? h("li", { class: "rest" }, `and ${count(rest)} less probable classes`) : null);
}

// The node in the middle, neighbours on a ring, nodes two hops away on an outer ring near those they hang on.
function layout(near, middle) {
  const n = near.nodes.length, links = Array.from({ length: n }, () => new Set());
  for (let e = 0; e < near.edges.length; e += 2) {
    links[near.edges[e]].add(near.edges[e + 1]);
    links[near.edges[e + 1]].add(near.edges[e]);
  }
  const of = (hop) => near.hops.flatMap((value, i) => value === hop ? [i] : []);
  const angle = new Array(n).fill(0), place = new Array(n).fill([middle, middle]);
  const ring = (members, radius) => members.forEach((i, k) => {
    angle[i] = (2 * Math.PI * (k + 0.5)) / members.length;
    place[i] = [middle - radius * Math.cos(angle[i]), middle - radius * Math.sin(angle[i])];
  });
  // Neighbours in the order of a walk among them: those that are joined, or share neighbours, come side by side.
  const bond = (i, j) => 3 * links[i].has(j) + [...links[i]].filter((k) => near.hops[k] > 0 && links[j].has(k)).length;
  const rest = of(1).sort((i, j) => links[i].size - links[j].size || i - j), walk = rest.splice(0, 1);
  while (rest.length) {
    const last = walk[walk.length - 1];
    walk.push(...rest.splice(rest.reduce((best, i, k) => bond(last, i) > bond(last, rest[best]) ? k : best, 0), 1));
  }
  ring(walk, middle * 0.48);
  const towards = (i) => {
    const inner = [...links[i]].filter((j) => near.hops[j] === 1), sum = (f) => inner.reduce((t, j) => t + f(angle[j]), 0);
    return (Math.atan2(sum(Math.sin), sum(Math.cos)) + 2 * Math.PI) % (2 * Math.PI);
  };
  ring(of(2).map((i) => [towards(i), i]).sort((a, b) => a[0] - b[0] || a[1] - b[1]).map(([, i]) => i), middle * 0.88);
  return place;
}
