// Tokens left and right, a line for each weight. Weights come as bytes c with w = (c / 255)².
// Streamlit calls this again on every change of data or theme: all state stays on parentElement.

const LEVELS = 14; // opacities drawn in one stroke each
const SLICE_MS = 8; // of drawing before the browser may do something else
const STRIP = 5; // pixels of one head's mark beside a token
const MOST_MARKS = 16;

export default function ({ data, parentElement, setStateValue }) {
  const view = (parentElement.__lines ??= build(parentElement));
  view.send = (value) => setStateValue("view", value);
  view.receive(data);
  return view.stop;
}

function unpack(bytes) {
  const size = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + size)));
  return { ...head, codes: bytes.subarray(4 + size) };
}

function build(parent) {
  const find = (name) => parent.querySelector(`.${name}`);
  const stage = find("stage");
  const base = find("base");
  const over = find("over");
  const said = find("said");
  const slider = find("least");
  const lists = { q: find("queries"), k: find("keys") };
  const view = { chosen: new Set(), least: 0, pinned: null, active: null, told: "" };
  let it = null; // what is drawn now
  let drawing = 0;
  let ratio = 1;

  view.receive = (bytes) => {
    const same = view.bytes && bytes.length === view.bytes.length &&
      bytes.every((byte, at) => byte === view.bytes[at]);
    if (same) return;
    view.bytes = bytes.slice();
    const before = it;
    it = unpack(view.bytes);
    const told = JSON.stringify(it.view);
    if (told !== view.told) adopt(it.view); // a link, Back, or the first time
    view.told = told;
    const words = JSON.stringify([it.queries, it.keys]);
    if (!before || words !== view.words) { view.words = words; column("q"); column("k"); }
    legend();
    if (view.active && view.active.at >= it[view.active.side === "q" ? "queries" : "keys"].length)
      view.active = null;
    layout();
  };

  function adopt(wanted) {
    view.chosen = new Set(wanted.heads);
    view.least = wanted.least;
    view.pinned = wanted.token;
    slider.value = String(Math.round(100 * Math.sqrt(view.least)));
    least();
  }

  function tell() {
    const value = {
      heads: [...view.chosen].sort((a, b) => a - b), least: view.least, token: view.pinned,
    };
    view.told = JSON.stringify(value);
    clearTimeout(view.waiting);
    view.waiting = setTimeout(() => view.send(value), 250);
  }

  function column(side) {
    const list = lists[side];
    list.replaceChildren();
    (side === "q" ? it.queries : it.keys).forEach((token, at) => {
      const item = document.createElement("li");
      item.id = `${side}${at}`;
      item.setAttribute("role", "option");
      item.textContent = token.text;
      item.title = `${at}  ${token.raw}`;
      item.className = token.padding ? "padding" : token.special ? "special" : "";
      list.append(item);
    });
    list.setAttribute("aria-label", side === "q" ? "Queries" : "Keys");
  }

  function legend() {
    const box = find("heads");
    if (box.children.length !== it.colors.length) {
      box.replaceChildren();
      it.colors.forEach((_, head) => {
        const button = document.createElement("button");
        button.type = "button";
        button.onclick = (event) => {
          if (event.shiftKey || event.altKey) view.chosen = new Set([head]);
          else if (view.chosen.has(head)) view.chosen.delete(head);
          else view.chosen.add(head);
          legend(); paint(); tell();
        };
        button.ondblclick = () => {
          view.chosen = new Set([head]);
          legend(); paint(); tell();
        };
        box.append(button);
      });
    }
    [...box.children].forEach((button, head) => {
      button.textContent = `H${head}`;
      button.style.setProperty("--hue", it.colors[head]);
      button.setAttribute("aria-pressed", String(view.chosen.has(head)));
      button.title = "Click: show or hide. Double click: this head alone.";
    });
  }
  find("all").onclick = () => {
    view.chosen = new Set(it.colors.keys());
    legend(); paint(); tell();
  };
  find("none").onclick = () => { view.chosen = new Set(); legend(); paint(); tell(); };

  function least() {
    find("least-says").textContent = view.least ? `${+(100 * view.least).toPrecision(2)} %` : "all";
  }
  slider.oninput = () => {
    view.least = (Number(slider.value) / 100) ** 2;
    least(); paint();
  };
  slider.onchange = tell;

  function layout() {
    const longest = Math.max(it.queries.length, it.keys.length);
    const row = longest <= 40 ? 26 : longest <= 100 ? 20 : 15;
    // As wide as the longest token needs, so that the lines have the rest.
    const letters = Math.max(...[...it.queries, ...it.keys].map((token) => token.text.length), 6);
    const sides = `min(${Math.min(letters, 18) * 0.58 + 1.2}rem, 34%)`;
    parent.querySelector(".lines").style.setProperty("--sides", sides);
    stage.style.setProperty("--row", `${row}px`);
    stage.style.setProperty("--size", row > 20 ? "0.9rem" : row > 15 ? "0.8rem" : "0.68rem");
    const height = row * longest;
    const width = find("between").clientWidth;
    ratio = Math.min(window.devicePixelRatio || 1, 2, 16000 / height);
    for (const canvas of [base, over]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = `${height}px`;
    }
    view.row = row;
    view.width = width;
    paint();
  }

  const lowest = () => Math.max(1, Math.round(255 * Math.sqrt(view.least)));
  const wanted = (q, k) => {
    if (it.queries[q].padding) return false;
    return !it.pair || (it.queries[q].source === it.pair[0] && it.keys[k].source === it.pair[1]);
  };
  const code = (head, q, k) =>
    it.codes[(head * it.queries.length + q) * it.keys.length + k];

  // All lines of some cells, grouped by head and opacity so that each group is one stroke.
  function* strokes(context, cells) {
    const limit = lowest();
    const marks = view.chosen.size <= MOST_MARKS ? STRIP * view.chosen.size + 3 : 0;
    const right = view.width - (cells.focus ? marks : 0);
    const heads = [...view.chosen].sort((a, b) => a - b);
    const groups = Array.from({ length: LEVELS }, () => heads.map(() => []));
    for (const [q, k] of cells.of()) {
      if (!wanted(q, k)) continue;
      heads.forEach((head, place) => {
        const c = code(head, q, k);
        if (c < limit) return;
        const level = Math.min(LEVELS - 1, Math.floor((c / 255) ** 2 * LEVELS));
        groups[level][place].push(q, k);
      });
    }
    if (!cells.focus) yield;
    context.lineWidth = cells.focus ? 2 : 1.4;
    for (let level = 0; level < LEVELS; level++) {  // strong lines last, on top
      context.globalAlpha = (level + 0.5) / LEVELS;
      for (let place = 0; place < heads.length; place++) {
        const group = groups[level][place];
        context.strokeStyle = it.colors[heads[place]];
        for (let from = 0; from < group.length; from += 2000) {
          context.beginPath();
          for (let at = from; at < Math.min(from + 2000, group.length); at += 2) {
            context.moveTo(0, (group[at] + 0.5) * view.row);
            context.lineTo(right, (group[at + 1] + 0.5) * view.row);
          }
          context.stroke();
          yield;
        }
      }
    }
    context.globalAlpha = 1;
  }

  function start(canvas) {
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, view.width, canvas.height / ratio);
    return context;
  }

  function paint() {
    cancelAnimationFrame(drawing);
    const steps = strokes(start(base), {
      focus: false,
      *of() {
        for (let q = 0; q < it.queries.length; q++)
          for (let k = 0; k < it.keys.length; k++) yield [q, k];
      },
    });
    const go = () => {
      const end = performance.now() + SLICE_MS;
      while (performance.now() < end) if (steps.next().done) { stage.dataset.drawn = "yes"; return; }
      drawing = requestAnimationFrame(go);
    };
    delete stage.dataset.drawn;
    go();
    focus();
  }

  // The lines of one token alone, with a mark for each head beside the tokens they lead to.
  function focus() {
    const here = view.active ?? view.pinned;
    for (const item of stage.querySelectorAll("[aria-selected], .on")) {
      item.removeAttribute("aria-selected");
      item.classList.remove("on");
    }
    for (const side of ["q", "k"]) lists[side].removeAttribute("aria-activedescendant");
    const context = start(over);
    base.classList.toggle("dim", Boolean(here));
    if (!here) { said.textContent = it.nothing; return; }
    const { side, at } = here;
    const item = lists[side].children[at];
    if (!item) return;
    item.classList.add("on");
    lists[side].setAttribute("aria-activedescendant", item.id);
    const pinned = view.pinned && lists[view.pinned.side].children[view.pinned.at];
    if (pinned) pinned.setAttribute("aria-selected", "true");
    const count = side === "q" ? it.keys.length : it.queries.length;
    const cell = (other) => (side === "q" ? [at, other] : [other, at]);
    const all = strokes(context, {
      focus: side === "q",
      *of() { for (let other = 0; other < count; other++) yield cell(other); },
    });
    while (!all.next().done);
    if (side === "q") marks(context, at, count);
    say(side, at, count, cell);
  }

  function marks(context, q, count) {
    if (view.chosen.size > MOST_MARKS) return;
    const heads = [...view.chosen].sort((a, b) => a - b);
    const left = view.width - STRIP * heads.length;
    const limit = lowest();
    heads.forEach((head, place) => {
      context.fillStyle = it.colors[head];
      for (let k = 0; k < count; k++) {
        const c = code(head, q, k);
        if (c < limit || !wanted(q, k)) continue;
        context.globalAlpha = Math.max(c / 255, 0.08);
        context.fillRect(left + STRIP * place, k * view.row + 3, STRIP - 1, view.row - 6);
      }
    });
    context.globalAlpha = 1;
  }

  function say(side, at, count, cell) {
    const own = (side === "q" ? it.queries : it.keys)[at];
    const others = side === "q" ? it.keys : it.queries;
    const found = [];
    const limit = lowest();
    for (const head of view.chosen)
      for (let other = 0; other < count; other++) {
        const [q, k] = cell(other);
        const c = code(head, q, k);
        if (c >= limit && wanted(q, k)) found.push([c, head, other]);
      }
    found.sort((a, b) => b[0] - a[0]);
    const parts = found.slice(0, 3).map(([c, head, other]) =>
      `${others[other].text} ${Math.round(100 * (c / 255) ** 2)} % (H${head})`);
    const start = side === "q" ? "Query" : "Key";
    const verb = side === "q" ? "looks most at" : "is looked at most by";
    if (own.padding) said.textContent = `${start} ${at}, ${own.text}, is padding: its row means nothing.`;
    else if (parts.length) said.textContent = `${start} ${at}, ${own.text}, ${verb} ${parts.join(", ")}`;
    else said.textContent = `${start} ${at}, ${own.text}: no line of the heads chosen is strong enough.`;
  }

  for (const side of ["q", "k"]) {
    const list = lists[side];
    const place = (event) => {
      const item = event.target.closest("li");
      return item && { side, at: [...list.children].indexOf(item) };
    };
    list.onpointermove = (event) => {
      const now = place(event);
      if (!now || (view.active && view.active.at === now.at && view.active.side === side)) return;
      view.active = now;
      focus();
    };
    list.onpointerleave = () => { view.active = null; focus(); };
    list.onclick = (event) => {
      const now = place(event);
      if (now) pin(now);
    };
    list.onfocus = () => {
      if (!view.active && list.matches(":focus-visible"))
        view.active = view.pinned?.side === side ? view.pinned : { side, at: 0 };
      focus();
    };
    list.onblur = () => { view.active = null; focus(); };
    list.onkeydown = (event) => {
      const here = view.active ?? view.pinned ?? { side, at: 0 };
      const last = list.children.length - 1;
      const to = {
        ArrowDown: Math.min(here.at + 1, last), ArrowUp: Math.max(here.at - 1, 0),
        Home: 0, End: last, PageDown: Math.min(here.at + 10, last), PageUp: Math.max(here.at - 10, 0),
      }[event.key];
      if (to !== undefined) {
        view.active = { side, at: to };
        list.children[to].scrollIntoView({ block: "nearest" });
        focus();
      } else if (event.key === "ArrowRight" && side === "q") lists.k.focus();
      else if (event.key === "ArrowLeft" && side === "k") lists.q.focus();
      else if (event.key === "Enter" || event.key === " ") pin(here);
      else if (event.key === "Escape") { view.active = null; pin(null); }
      else return;
      event.preventDefault();
    };
  }

  function pin(here) {
    const again = here && view.pinned && here.side === view.pinned.side && here.at === view.pinned.at;
    view.pinned = again ? null : here;
    focus(); tell();
  }

  const observer = new ResizeObserver(() => {
    if (it && Math.abs(find("between").clientWidth - view.width) > 1) layout();
  });
  observer.observe(stage);
  view.stop = () => {
    observer.disconnect();
    cancelAnimationFrame(drawing);
    clearTimeout(view.waiting);
    delete parent.__lines;
  };
  return view;
}
