(() => {
  const WIDTH = 1200, ROW = 18;
  const section = document.getElementById("between");
  if (!section) return;
  const data = JSON.parse(document.getElementById("lived").textContent);
  const [from, to] = section.querySelectorAll("input");
  const graph = section.querySelector("svg"), note = section.querySelector("b");
  const three = (value) => value >= 100 ? value.toFixed(0) : value.toPrecision(3);
  const bytes = (value) => {
    let unit = 0;
    for (; value >= 1000 && unit < 5; unit++) value /= 1024;
    return `${unit ? three(value) : value.toFixed(0)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
  };
  const time = (step) => {
    const ns = data.duration_ns * step / data.steps;
    const [unit, name] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : [1e3, "µs"];
    return ns ? `${three(ns / unit)} ${name}` : "0";
  };
  const node = (name) => ({ name, bytes: 0, callees: new Map() });
  const tree = (first, last) => {
    const root = node("all");
    data.stacks.forEach((stack, site) => {
      let sum = 0;
      for (let step = first; step < last; step++) sum += data.live[site][step];
      const mean = sum / (last - first);
      if (mean < .5) return;
      let at = root;
      at.bytes += mean;
      for (const name of stack) {
        if (!at.callees.has(name)) at.callees.set(name, node(data.names[name]));
        at = at.callees.get(name);
        at.bytes += mean;
      }
    });
    return root;
  };
  const element = (name, values, parent) => {
    const made = document.createElementNS(graph.namespaceURI, name);
    for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
    return parent.appendChild(made);
  };
  const colour = (name) => {
    let hash = 5381;
    for (const byte of new TextEncoder().encode(name)) hash = (Math.imul(hash, 33) ^ byte) >>> 0;
    return hash % 60;
  };
  /* Draws the node and what it called; returns how many rows that takes. */
  const draw = (at, whole, x, row) => {
    const width = WIDTH * at.bytes / whole;
    if (!(width >= .6)) return row;
    const frame = element("g", {
      class: row ? "frame name" : "frame root", style: row ? `--h:${colour(at.name)}` : "",
      "data-x": x, "data-w": width, "data-n": at.name }, graph);
    element("title", {}, frame).textContent =
      `${at.name}\n${bytes(at.bytes)}, ${(100 * at.bytes / whole).toFixed(1)}%`;
    element("rect", { y: ROW * row, height: ROW - 1, rx: 2 }, frame);
    element("text", { y: ROW * row + 13 }, frame);
    let rows = row + 1;
    for (const callee of [...at.callees.values()].sort((a, b) => b.bytes - a.bytes)) {
      rows = Math.max(rows, draw(callee, whole, x, row + 1));
      x += WIDTH * callee.bytes / whole;
    }
    return rows;
  };
  const marks = [...document.querySelectorAll("#timeline .chart svg")].map((chart) =>
    element("rect", { class: "between", y: 0, height: "100%" }, chart));
  const show = () => {
    const first = Math.min(+from.value, +to.value, data.steps - 1);
    const last = Math.max(+from.value, +to.value, first + 1);
    const root = tree(first, last);
    note.textContent = `${bytes(root.bytes)}, from ${time(first)} to ${time(last)}`;
    for (const mark of marks) {
      mark.setAttribute("x", `${100 * first / data.steps}%`);
      mark.setAttribute("width", `${100 * (last - first) / data.steps}%`);
    }
    graph.replaceChildren();
    graph.dataset.height = ROW * draw(root, root.bytes, 0, 0);
    graph.fit();
  };
  section.hidden = false;
  for (const handle of [from, to]) handle.addEventListener("input", show);
  show();
})();
