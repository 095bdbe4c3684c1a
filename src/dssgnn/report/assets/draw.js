// Elements, numbers, scales and axes. Text from the data enters the page as text nodes and attributes only.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false)
      element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
const h = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const $ = (id) => document.getElementById(id);

const missing = (value) => value === null || value === undefined;
const MISSING = "–";
const count = (value) => (missing(value) ? MISSING : Number(value).toLocaleString("en"));
const short = (value) =>
  value < 1000
    ? String(value)
    : value < 99950
      ? `${(value / 1000).toFixed(value < 9950 ? 1 : 0)}k`
      : `${Math.round(value / 1000)}k`;
// A share that is not quite 0 or 1 does not read as if it were.
const percent = (value) => {
  if (missing(value)) return MISSING;
  if (value > 0 && value < 5e-4) return "<\u00a00.1\u00a0%";
  if (value < 1 && value >= 0.9995) return ">\u00a099.9\u00a0%";
  return `${(100 * value).toFixed(1)}\u00a0%`;
};
const number = (value) => {
  if (missing(value)) return MISSING;
  const size = Math.abs(value);
  return (
    size >= 1e5 || (size > 0 && size < 5e-4) ? value.toExponential(1) : value.toFixed(size >= 100 ? 1 : 3)
  ).replace("-", "−");
};
const clip = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);

function ticks(low, high, wanted) {
  const raw = (high - low) / wanted,
    power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 2.5, 5, 10].find((m) => m * power >= raw * 0.7);
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) values.push(k * step);
  return { values, digits: Math.max(0, -Math.floor(Math.log10(step) + 1e-9) + (step / power === 2.5 ? 1 : 0)) };
}
const scale = (low, high, from, to) => (value) => from + ((to - from) * (value - low)) / (high - low);
const path = (xs, ys) => {
  let pen = "M",
    text = "";
  xs.forEach((x, k) => {
    if (missing(x) || missing(ys[k])) {
      pen = "M";
      return;
    }
    text += `${pen}${x.toFixed(1)},${ys[k].toFixed(1)}`;
    pen = "L";
  });
  return text;
};

// An empty chart with axes: {width, height, x: [low, high], y: [low, high], names, formats}.
function chart(options) {
  const { width, height, label, xName, yName } = options;
  const m = { top: 12, right: 22, bottom: xName ? 42 : 26, left: yName ? 56 : 44, ...options.margin };
  const x = scale(...options.x, m.left, width - m.right),
    y = scale(...options.y, height - m.bottom, m.top);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  const write = (value, digits, format) =>
    format === "%" ? `${(100 * value).toFixed(Math.max(0, digits - 2))} %` : value.toFixed(digits).replace("-", "−");
  const across = ticks(...options.x, options.xTicks || Math.max(2, Math.min(6, width / 90)));
  for (const value of across.values) {
    svg.append(
      s("line", { class: "tick", x1: x(value), x2: x(value), y1: height - m.bottom, y2: height - m.bottom + 4 }),
      s(
        "text",
        { class: "tick-text", x: x(value), y: height - m.bottom + 16, "text-anchor": "middle" },
        write(value, across.digits, options.xFormat),
      ),
    );
  }
  if (options.yAxis !== false) {
    const up = ticks(...options.y, options.yTicks || Math.max(2, height / 65));
    for (const value of options.whole ? up.values.filter(Number.isInteger) : up.values) {
      const text = options.yText ? options.yText(value) : write(value, up.digits, options.yFormat);
      svg.append(
        s("line", { class: "grid", x1: m.left, x2: width - m.right, y1: y(value), y2: y(value) }),
        s("text", { class: "tick-text", x: m.left - 7, y: y(value) + 4, "text-anchor": "end" }, text),
      );
    }
  }
  svg.append(
    s("line", { class: "axis", x1: m.left, x2: width - m.right, y1: height - m.bottom, y2: height - m.bottom }),
  );
  if (xName)
    svg.append(
      s(
        "text",
        { class: "axis-name", x: (m.left + width - m.right) / 2, y: height - 6, "text-anchor": "middle" },
        xName,
      ),
    );
  if (yName) {
    const middle = (m.top + height - m.bottom) / 2;
    svg.append(
      s(
        "text",
        { class: "axis-name", transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" },
        yName,
      ),
    );
  }
  return { svg, x, y, m, bottom: height - m.bottom };
}

const legend = (...entries) =>
  h(
    "p",
    { class: "legend" },
    ...entries.map(([mark, text]) =>
      h("span", {}, s("svg", { width: 26, height: 12, "aria-hidden": "true" }, mark), h("bdi", {}, text)),
    ),
  );
const lineMark = (kind) => s("line", { class: kind, x1: 1, x2: 25, y1: 6, y2: 6 });
const boxMark = (kind) => s("rect", { class: kind, x: 5, y: 0, width: 16, height: 12 });

const numbers = (head, rows) =>
  h(
    "details",
    { class: "numbers" },
    h("summary", {}, "The numbers"),
    h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "The numbers of this figure" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, ...rows.map((row) => h("tr", {}, ...row.map((cell) => h("td", {}, cell))))),
      ),
    ),
  );

// Fill a figure: `draw(width)` gives the nodes of the plot, again whenever the width changes.
function figure(id, content, draw, table) {
  const frame = $(id),
    plot = frame.querySelector(".plot");
  if (!content) {
    frame.remove();
    return;
  }
  if (content.absent) {
    plot.replaceWith(h("p", { class: "absent" }, content.absent));
    frame.querySelector("figcaption").remove();
    return;
  }
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.floor(plot.getBoundingClientRect().width);
    if (width && width !== drawn) {
      drawn = width;
      plot.replaceChildren(...draw(width));
    }
  }).observe(plot);
  if (table) frame.append(table);
}

// Several small charts side by side, as many in a row as fit.
function panels(width, items, draw, least = 230) {
  const fit = Math.max(1, Math.floor(width / least)),
    columns = Math.ceil(items.length / Math.ceil(items.length / fit));
  const each = Math.floor((width - 16 * (columns - 1)) / columns);
  return h(
    "div",
    { class: "panels" },
    ...items.map((item) => {
      const panel = h("div", {}, ...draw(item, Math.min(each, 420)));
      panel.style.width = `${each}px`;
      return panel;
    }),
  );
}
