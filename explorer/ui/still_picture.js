// A picture that Python drew as SVG; here only the tooltip and the click on a cell.
// Streamlit calls this again on every change of data or theme: all state stays on parentElement.
// keep() and sendClick() are those of unseen.py.

const BESIDE = 14; // pixels between the pointer and the tooltip

export default function ({ data, parentElement, setTriggerValue }) {
  const view = (parentElement.__still ??= build(parentElement));
  view.receive(data, setTriggerValue);
  return view.stop;
}

function build(parent) {
  const host = parent.querySelector(".still");
  const picture = host.querySelector(".still-picture");
  const tip = host.appendChild(document.createElement("div"));
  tip.className = "still-tip";
  tip.setAttribute("aria-hidden", "true");
  tip.hidden = true;
  const view = { data: null };

  view.receive = (data, send) => {
    const same = view.data?.svg === data.svg;
    view.data = data;
    view.send = send;
    keep(view, data.handled);
    if (picture.ariaLabel !== data.alt) picture.ariaLabel = data.alt;
    if (same) return;
    tip.hidden = true;
    host.style.width = `${data.width}px`;
    host.style.height = `${data.height}px`;
    picture.innerHTML = data.svg; // made by figures/still.py, every text in it escaped
  };

  function cellAt(event) {
    const { area, rows, columns } = view.data;
    const [left, top, width, height] = area;
    const box = host.getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left - left) / width) * columns);
    const y = Math.floor(((event.clientY - box.top - top) / height) * rows);
    return x >= 0 && y >= 0 && x < columns && y < rows ? { x, y } : null;
  }

  function said({ x, y }) {
    const { answers, columns } = view.data;
    const answer = answers.find(({ cells }) => cells[y * columns + x] !== null);
    if (!answer) return [];
    const value = answer.cells[y * columns + x];
    const shown = typeof value === "number" ? value.toFixed(4).replace("-", "\u2212") : value;
    const words = { "%{x}": view.data.x[x], "%{y}": view.data.y[y], "%{cell}": shown };
    return answer.lines.map((line) => line.replace(/%\{(x|y|cell)\}/g, (name) => words[name]));
  }

  host.onpointermove = (event) => {
    const cell = cellAt(event);
    const lines = cell ? said(cell) : [];
    host.style.cursor = cell && view.data.clicks ? "pointer" : "";
    tip.hidden = lines.length === 0;
    if (tip.hidden) return;
    tip.replaceChildren(...lines.map((line, at) => {
      const row = document.createElement(at === lines.length - 1 ? "strong" : "div");
      row.textContent = line;
      return row;
    }));
    const box = host.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const fits = event.clientX + BESIDE + tip.offsetWidth <= document.documentElement.clientWidth;
    tip.style.left = `${fits ? x + BESIDE : Math.max(x - BESIDE - tip.offsetWidth, -box.left)}px`;
    tip.style.top = `${y - tip.offsetHeight / 2}px`;
  };
  host.onpointerleave = () => { tip.hidden = true; };
  host.onclick = (event) => {
    const cell = cellAt(event);
    if (cell && view.data.clicks) sendClick(view, cell);
  };
  view.stop = () => { delete parent.__still; tip.remove(); };
  return view;
}
