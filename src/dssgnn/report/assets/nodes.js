// The table of nodes, and the dialog that shows one of them.
const PAGE = 25;
const PARTS = ["train", "val", "test"];
const MAY_BE_ZERO = new Set(["mutual_information", "chaos_energy"]); // a method without them is not asked about them
const KIND_NAMES = { hard: "hardest", ood: "most OOD", sample: "sample" };

function nodeTable(data, classes) {
  const { nodes } = data,
    className = (k) => (k < 0 ? null : classes[k]);
  const rows = data.row.map((node, k) => ({
    k,
    node,
    id: nodes.id[node],
    part: PARTS[nodes.part[node]] || "none",
    label: className(nodes.label[node]),
    prediction: missing(nodes.confidence[node]) ? null : className(nodes.prediction[node]),
    confidence: nodes.confidence[node],
    wrong: nodes.label[node] >= 0 && nodes.label[node] !== nodes.prediction[node],
    kinds: data.kinds[k],
    loss: data.loss[k],
    energy: data.energy[k],
    ood_score: data.ood_score[k],
    mutual_information: data.mutual_information[k],
    chaos_energy: data.chaos_energy[k],
    entropy: data.entropy[k],
    degree: data.degree ? data.degree[k] : null,
    homophily: data.homophily ? data.homophily[k] : null,
    distance: data.distance ? data.distance[k] : null,
  }));
  const integer = (value) => (missing(value) ? MISSING : count(value));
  const COLUMNS = [
    ["id", "Node", null],
    ["label", "Label", null],
    ["prediction", "Prediction", null],
    ["confidence", "Confidence", percent],
    ["loss", "Loss", number, "−log of the probability given to the label: higher is harder"],
    ["ood_score", "OOD score", number, "higher is more out of distribution"],
    ["degree", "Neighbours", integer],
    ["homophily", "Homophily", percent, "share of labelled neighbours with the same label"],
    ["distance", "Distance", integer, "hops to the nearest training node"],
    ["energy", "Energy", number],
    ["mutual_information", "Mutual information", number, "how much the model disagrees with itself, in nats"],
    ["chaos_energy", "Chaos energy", number, "variance of the logits"],
    ["part", "Part", null],
    ["kinds", "Listed as", null],
  ].filter(([key]) => key === "id" || rows.some((row) => (MAY_BE_ZERO.has(key) ? row[key] : !missing(row[key]))));
  const state = { key: "loss", down: true, text: "", kind: "", shown: PAGE };
  if (!rows.some((row) => !missing(row.loss))) state.key = "ood_score";
  let visible = [];

  const heads = COLUMNS.map(([key, name, , hint]) => {
    const button = h(
      "button",
      { type: "button", "data-tip": hint },
      name,
      h("span", { class: "arrow", "aria-hidden": "true" }),
    );
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
    const order =
      typeof left === "number" ? left - right : String(left).localeCompare(String(right), "en", { numeric: true });
    return (state.down ? -order : order) || a.k - b.k;
  };
  const matches = (row) =>
    (!state.kind || (state.kind === "wrong" ? row.wrong : row.kinds.includes(state.kind))) &&
    [row.id, row.label, row.prediction, row.part].some(
      (text) => !missing(text) && text.toLowerCase().includes(state.text),
    );

  const cell = (row, [key, , format]) => {
    if (key === "id") return h("th", { scope: "row" }, h("bdi", {}, clip(row.id, 40)));
    if (key === "kinds") return h("td", {}, row.kinds.map((kind) => KIND_NAMES[kind]).join(", "));
    if (format) return h("td", { class: "num" }, format(row[key]));
    const mark =
      key === "prediction" && row.label !== null
        ? h(
            "span",
            { class: row.wrong ? "cross" : "check", role: "img", "aria-label": row.wrong ? "wrong" : "right" },
            row.wrong ? "✗ " : "✓ ",
          )
        : null;
    return h("td", {}, mark, missing(row[key]) ? MISSING : h("bdi", {}, clip(row[key], 40)));
  };
  const line = (row) => {
    const tr = h(
      "tr",
      { tabindex: "0", "aria-haspopup": "dialog", "data-k": row.k },
      ...COLUMNS.map((column) => cell(row, column)),
    );
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
    $("count").textContent = visible.length
      ? `${count(seen)} of ${count(visible.length)} shown`
      : "No listed node matches.";
    $("more").hidden = visible.length <= state.shown;
  }
  $("search").addEventListener("input", (event) => {
    state.text = event.target.value.trim().toLowerCase();
    state.shown = PAGE;
    show();
  });
  $("kind").addEventListener("change", (event) => {
    state.kind = event.target.value;
    state.shown = PAGE;
    show();
  });
  $("more").addEventListener("click", () => {
    const next = state.shown;
    state.shown += 2 * PAGE;
    show();
    $("table").tBodies[0].rows[next]?.focus();
  });
  $("table-note").textContent =
    `Of ${count(data.eligible)} nodes that are in neither the training nor the validation part, this lists the ` +
    `${count(data.counts.hard)} hardest (least probability on their label), the ${count(data.counts.ood)} most out of distribution and ${count(data.counts.sample)} drawn at random, for comparison. ` +
    "Choose a row, by click or with the arrow keys and Enter, to see its probabilities and its neighbourhood. Bad: hard nodes whose confidence is high.";
  show();

  const rowOf = new Map(rows.map((row) => [row.node, row]));
  const dialog = $("detail"),
    body = dialog.firstElementChild;
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    hideTip();
    document.querySelector(`#table tr[data-k="${dialog.dataset.k}"]`)?.focus();
  });
  dialog.addEventListener("keydown", (event) => {
    const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (turn) step(turn);
  });
  const step = (by) => {
    const at = visible.findIndex((row) => String(row.k) === dialog.dataset.k),
      row = visible[at + by];
    if (row) {
      state.shown = Math.max(state.shown, at + by + 1);
      open(row);
    }
  };

  function open(row) {
    if (!document.querySelector(`#table tr[data-k="${row.k}"]`)) show();
    dialog.dataset.k = row.k;
    const button = (text, action) => {
      const b = h("button", { type: "button" }, text);
      b.addEventListener("click", action);
      return b;
    };
    const at = visible.indexOf(row);
    const previous = button("← Previous", () => step(-1)),
      next = button("Next →", () => step(1));
    previous.disabled = at <= 0;
    next.disabled = at < 0 || at === visible.length - 1;
    const verdict =
      row.label === null
        ? "Its label is unknown."
        : row.wrong
          ? "✗ The prediction is wrong."
          : "✓ The prediction is right.";
    const facts = COLUMNS.filter(([key]) => !["id", "kinds"].includes(key)).flatMap(([key, name, format]) => [
      h("dt", {}, name),
      h("dd", {}, h("bdi", {}, format ? format(row[key]) : (row[key] ?? MISSING))),
    ]);
    const close = button("Close", () => dialog.close());
    body.replaceChildren(
      h("div", { class: "dialog-top" }, previous, next, close),
      h("h2", { id: "detail-title" }, "Node ", h("bdi", {}, row.id)),
      h("p", { class: row.wrong ? "cross" : "" }, verdict),
      h(
        "div",
        { class: "detail" },
        h(
          "div",
          {},
          h("h3", {}, "Probabilities"),
          probabilities(data.top[row.k], nodes.label[row.node], classes),
          h("dl", { class: "facts" }, ...facts),
        ),
        h(
          "div",
          {},
          h("h3", {}, "Neighbourhood"),
          ...(data.near.length
            ? around(data.near[row.k], row, { nodes, classes, rowOf, open })
            : [
                h(
                  "p",
                  { class: "absent" },
                  "The model folder holds no edges (it was written with --no-graph), so the neighbourhood cannot be drawn.",
                ),
              ]),
        ),
      ),
    );
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    close.focus();
  }
}
