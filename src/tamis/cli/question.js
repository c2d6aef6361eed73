"use strict";
const at = (id) => document.getElementById(id);
const kept = "tamis-session", many = 12;
let state = null, stopped = false, busy = false;

function node(parent, name, text) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

async function send(observed, more) {
  if (busy) return;
  busy = true;
  try {
    const answer = await fetch("/reply", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ observed, case: at("case").value, ...more }) });
    const found = await answer.json();
    if (!answer.ok) {
      at("error").textContent = found.error;
      if (found.question) confirmButtons(observed, more, found);
      return;
    }
    if (more && more.what_if) { at("whatif").textContent = `Then: ${found.decision}`; return; }
    state = found;
    at("error").textContent = at("whatif").textContent = "";
    show();
    keep();
  } catch {
    at("error").textContent = "No connection: start tamis acquire --serve again; the values on this page are kept.";
  } finally { busy = false; }
}

const keep = () => sessionStorage.setItem(kept, JSON.stringify({ observed: state.observed, stopped, name: at("case").value }));

function choices(list, options) {
  at(list).replaceChildren();
  for (const option of options) node(at(list), "option").value = option;
}

function confirmButtons(observed, more, found) {
  const add = (text, answer) => {
    const button = node(at("error"), "button", text);
    button.type = "button";
    button.addEventListener("click", () => send(observed, { ...more, ...answer }));
  };
  for (const unit of found.units) add(`${found.value} ${unit}`, { value: found.value, unit, confirmed: true });
  if (!found.units.length) add(`Record ${found.value} unchanged`, { confirmed: true });
}

function show() {
  document.querySelector("main").inert = false;
  const question = state.question, ended = stopped || question === null;
  at("ask").hidden = ended;
  at("result").hidden = !ended;
  at("decision").textContent = state.decision;
  at("stop").disabled = ended;
  at("undo").disabled = !state.observed.length && !stopped;
  if (!ended) {
    at("text").textContent = `${question.text} (price ${question.price})`;
    at("reason").textContent = question.reason;
    at("options").replaceChildren();
    const searched = question.options.length > many;
    choices("choices", searched ? question.options : []);
    at("value").placeholder = searched ? `Type to search ${question.options.length} values` : "";
    at("value").inputMode = searched ? "text" : "decimal";
    (searched ? [] : question.options).forEach((option, i) => {
      const button = node(at("options"), "button", option);
      button.type = "button";
      if (i < 9) button.title = `Key ${i + 1}`;
      button.addEventListener("click", () => give(option));
    });
    const buttons = at("options").childElementCount > 0;
    at("value").hidden = at("give").hidden = buttons;
    at("value").value = "";
    if (buttons) at("options").firstChild.focus(); else at("value").focus();
    at("others").hidden = !state.other_questions.length;
    at("best").replaceChildren();
    for (const one of state.other_questions) node(at("best"), "li", `${one.text} (price ${one.price}). ${one.reason}`);
  }
  at("bars").replaceChildren();
  for (const [label, p, first] of state.posterior) {
    const row = node(at("bars"), "div"), change = p - first;
    node(row, "span", label);
    const track = node(row, "div");
    track.className = "track";
    const bar = node(track, "i");
    bar.style.width = `${100 * first}%`;
    bar.offsetWidth;
    bar.style.width = `${100 * p}%`;
    node(row, "span", p.toFixed(3)).title = `${change < 0 ? "-" : "+"}${Math.abs(change).toFixed(3)} since the start`;
  }
  if (state.number) showNumber(state.number);
  at("steps").replaceChildren();
  state.steps.forEach((step, i) => {
    const value = step.value === null ? (step.outcome === "unavailable" ? "not available" : step.outcome) : step.value, price = step.paid ? step.price : "free";
    const line = node(at("steps"), "li", `${step.text}: ${value} (${price}), ${step.after} `), button = node(line, "button", "Edit");
    button.type = "button";
    button.className = "edit";
    button.setAttribute("aria-label", `Edit ${step.text}`);
    button.addEventListener("click", () => edit(line, step, i));
  });
  at("cost").textContent = state.cost;
  at("have").hidden = stopped || !state.others.length;
  at("which").replaceChildren();
  for (const one of state.others) node(at("which"), "option", one.text).value = JSON.stringify(one.feature);
  choices("known", state.others.length ? known().options : []);
}

function showNumber(intervals) {
  const low = Math.min(...intervals.map((one) => one.low)), high = Math.max(...intervals.map((one) => one.high));
  const place = (x) => high > low ? 100 * (x - low) / (high - low) : 50;
  for (const one of intervals) {
    const row = node(at("bars"), "div");
    node(row, "span", one.name);
    const track = node(row, "div"), bar = node(track, "i"), mark = node(track, "b");
    track.className = "track interval";
    bar.style.left = `${place(one.low)}%`;
    bar.style.width = `${Math.max(place(one.high) - place(one.low), 1)}%`;
    mark.style.left = `${place(one.value)}%`;
    node(row, "span", one.text).title = one.interval;
  }
  node(at("bars"), "p", intervals[intervals.length - 1].interval);
}

// Other values stay as they are; the questions after them are those of the corrected value.
function edit(line, step, i) {
  const form = document.createElement("form"), field = node(form, step.options.length ? "select" : "input");
  for (const option of step.options) node(field, "option", option).value = option;
  field.value = step.value === null ? "" : String(step.value);
  field.setAttribute("aria-label", step.text);
  node(form, "button", "Save").type = "submit";
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = field.value.trim().replace(",", "."), number = Number(text);
    const value = text === "" ? null : step.options.length || Number.isNaN(number) ? text : number;
    send(state.observed.map((one, k) => k === i ? [one[0], value, one[2] && value !== null] : one), { event: "edit" });
  });
  line.replaceChildren(form);
  field.focus();
}

const known = () => state.others.find((one) => JSON.stringify(one.feature) === at("which").value);
const give = (value) => send(state.observed, { value });

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const value = at("value").value.trim();
  if (value === "") at("error").textContent = "Enter a value, or choose Not available."; else give(value);
});
at("missing").addEventListener("click", () => give(null));
at("empty").addEventListener("click", () => send(state.observed, { outcome: "no result" }));
at("undo").addEventListener("click", () => {
  const wasStopped = stopped;
  stopped = false;
  send(wasStopped ? state.observed : state.observed.slice(0, -1), { event: "undo" });
});
at("stop").addEventListener("click", () => { stopped = true; send(state.observed, { event: "decision" }); });
at("new").addEventListener("click", () => {
  if (state.observed.length && !window.confirm("Discard the values of this session?")) return;
  stopped = false;
  at("case").value = "";
  begin([], "open");
});
at("case").addEventListener("change", keep);
at("which").addEventListener("change", () => choices("known", known().options));
at("suppose").addEventListener("click", () => {
  const value = at("given").value.trim();
  if (value !== "") send(state.observed, { value, feature: known().feature, what_if: true, confirmed: true });
});
at("print").addEventListener("click", () => window.print());
at("more").addEventListener("submit", (event) => {
  event.preventDefault();
  const value = at("given").value.trim();
  at("given").value = "";
  if (value !== "") send(state.observed, { value, feature: JSON.parse(at("which").value) });
});
at("refuse").addEventListener("click", () => send(state.observed, { value: null, feature: JSON.parse(at("which").value) }));
document.addEventListener("keydown", (event) => {
  const field = document.activeElement, writes = ["INPUT", "SELECT"].includes(field.tagName);
  // In the empty field of a number, a letter is a command, as elsewhere.
  const isCommand = field.id === "value" && field.inputMode === "decimal" && field.value === "" && "nrsu".includes(event.key);
  if (!state || event.ctrlKey || event.metaKey || event.altKey || (writes && !isCommand)) return;
  if (isCommand) event.preventDefault();
  const option = at("options").children[Number(event.key) - 1];
  if (!at("ask").hidden && option) option.click();
  else if (event.key === "u") at("undo").click();
  else if (event.key === "n" && !at("ask").hidden) at("missing").click();
  else if (event.key === "r" && !at("ask").hidden) at("empty").click();
  else if (event.key === "s") at("stop").click();
});

function begin(observed, event) {
  const now = new Date(), two = (number) => String(number).padStart(2, "0");
  const day = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  at("when").textContent = `Record of ${day}, ${two(now.getHours())}:${two(now.getMinutes())}`;
  return send(observed, event ? { event } : {});
}

const earlier = JSON.parse(sessionStorage.getItem(kept) || "null");
if (earlier) {
  stopped = earlier.stopped;
  at("case").value = earlier.name || "";
  begin(earlier.observed);
} else begin([], "open");
