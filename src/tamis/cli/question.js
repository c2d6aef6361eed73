"use strict";
const at = (id) => document.getElementById(id);
const kept = "tamis-session";
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
    const answer = await fetch("/reply", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ observed, ...more }) });
    const found = await answer.json();
    if (!answer.ok) {
      at("error").textContent = found.error;
      if (found.question) confirmButtons(observed, more, found);
      return;
    }
    state = found;
    at("error").textContent = "";
    show();
    sessionStorage.setItem(kept, JSON.stringify({ observed: state.observed, stopped }));
  } catch {
    at("error").textContent = "No connection: start tamis acquire --serve again; the values on this page are kept.";
  } finally { busy = false; }
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
    question.options.forEach((option, i) => {
      const button = node(at("options"), "button", option);
      button.type = "button";
      if (i < 9) button.title = `Key ${i + 1}`;
      button.addEventListener("click", () => give(option));
    });
    at("value").hidden = at("give").hidden = question.options.length > 0;
    at("value").value = "";
    if (question.options.length) at("options").firstChild.focus(); else at("value").focus();
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
  for (const step of state.steps) {
    const value = step.value === null ? (step.outcome === "unavailable" ? "not available" : step.outcome) : step.value, price = step.paid ? step.price : "free";
    node(at("steps"), "li", `${step.text}: ${value} (${price}), ${step.after}`);
  }
  at("cost").textContent = state.cost;
  at("have").hidden = stopped || !state.others.length;
  at("which").replaceChildren();
  for (const one of state.others) node(at("which"), "option", one.text).value = JSON.stringify(one.feature);
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
  send(wasStopped ? state.observed : state.observed.slice(0, -1));
});
at("stop").addEventListener("click", () => { stopped = true; send(state.observed); });
at("new").addEventListener("click", () => { stopped = false; begin(); });
at("print").addEventListener("click", () => window.print());
at("more").addEventListener("submit", (event) => {
  event.preventDefault();
  const value = at("given").value.trim();
  at("given").value = "";
  if (value !== "") send(state.observed, { value, feature: JSON.parse(at("which").value) });
});
at("refuse").addEventListener("click", () => send(state.observed, { value: null, feature: JSON.parse(at("which").value) }));
document.addEventListener("keydown", (event) => {
  if (!state || event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "SELECT"].includes(document.activeElement.tagName)) return;
  const option = at("options").children[Number(event.key) - 1];
  if (!at("ask").hidden && option) option.click();
  else if (event.key === "u") at("undo").click();
  else if (event.key === "n" && !at("ask").hidden) at("missing").click();
  else if (event.key === "r" && !at("ask").hidden) at("empty").click();
  else if (event.key === "s") at("stop").click();
});

function begin(observed) {
  at("when").textContent = `Record of ${new Date().toLocaleString()}`;
  return send(observed || []);
}

const earlier = JSON.parse(sessionStorage.getItem(kept) || "null");
if (earlier) stopped = earlier.stopped;
begin(earlier && earlier.observed);
