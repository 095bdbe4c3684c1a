// The parts of the page that are text, the tooltip, and the start.
const data = JSON.parse($("data").textContent);

function tiles(metrics) {
  if (metrics.absent) {
    document.querySelectorAll("#tiles, #short .read, #where > .read").forEach((part) => part.remove());
    return;
  }
  const guess = metrics.guess;
  const TILES = [
    ["accuracy", "Accuracy", percent, guess.accuracy, "one answer for all", "higher is better"],
    ["brier", "Brier score", number, guess.brier, "one answer for all", "lower is better, 0 to 2"],
    ["nll", "Negative log-likelihood", number, guess.nll, "one answer for all", "lower is better"],
    ["ece", "Calibration error (ECE)", number, metrics.chance_ece, "chance", "lower is better"],
  ];
  $("tiles").replaceChildren(
    ...TILES.map(([key, name, format, reference, what, better]) => {
      const { value, low, high } = metrics[key],
        ends = [low, high, value, ...(missing(reference) ? [] : [reference])];
      const least = key === "ece" ? 0 : Math.min(...ends),
        most = Math.max(...ends),
        pad = (most - least || 1) * 0.12;
      const x = scale(least - pad, most + pad, 0, 100),
        at = (v) => `${x(v).toFixed(2)}%`;
      const bar = s(
        "svg",
        { class: "interval", height: 22, role: "img", "aria-label": `95 % interval ${format(low)} to ${format(high)}` },
        s("line", { class: "grid", x1: 0, x2: "100%", y1: 11, y2: 11 }),
        s("line", { class: "whisker blue wide", x1: at(low), x2: at(high), y1: 11, y2: 11 }),
        missing(reference)
          ? null
          : s("line", { class: "reference", x1: at(reference), x2: at(reference), y1: 0, y2: 22 }),
        s("circle", { class: "dot", cx: at(value), cy: 11, r: 5 }),
      );
      const others = ["val", "train"]
        .filter((part) => !missing(metrics.other[part][key]))
        .map((part) => `${part} ${format(metrics.other[part][key])}`);
      return h(
        "div",
        { class: "tile", id: `tile-${key}` },
        h("h3", {}, name),
        h("p", { class: "value" }, format(value)),
        bar,
        h("p", { class: "small-text" }, `95\u00a0%: ${format(low)} to ${format(high)}`),
        missing(reference)
          ? null
          : h(
              "p",
              { class: "small-text" },
              h("span", { "aria-hidden": "true" }, "┆"),
              ` ${what}: ${format(reference)}`,
            ),
        others.length ? h("p", { class: "small-text" }, others.join(" · ")) : null,
        h("p", { class: "small-text" }, `n = ${count(metrics.n)} · ${better}`),
      );
    }),
  );
}

function about(facts) {
  const parts = (counts) => PARTS.map((part) => `${count(counts[part])} ${part}`).join(", ");
  const plain = (value) =>
    missing(value) ? MISSING : typeof value === "object" ? JSON.stringify(value) : String(value);
  const pairs = (object) =>
    Object.entries(object).map(([key, value]) => `${key} = ${missing(value) ? "none" : plain(value)}`);
  const training = facts.training,
    day = missing(facts.created) ? null : String(facts.created).replace("T", " ").slice(0, 16);
  $("lede").textContent = [
    `${count(facts.nodes)} nodes`,
    missing(facts.edges) ? null : `${count(facts.edges)} edges`,
    `${count(facts.classes.length)} classes`,
    missing(facts.features) ? null : `${count(facts.features)} features`,
    day && `trained ${day}`,
  ]
    .filter(Boolean)
    .join(" · ");
  const shown =
    facts.classes
      .slice(0, 40)
      .map((name) => clip(name, 60))
      .join(", ") + (facts.classes.length > 40 ? ` and ${facts.classes.length - 40} more` : "");
  const rows = [
    ["Method", facts.method],
    ["Graph", facts.graph],
    ["Classes", shown],
    ["Split", `${parts(facts.parts)} nodes; ${plain(facts.split)}`],
    ["Labelled", parts(facts.labelled)],
    [
      "Training",
      [
        missing(training.epochs) ? null : `${count(training.epochs)} epochs`,
        missing(training.best_epoch) ? null : `best epoch ${count(training.best_epoch)}`,
        missing(training.seconds) ? null : `${training.seconds.toFixed(1)} s`,
        missing(training.stopped) ? null : `stopped: ${plain(training.stopped)}`,
        missing(training.parameters) ? null : `${count(training.parameters)} parameters`,
      ]
        .filter(Boolean)
        .join(", ") || MISSING,
    ],
    ["Settings", pairs(facts.parameters)],
    ["Graph operator", pairs(facts.operator)],
    ["Versions", pairs(facts.versions)],
  ];
  $("about").append(
    ...rows.flatMap(([term, value]) => [
      h("dt", {}, term),
      Array.isArray(value)
        ? h("dd", {}, h("ul", { class: "settings" }, ...value.map((text) => h("li", {}, h("code", {}, text)))))
        : h("dd", {}, h("bdi", {}, plain(value))),
    ]),
  );
}

const tip = $("tip");
function hideTip() {
  tip.hidden = true;
}
function showTip(target, x, y) {
  const home = $("detail").open ? $("detail") : document.body; // a modal dialog lies above everything outside it
  if (tip.parentNode !== home) home.append(tip);
  tip.textContent = target.getAttribute("data-tip");
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18}px`;
}
document.addEventListener("pointermove", (event) => {
  const target = event.target.closest?.("[data-tip]");
  if (target) showTip(target, event.clientX, event.clientY);
  else hideTip();
});
document.addEventListener("focusin", (event) => {
  if (!event.target.matches("[data-tip]:focus-visible")) {
    hideTip();
    return;
  }
  const box = event.target.getBoundingClientRect();
  showTip(event.target, box.left, box.bottom - 10);
});
document.addEventListener("scroll", hideTip, true);

$("findings").append(...data.findings.map((text) => h("li", {}, text)));
tiles(data.metrics);
about(data.about);
if (data.reliability.absent) figure("reliability", data.reliability);
else reliability(data.reliability);
histogram("confidence", data.confidence, "confidence", "%");
histogram("energy", data.energy, "energy");
risk(data.risk);
outliers(data.outliers);
for (const by of ["degree", "homophily", "distance", "class"])
  stratum(`by-${by}`, data.strata[by], data.metrics.absent ? 0 : data.metrics.accuracy.value);
filters(data.filters);
orders(data.orders);
history(data.history);
nodeTable(data.table, data.about.classes);
document.documentElement.dataset.ready = "";
