// What the model learned and how it was trained: one function a figure.
function filters(data) {
  const KINDS = [
    ["low", "low-pass", "line blue"],
    ["high", "high-pass", "line orange dash"],
    ["together", "together", "line ink dots"],
  ];
  $("filters").classList.toggle("wide", !data.absent && data.layers.length > 2);
  figure("filters", data, (width) => {
    const values = data.layers.flatMap((layer) => KINDS.flatMap(([key]) => layer[key] || []));
    const low = Math.min(0, ...values),
      high = Math.max(0.1, ...values),
      pad = (high - low) * 0.05,
      { frequencies } = data;
    const shown = KINDS.filter(([key]) => data.layers.some((layer) => layer[key]));
    return [
      legend(...shown.map(([, name, kind]) => [lineMark(kind), name])),
      panels(width, data.layers, (layer, each) => {
        const c = chart({
          width: each,
          height: 210,
          x: [0, frequencies[frequencies.length - 1]],
          y: [low && low - pad, high + pad],
          xTicks: 4,
          yTicks: 4,
          xName: "graph frequency",
          label: `Frequency responses of layer ${layer.layer}`,
        });
        c.svg.append(s("line", { class: "axis", x1: c.m.left, x2: each - c.m.right, y1: c.y(0), y2: c.y(0) }));
        for (const [key, , kind] of shown)
          if (layer[key]) c.svg.append(s("path", { class: kind, d: path(frequencies.map(c.x), layer[key].map(c.y)) }));
        frequencies.forEach((frequency, k) => {
          if (k % 2 === 0)
            c.svg.append(
              s("rect", {
                class: "hit",
                x: c.x(frequency) - 4,
                width: 8,
                y: c.m.top,
                height: c.bottom - c.m.top,
                "data-tip":
                  `frequency ${number(frequency)}\n` +
                  shown
                    .filter(([key]) => layer[key])
                    .map(([key, name]) => `${name} ${number(layer[key][k])}`)
                    .join("\n"),
              }),
            );
        });
        return [h("h4", {}, `Layer ${layer.layer}`), c.svg];
      }),
    ];
  });
}

function orders(data) {
  figure("orders", data, (width) => {
    const step = 32,
      c = chart({
        width,
        height: data.share.length * step + 50,
        x: [0, 1],
        y: [0, 1],
        yAxis: false,
        xFormat: "%",
        xName: "share of the chaos energy",
        margin: { left: 64, right: 60 },
        label: "Share of chaos energy by order",
      });
    data.share.forEach((share, k) => {
      const y = c.m.top + step * (k + 0.5);
      c.svg.append(
        s("text", { class: "group", x: 54, y: y + 4, "text-anchor": "end" }, `order ${k + 1}`),
        s("rect", {
          class: "right",
          x: c.x(0),
          y: y - 9,
          width: Math.max(1, c.x(share) - c.x(0)),
          height: 18,
          "data-tip": `order ${k + 1}\n${percent(share)} of the energy (${number(data.energy[k])})`,
        }),
        s("text", { class: "small", x: c.x(share) + 6, y: y + 4 }, percent(share)),
      );
    });
    return [c.svg];
  });
}

const readable = (name) =>
  name
    .replace(/_/g, " ")
    .replace(/^val /, "validation ")
    .replace(/\bece\b/, "ECE")
    .replace(/\bnll\b/, "NLL")
    .replace(/\bbrier\b/, "Brier")
    .replace(/ mean$/, " (mean logit)");

function history(data) {
  const names = Object.keys(data.series || {}),
    { epoch } = data;
  figure("history", data, (width) => [
    panels(width, names, (name, each) => {
      const values = data.series[name],
        known = values.filter((value) => !missing(value));
      const low = Math.min(...known),
        high = Math.max(...known),
        pad = (high - low || Math.abs(high) || 1) * 0.06;
      const c = chart({
        width: each,
        height: 170,
        x: [epoch[0], epoch[epoch.length - 1]],
        y: [low - pad, high + pad],
        xTicks: 4,
        yTicks: 3,
        margin: { left: 54 },
        label: `${readable(name)} by epoch, from ${number(known[0])} to ${number(known[known.length - 1])}`,
      });
      if (!missing(data.best_epoch))
        c.svg.append(
          s("line", {
            class: "reference",
            x1: c.x(data.best_epoch),
            x2: c.x(data.best_epoch),
            y1: c.m.top,
            y2: c.bottom,
          }),
        );
      const drawn = path(
        epoch.map(c.x),
        values.map((value) => (missing(value) ? null : c.y(value))),
      );
      c.svg.append(s("path", { class: "line blue", d: drawn }));
      const every = Math.ceil(epoch.length / 60);
      epoch.forEach((e, k) => {
        if (k % every === 0)
          c.svg.append(
            s("rect", {
              class: "hit",
              x: c.x(e) - 3,
              width: 6,
              y: c.m.top,
              height: c.bottom - c.m.top,
              "data-tip": `epoch ${e}\n${readable(name)} ${number(values[k])}`,
            }),
          );
      });
      return [h("h4", {}, readable(name)), c.svg];
    }),
  ]);
}
