(() => {
  const WIDTH = 1200, LETTER = 6.7;
  const shorten = (name, width) => {
    const letters = Math.max(0, Math.floor((width - 6) / LETTER));
    if (name.length <= letters) return name;
    return letters < 3 ? "" : name.slice(0, letters - 1) + "…";
  };
  /* Shows the frame that lies at x with this width over all of the graph. */
  const zoom = (graph, x, width) => {
    const pixels = graph.getBoundingClientRect().width || WIDTH;
    graph.setAttribute("viewBox", `0 0 ${pixels} ${graph.dataset.height}`);
    graph.style.height = graph.dataset.height + "px";
    const scale = pixels / width;
    for (const frame of graph.querySelectorAll(".frame")) {
      const left = (+frame.dataset.x - x) * scale, wide = +frame.dataset.w * scale;
      const from = Math.max(left, 0), to = Math.min(left + wide, pixels);
      frame.style.display = to - from < .6 ? "none" : "";
      const rect = frame.querySelector("rect"), text = frame.querySelector("text");
      rect.setAttribute("x", from);
      rect.setAttribute("width", Math.max(to - from - .5, .3));
      text.setAttribute("x", from + 4);
      text.textContent = shorten(frame.dataset.n, to - from);
    }
    graph.zoomed = [x, width];
  };
  const graphs = [...document.querySelectorAll("svg.flame")];
  for (const graph of graphs) {
    const fit = () => zoom(graph, ...(graph.zoomed || [0, WIDTH]));
    graph.fit = () => zoom(graph, 0, WIDTH);
    if (window.ResizeObserver) new ResizeObserver(fit).observe(graph); else fit();
    graph.addEventListener("click", (event) => {
      const frame = event.target.closest(".frame");
      if (frame) zoom(graph, +frame.dataset.x, +frame.dataset.w);
    });
  }
  const search = document.getElementById("search");
  if (!search) return;
  const result = document.getElementById("found");
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    for (const graph of graphs) {
      let covered = 0, end = -1;
      const frames = [...graph.querySelectorAll(".frame")];
      const hits = frames.filter((frame) => {
        const text = frame.querySelector("title").textContent.toLowerCase();
        const hit = wanted !== "" && text.includes(wanted);
        frame.classList.toggle("found", hit);
        frame.classList.toggle("faded", wanted !== "" && !hit);
        return hit;
      });
      hits.sort((a, b) => a.dataset.x - b.dataset.x || b.dataset.w - a.dataset.w);
      for (const frame of hits) {
        if (+frame.dataset.x < end - .01) continue;
        covered += +frame.dataset.w;
        end = +frame.dataset.x + +frame.dataset.w;
      }
      const note = graph.closest(".graph")?.querySelector(".share");
      if (note) note.textContent = wanted === "" ? "" : (100 * covered / WIDTH).toFixed(1) + "% match";
    }
    if (result) result.textContent = "";
    for (const row of document.querySelectorAll("tr[data-stack]"))
      row.hidden = wanted !== "" && !row.dataset.stack.toLowerCase().includes(wanted);
  });
})();
