// Texts side by side; each added token is a button that says which one it is. Streamlit calls this
// again on every change of data or theme: all state stays on parentElement.

export default function ({ data, parentElement, setTriggerValue }) {
  const state = (parentElement.__continued ??= { told: "" });
  state.send = (at) => setTriggerValue("token", at);
  const told = JSON.stringify(data);
  if (told === state.told) return;
  state.told = told;
  const both = parentElement.querySelector(".both");
  const focused = both.getRootNode().activeElement;
  const was = focused && both.contains(focused) ? [focused.dataset.side, focused.dataset.at] : null;
  both.style.setProperty("--accent", data.accent);
  both.replaceChildren(...data.sides.map((side, number) => section(side, number, data, state)));
  if (was) both.querySelector(`[data-side="${was[0]}"][data-at="${was[1]}"]`)?.focus();
}

function section(side, number, data, state) {
  const text = element("p", "text");
  text.append(element("span", "prompt", data.prompt));
  const buttons = side.added.map((token, at) => {
    const button = element("button", "");
    button.type = "button";
    button.classList.toggle("parting", token.parting);
    button.classList.toggle("end", token.end);
    button.style.setProperty("--tint", token.tint);
    button.dataset.side = number;
    button.dataset.at = at;
    button.title = token.words;
    button.setAttribute("aria-label", token.words);
    button.setAttribute("aria-pressed", String(at === data.picked));
    button.tabIndex = at === Math.min(data.picked, side.added.length - 1) ? 0 : -1;
    button.onclick = () => state.send(at);
    button.append(element("span", "word", token.text), element("span", "share", token.share));
    return button;
  });
  side.added.forEach((token, at) => {
    if (token.space) text.append(" ");
    text.append(buttons[at]);
    if (token.breaks) text.append("\n");
  });
  text.onkeydown = (event) => {
    const at = buttons.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || to === undefined || !buttons[to]) return;
    event.preventDefault();
    buttons[at].tabIndex = -1;
    buttons[to].tabIndex = 0;
    buttons[to].focus();
  };
  const found = element("section", "side");
  found.setAttribute("aria-label", side.title);
  found.append(element("h4", "", side.title), text);
  return found;
}

function element(tag, name, text) {
  const found = document.createElement(tag);
  if (name) found.className = name;
  if (text !== undefined) found.textContent = text;
  return found;
}
