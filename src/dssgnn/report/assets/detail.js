// What the dialog shows of one node.
function probabilities(top, label, classes) {
  const rows = [];
  for (let k = 0; k < top.length; k += 2) {
    const [c, p] = [top[k], top[k + 1]],
      bar = h("span", { class: c === label ? "bar own" : "bar" });
    bar.style.width = `${100 * (p || 0)}%`;
    rows.push(
      h(
        "li",
        {},
        h("span", { class: "bar-name" }, h("bdi", {}, clip(classes[c], 80)), c === label ? " ← its label" : ""),
        h("span", { class: "track" }, bar),
        h("span", { class: "bar-value" }, percent(p)),
      ),
    );
  }
  const rest = classes.length - rows.length;
  return h(
    "ol",
    { class: "bars" },
    ...rows,
    rest > 0 ? h("li", { class: "rest" }, `and ${count(rest)} less probable classes`) : null,
  );
}

// The node in the middle, neighbours on a ring, nodes two hops away on an outer ring near those they hang on.
function layout(near, middle) {
  const n = near.nodes.length,
    links = Array.from({ length: n }, () => new Set());
  for (let e = 0; e < near.edges.length; e += 2) {
    links[near.edges[e]].add(near.edges[e + 1]);
    links[near.edges[e + 1]].add(near.edges[e]);
  }
  const of = (hop) => near.hops.flatMap((value, i) => (value === hop ? [i] : []));
  const angle = new Array(n).fill(0),
    place = new Array(n).fill([middle, middle]);
  const ring = (members, radius) =>
    members.forEach((i, k) => {
      angle[i] = (2 * Math.PI * (k + 0.5)) / members.length;
      place[i] = [middle - radius * Math.cos(angle[i]), middle - radius * Math.sin(angle[i])];
    });
  // Neighbours in the order of a walk among them: those that are joined, or share neighbours, come side by side.
  const bond = (i, j) => 3 * links[i].has(j) + [...links[i]].filter((k) => near.hops[k] > 0 && links[j].has(k)).length;
  const rest = of(1).sort((i, j) => links[i].size - links[j].size || i - j),
    walk = rest.splice(0, 1);
  while (rest.length) {
    const last = walk[walk.length - 1];
    walk.push(
      ...rest.splice(
        rest.reduce((best, i, k) => (bond(last, i) > bond(last, rest[best]) ? k : best), 0),
        1,
      ),
    );
  }
  ring(walk, middle * 0.48);
  const towards = (i) => {
    const inner = [...links[i]].filter((j) => near.hops[j] === 1),
      sum = (f) => inner.reduce((t, j) => t + f(angle[j]), 0);
    return (Math.atan2(sum(Math.sin), sum(Math.cos)) + 2 * Math.PI) % (2 * Math.PI);
  };
  ring(
    of(2)
      .map((i) => [towards(i), i])
      .sort((a, b) => a[0] - b[0] || a[1] - b[1])
      .map(([, i]) => i),
    middle * 0.88,
  );
  return place;
}

// The drawing of a neighbourhood, its key, and the same as a list; `rowOf` and `open` lead to other listed nodes.
function around(near, row, { nodes, classes, rowOf, open }) {
  const size = 340,
    middle = size / 2,
    n = near.nodes.length;
  if (n === 1) return [h("p", { class: "absent" }, "It has no neighbours.")];
  const place = layout(near, middle);
  const present = [...new Set(near.nodes.map((node) => nodes.label[node]).filter((label) => label >= 0))].sort(
    (a, b) => a - b,
  );
  const short = present.every((label) => classes[label].length <= 2); // else letters, explained by the key
  const sign = (label) =>
    label < 0 ? "?" : short ? classes[label] : String.fromCodePoint(65 + present.indexOf(label));
  const svg = s("svg", {
    viewBox: `0 0 ${size} ${size}`,
    class: "near",
    role: "group",
    "aria-label": "Drawing of the neighbourhood; the list below says the same",
  });
  for (let e = 0; e < near.edges.length; e += 2) {
    const [a, b] = [near.edges[e], near.edges[e + 1]];
    svg.append(
      s("line", {
        class: a === 0 || b === 0 ? "edge own" : "edge",
        x1: place[a][0],
        y1: place[a][1],
        x2: place[b][0],
        y2: place[b][1],
      }),
    );
  }
  for (let i = n - 1; i >= 0; i--) {
    const node = near.nodes[i],
      label = nodes.label[node],
      other = rowOf.get(node),
      r = i === 0 ? 15 : near.hops[i] === 1 ? 11 : 8.5;
    const wrong = label >= 0 && label !== nodes.prediction[node],
      [x, y] = place[i];
    const name = (k) => (k < 0 ? "unknown" : clip(classes[k], 60));
    const tip = [
      `${clip(nodes.id[node], 60)} (${PARTS[nodes.part[node]] || "no part"})`,
      `label ${name(label)}`,
      `predicted ${name(nodes.prediction[node])}, ${percent(nodes.confidence[node])}`,
    ].join("\n");
    const linked = other && i > 0;
    const mark = s(
      "g",
      {
        class: [
          "node",
          `c${label < 0 ? "x" : present.indexOf(label) % 8}`,
          nodes.part[node] === 0 && "train",
          linked && "linked",
        ]
          .filter(Boolean)
          .join(" "),
        "data-tip": tip,
        ...(linked ? { tabindex: "0", role: "button", "aria-label": `Open node ${nodes.id[node]}` } : {}),
      },
      s("circle", { cx: x, cy: y, r }),
      wrong ? s("circle", { class: "ring", cx: x, cy: y, r: r + 3.5 }) : null,
      s("text", { x, y: y + (r > 10 ? 4 : 3.2), "text-anchor": "middle", "font-size": r > 10 ? 12 : 9.5 }, sign(label)),
    );
    if (linked) {
      mark.addEventListener("click", () => open(other));
      mark.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          open(other);
        }
      });
    }
    svg.append(mark);
  }
  const key = h(
    "ul",
    { class: "key" },
    ...present.map((label, k) =>
      h(
        "li",
        {},
        s(
          "svg",
          { width: 18, height: 18, "aria-hidden": "true" },
          s(
            "g",
            { class: `node c${k % 8}` },
            s("circle", { cx: 9, cy: 9, r: 8 }),
            s("text", { x: 9, y: 13, "text-anchor": "middle", "font-size": 10.5 }, sign(label)),
          ),
        ),
        h("bdi", {}, clip(classes[label], 60)),
      ),
    ),
  );
  const first = near.nodes.filter((_, i) => near.hops[i] === 1),
    same = first.filter((node) => nodes.label[node] >= 0 && nodes.label[node] === nodes.label[row.node]).length;
  const known = first.filter((node) => nodes.label[node] >= 0).length,
    trained = first.filter((node) => nodes.part[node] === 0).length;
  const text =
    `${count(first.length)} ${near.hidden ? `of ${count(first.length + near.hidden)} ` : ""}neighbours drawn, ` +
    `${count(n - 1 - first.length)} nodes two hops away (at most 14 of each). ` +
    (row.label !== null && known
      ? `Of the ${count(known)} labelled neighbours drawn, ${count(same)} ${same === 1 ? "has" : "have"} its label. `
      : "") +
    `${count(trained)} of the neighbours drawn ${trained === 1 ? "was" : "were"} trained on.`;
  const list = numbers(
    ["neighbour", "label", "predicted", "confidence", "part"],
    first.map((node) => [
      h("bdi", {}, clip(nodes.id[node], 60)),
      h("bdi", {}, classes[nodes.label[node]] ?? MISSING),
      h("bdi", {}, classes[nodes.prediction[node]]),
      percent(nodes.confidence[node]),
      PARTS[nodes.part[node]] || "none",
    ]),
  );
  list.firstElementChild.textContent = "The neighbours as a list";
  return [
    svg,
    key,
    h(
      "p",
      { class: "read" },
      text,
      ` ${short ? "Text" : "Letter"} and colour: true class. Heavy outline: a training node. Dashed ring: predicted wrongly.`,
    ),
    list,
  ];
}
