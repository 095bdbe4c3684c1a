// How well the model does: one function a figure.
const FEW = 30;
const interval = ({ accuracy, low, high }) => `${percent(accuracy)} (${percent(low)} to ${percent(high)})`;

function reliability({ bins }) {
  const used = bins.filter((bin) => bin.n > 0),
    most = Math.max(...bins.map((bin) => bin.n));
  figure(
    "reliability",
    { bins },
    (width) => {
      const strip = 54,
        height = Math.min(width, 400) + strip;
      const c = chart({
        width,
        height,
        x: [0, 1],
        y: [0, 1],
        xFormat: "%",
        yFormat: "%",
        xName: "confidence",
        yName: "share that is right",
        margin: { bottom: 42 + strip },
        label: "Accuracy against confidence in ten bins; the numbers are in the table below.",
      });
      c.svg.append(s("line", { class: "reference", x1: c.x(0), y1: c.y(0), x2: c.x(1), y2: c.y(1) }));
      c.svg.querySelectorAll(".tick-text").forEach((text) => {
        if (text.getAttribute("text-anchor") === "middle") text.setAttribute("y", height - 24);
      });
      c.svg.querySelectorAll(".tick").forEach((line) => line.remove());
      bins.forEach((bin, k) => {
        const tall = bin.n ? Math.max(1, ((strip - 16) * bin.n) / most) : 0,
          x = c.x(k / 10) + 1;
        const wide = c.x(0.1) - c.x(0) - 2,
          floor = c.bottom + strip;
        const tip = `confidence ${10 * k} to ${10 * k + 10} %\n${count(bin.n)} nodes`;
        c.svg.append(
          s("rect", { class: "count", x, y: floor - tall, width: wide, height: tall, "data-tip": tip }),
          s(
            "text",
            { class: "small", x: x + wide / 2, y: floor - tall - 4, "text-anchor": "middle" },
            bin.n ? short(bin.n) : "0",
          ),
        );
      });
      const points = used.map((bin) => [c.x(bin.confidence), c.y(bin.accuracy), bin]);
      c.svg.append(
        s("path", {
          class: "line blue thin",
          d: path(
            points.map((p) => p[0]),
            points.map((p) => p[1]),
          ),
        }),
      );
      for (const [x, y, bin] of points) {
        c.svg.append(
          s("line", { class: "whisker blue", x1: x, x2: x, y1: c.y(bin.low), y2: c.y(bin.high) }),
          s("circle", {
            class: bin.n < FEW ? "dot few" : "dot",
            cx: x,
            cy: y,
            r: 4.5,
            "data-tip": `mean confidence ${percent(bin.confidence)}\nright ${interval(bin)}\n${count(bin.n)} nodes`,
          }),
        );
      }
      return [c.svg];
    },
    numbers(
      ["confidence", "n", "mean confidence", "right", "95 % interval"],
      used.map((bin) => [
        `${bins.indexOf(bin) * 10}–${bins.indexOf(bin) * 10 + 10} %`,
        count(bin.n),
        percent(bin.confidence),
        percent(bin.accuracy),
        `${percent(bin.low)} to ${percent(bin.high)}`,
      ]),
    ),
  );
}

function histogram(id, data, name, format) {
  figure(id, data, (width) => {
    const { edges } = data,
      up = data.right || data.all,
      down = data.wrong || up.map(() => 0);
    const c = chart({
      width,
      height: 270,
      x: [edges[0], edges[edges.length - 1]],
      y: [-1.08 * Math.max(...down) || 0, 1.05 * Math.max(...up, 1)],
      xFormat: format,
      xName: name,
      yName: "nodes",
      whole: true,
      yText: (v) => short(Math.abs(v)),
      label: `Histogram of ${name} of ${data.n} test nodes`,
    });
    const bar = (k, value, kind, text) => {
      const x = c.x(edges[k]) + 0.5,
        top = c.y(Math.max(value, 0));
      return s("rect", {
        class: kind,
        x,
        width: Math.max(1, c.x(edges[k + 1]) - x - 0.5),
        y: top,
        height: Math.abs(c.y(value) - c.y(0)),
        "data-tip": text,
      });
    };
    up.forEach((value, k) => {
      const range =
        format === "%"
          ? `${percent(edges[k])} to ${percent(edges[k + 1])}`
          : `${number(edges[k])} to ${number(edges[k + 1])}`;
      const text =
        `${name} ${range}\n` +
        (data.right ? `${count(value)} right, ${count(down[k])} wrong` : `${count(value)} nodes`);
      if (value) c.svg.append(bar(k, value, "right", text));
      if (down[k]) c.svg.append(bar(k, -down[k], "wrong", text));
    });
    c.svg.append(
      s("line", { class: "axis", x1: c.x(edges[0]), x2: c.x(edges[edges.length - 1]), y1: c.y(0), y2: c.y(0) }),
    );
    const sum = (values) => values.reduce((a, b) => a + b, 0);
    const keys = data.right
      ? [
          [boxMark("right"), `right (n = ${count(sum(up))})`],
          [boxMark("wrong"), `wrong (n = ${count(sum(down))})`],
        ]
      : [[boxMark("right"), `test nodes, labels unknown (n = ${count(data.n)})`]];
    const far = data.clipped
      ? [h("p", { class: "legend" }, `${count(data.clipped)} far values are counted in the outermost bars.`)]
      : [];
    return [legend(...keys), c.svg, ...far];
  });
}

const RANKED = {
  confidence: ["confidence", "line blue"],
  energy: ["energy", "line orange dash"],
  mutual_information: ["mutual information", "line green dots"],
};

function risk(data) {
  const at = (curve, coverage) => curve.coverage.findIndex((value) => value >= coverage - 1e-9);
  const shares = [0.25, 0.5, 0.75, 0.9, 1];
  figure(
    "risk",
    data,
    (width) => {
      const top =
        Math.max(data.all, ...data.curves.flatMap((curve) => curve.risk.filter((_, k) => curve.n[k] >= FEW))) * 1.15 ||
        0.05;
      const c = chart({
        width,
        height: Math.min(width, 400),
        x: [0, 1],
        y: [0, Math.min(1, top)],
        xFormat: "%",
        yFormat: "%",
        xName: "coverage: share of nodes answered",
        yName: "share of answers that are wrong",
        label: "Risk against coverage; numbers in the table below",
      });
      const clamp = (value) => c.y(Math.min(value, Math.min(1, top)));
      const first = data.curves[0],
        xs = first.coverage.map(c.x);
      c.svg.append(
        s("path", {
          class: "band",
          d:
            path([...xs, ...[...xs].reverse()], [...first.low.map(clamp), ...[...first.high].reverse().map(clamp)]) +
            "Z",
        }),
        s("line", { class: "reference", x1: c.x(0), x2: c.x(1), y1: c.y(data.all), y2: c.y(data.all) }),
      );
      for (const curve of [...data.curves].reverse())
        c.svg.append(
          s("path", { class: RANKED[curve.by][1], d: path(curve.coverage.map(c.x), curve.risk.map(clamp)) }),
        );
      first.coverage.forEach((coverage, k) => {
        c.svg.append(
          s("rect", {
            class: "hit",
            x: c.x(coverage) - 4,
            width: 8,
            y: c.m.top,
            height: c.bottom - c.m.top,
            "data-tip": `the ${count(first.n[k])} most confident (${percent(coverage)})\nwrong ${interval({ accuracy: first.risk[k], low: first.low[k], high: first.high[k] })}`,
          }),
        );
      });
      return [
        legend(...data.curves.map((curve) => [lineMark(RANKED[curve.by][1]), `ranked by ${RANKED[curve.by][0]}`])),
        c.svg,
      ];
    },
    data.absent
      ? null
      : numbers(
          ["coverage", ...data.curves.map((curve) => `wrong, by ${RANKED[curve.by][0]}`)],
          shares.map((share) => [
            percent(share),
            ...data.curves.map((curve) => {
              const k = at(curve, share);
              return k < 0 ? MISSING : `${percent(curve.risk[k])} (n = ${count(curve.n[k])})`;
            }),
          ]),
        ),
  );
}

function stratum(id, data, overall) {
  const rows = data.rows || [];
  figure(
    id,
    data,
    (width) => {
      const longest = Math.max(...rows.map((row) => row.name.length));
      const left = Math.min(width * 0.36, 22 + 6.6 * longest),
        step = 34;
      const least = Math.min(overall, ...rows.flatMap((row) => [row.n < FEW ? row.accuracy : row.low, row.confidence]));
      const c = chart({
        width,
        height: rows.length * step + 54,
        x: [Math.max(0, Math.floor(least * 10 - 0.3) / 10), 1],
        y: [0, 1],
        yAxis: false,
        xFormat: "%",
        xTicks: width < 420 ? 3 : 5,
        xName: "right, and mean confidence",
        margin: { left, right: 78, top: 12 },
        label: "Accuracy and mean confidence by group; numbers in the table below",
      });
      c.svg.append(s("line", { class: "reference", x1: c.x(overall), x2: c.x(overall), y1: c.m.top, y2: c.bottom }));
      rows.forEach((row, k) => {
        const y = c.m.top + step * (k + 0.5),
          few = row.n < FEW ? " few" : "";
        const tip = `${row.name}: ${count(row.n)} nodes\nright ${interval(row)}\nmean confidence ${percent(row.confidence)}`;
        const cx = c.x(row.confidence);
        c.svg.append(
          s("line", { class: "grid", x1: c.m.left, x2: width - 78, y1: y, y2: y }),
          s(
            "text",
            { class: "group", x: c.m.left - 10, y: y + 4, "text-anchor": "end" },
            clip(row.name, Math.floor((left - 14) / 6.4)),
          ),
          s("line", { class: "whisker blue", x1: Math.max(c.m.left, c.x(row.low)), x2: c.x(row.high), y1: y, y2: y }),
          s("circle", { class: "dot" + few, cx: c.x(row.accuracy), cy: y, r: 5 }),
          s("path", { class: "diamond", d: `M${cx},${y - 7}l6,7l-6,7l-6,-7Z` }),
          s("text", { class: "small", x: width - 2, y: y + 4, "text-anchor": "end" }, `n = ${count(row.n)}`),
          s("rect", { class: "hit", x: 0, width, y: y - step / 2, height: step, "data-tip": tip }),
        );
      });
      const diamond = s("path", { class: "diamond", d: "M13,0l6,6l-6,6l-6,-6Z" });
      return [
        legend([s("circle", { class: "dot", cx: 13, cy: 6, r: 5 }), "right"], [diamond, "mean confidence"]),
        c.svg,
      ];
    },
    data.absent
      ? null
      : numbers(
          ["group", "n", "right", "95 % interval", "mean confidence", "Brier"],
          rows.map((row) => [
            h("bdi", {}, row.name),
            count(row.n),
            percent(row.accuracy),
            `${percent(row.low)} to ${percent(row.high)}`,
            percent(row.confidence),
            number(row.brier),
          ]),
        ),
  );
}

function outliers(data) {
  const KINDS = ["line blue", "line orange dash", "line green dots", "line purple longdash", "line ink"];
  figure(
    "outliers",
    data,
    (width) => {
      const { grid, series } = data,
        high = Math.max(...series.flatMap((one) => one.density)) * 1.08;
      const c = chart({
        width,
        height: 300,
        x: [grid[0], grid[grid.length - 1]],
        y: [0, high],
        xName: "energy",
        yName: "density",
        label: "Densities of the energy",
      });
      series.forEach((one, k) => {
        const kind = KINDS[k % KINDS.length],
          line = path(grid.map(c.x), one.density.map(c.y));
        c.svg.append(
          s("path", {
            class: kind.replace("line", "area"),
            d: `${line}L${c.x(grid[grid.length - 1])},${c.y(0)}L${c.x(grid[0])},${c.y(0)}Z`,
          }),
          s("path", { class: kind, d: line }),
        );
      });
      c.svg.append(
        s("line", { class: "reference", x1: c.x(data.threshold), x2: c.x(data.threshold), y1: c.m.top, y2: c.bottom }),
      );
      return [
        legend(
          ...series.map((one, k) => [lineMark(KINDS[k % KINDS.length]), `${clip(one.name, 60)} (n = ${count(one.n)})`]),
        ),
        c.svg,
      ];
    },
    data && !data.absent
      ? numbers(
          ["graph", "n", "AUROC of the energy", "missed"],
          data.series.map((one) => [h("bdi", {}, one.name), count(one.n), number(one.auroc), percent(one.missed)]),
        )
      : null,
  );
}
