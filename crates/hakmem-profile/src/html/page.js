(() => {
  for (const table of document.querySelectorAll("table.sites")) {
    const buttons = [...table.querySelectorAll("thead button")];
    buttons.forEach((button, index) => button.addEventListener("click", () => {
      const up = button.classList.contains("sorted") && button.dataset.up !== "1";
      for (const other of buttons) other.classList.remove("sorted");
      button.classList.add("sorted");
      button.dataset.up = up ? "1" : "";
      const value = (row) => +row.cells[index + 1].dataset.v;
      const body = table.tBodies[0];
      const rows = [...body.rows].sort((a, b) => up ? value(a) - value(b) : value(b) - value(a));
      body.append(...rows);
    }));
  }
})();
