"use strict";
const points = [], drifts = [], watched = [], alerts = [], most = 800, shownEvents = 30, shownFeatures = 20;
const at = (id) => document.getElementById(id);
const number = (value, digits) => value === null || value === undefined ? "–" : digits === 0 ? value.toLocaleString("en") : value.toFixed(digits);

function node(parent, name, attributes, text) {
  const svg = name === "line" || name === "polyline" || name === "text";
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

const ofNumbers = (line) => line.mae !== undefined;
const unit = (value) => value === null || value === undefined ? "–" : value === 0 || (Math.abs(value) >= 1e-3 && Math.abs(value) < 1e7) ? value.toLocaleString("en", { maximumSignificantDigits: 4 }) : value.toExponential(3);

function figures(line) {
  const shown = ofNumbers(line) ? [
    ["rows", line.n_seen, 0], ["mean absolute error", line.mae, unit],
    ["frozen selection", line.frozen_selection, unit], ["random subsets", line.random_subsets, unit],
    ["mean so far", line.mean_so_far, unit], ["R²", line.r2, 3], ["stability", line.stability, 3], ["rejected rows", line.bad, 0],
  ] : [
    ["rows", line.n_seen, 0], ["accuracy", line.accuracy, 3],
    ["frozen selection", line.frozen_selection, 3], ["random subsets", line.random_subsets, 3],
    ["majority class", line.majority, 3], ["stability", line.stability, 3], ["rejected rows", line.bad, 0],
  ];
  at("figures").replaceChildren();
  for (const [name, value, digits] of shown) {
    const pair = node(at("figures"), "div");
    node(pair, "dt", {}, name);
    node(pair, "dd", {}, digits === unit ? unit(value) : number(value, digits));
  }
}

function chart() {
  // One unit is one pixel, so that the words of the chart can be read on a phone.
  const svg = at("chart"), width = svg.getBoundingClientRect().width || 700, left = 36, right = width - 10, top = 8, bottom = 172;
  svg.setAttribute("viewBox", `0 0 ${width} 200`);
  svg.replaceChildren();
  const errors = points.length > 0 && ofNumbers(points[points.length - 1]), judged = errors ? "mae" : "accuracy";
  const largest = errors ? Math.max(...points.flatMap((one) => [one.mae || 0, one.random_subsets || 0])) || 1 : 1;
  at("judged").textContent = `${errors ? "Mean absolute error" : "Accuracy"} of the last rows`;
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const y = bottom - share * (bottom - top);
    node(svg, "line", { class: "rule", x1: left, x2: right, y1: y, y2: y });
    node(svg, "text", { x: 0, y: y + 4 }, errors ? (share * largest).toPrecision(2) : share.toFixed(2));
  }
  if (!points.length) return;
  const last = points[points.length - 1].n_seen, first = points[0].n_seen;
  const x = (n) => left + (right - left) * (last === first ? 1 : (n - first) / (last - first));
  const y = (value) => bottom - (value / largest) * (bottom - top);
  for (const n of drifts) if (n >= first && n <= last) node(svg, "line", { class: "drift", x1: x(n), x2: x(n), y1: top, y2: bottom });
  for (const [key, kind] of [["random_subsets", "random"], [judged, "ours"]]) {
    const known = points.filter((one) => one[key] !== null && one[key] !== undefined);
    node(svg, "polyline", { class: kind, points: known.map((one) => `${x(one.n_seen)},${y(one[key])}`).join(" ") });
  }
  node(svg, "text", { x: left, y: 192 }, first.toLocaleString("en"));
  node(svg, "text", { x: right, y: 192, "text-anchor": "end" }, `${last.toLocaleString("en")} rows`);
}

// Of each feature a strip of its relevance and one of its reliance, 3 units high each, then a gap of 1.
function strips() {
  if (!watched.length) return;
  at("watched").hidden = false;
  const largest = new Map(), peak = { relevance: 1e-9, reliance: 1e-9 };
  for (const line of watched) line.features.forEach((name, j) => {
    for (const kind of ["relevance", "reliance"]) {
      largest.set(name, Math.max(largest.get(name) || 0, line[kind][j] || 0));
      peak[kind] = Math.max(peak[kind], line[kind][j] || 0);
    }
  });
  const alerted = new Set(alerts.map((one) => one.feature));
  const names = [...largest.keys()].sort((a, b) => alerted.has(b) - alerted.has(a) || largest.get(b) - largest.get(a)).slice(0, shownFeatures);
  const canvas = at("strips"), width = 800, first = watched.length > 1 ? 2 * watched[0].n_seen - watched[1].n_seen : 0;
  const last = watched[watched.length - 1].n_seen, x = (n) => (n - first) / Math.max(last - first, 1);
  canvas.width = width;
  canvas.height = 7 * names.length;
  at("names").replaceChildren();
  at("marks").replaceChildren();
  names.forEach((name) => node(at("names"), "li", { title: name }, name));
  const draw = canvas.getContext("2d"), colours = { relevance: "47 127 193", reliance: "213 94 0" };
  watched.forEach((line, i) => {
    const left = Math.round(width * (i ? x(watched[i - 1].n_seen) : 0)), right = Math.round(width * x(line.n_seen));
    line.features.forEach((name, j) => {
      const row = names.indexOf(name);
      if (row >= 0) ["relevance", "reliance"].forEach((kind, k) => {
        draw.fillStyle = `rgb(${colours[kind]} / ${(line[kind][j] || 0) / peak[kind]})`;
        draw.fillRect(left, 7 * row + 3 * k, Math.max(right - left, 1), 3);
      });
    });
  });
  for (const alert of alerts) {
    const row = names.indexOf(alert.feature), where = x(alert.n_seen);
    if (row < 0 || where < 0 || where > 1) continue;
    const mark = node(at("marks"), "span", { title: alert.message }, "▼");
    mark.style.left = `${100 * where}%`;
    mark.style.top = `${100 * row / names.length}%`;
  }
  const share = (name, kind) => { const j = watched[watched.length - 1].features.indexOf(name); return j < 0 ? 0 : Math.round(100 * watched[watched.length - 1][kind][j]); };
  canvas.setAttribute("aria-label", "Shares of relevance and reliance now: " + names.slice(0, 10).map((name) => `${name} ${share(name, "relevance")} % and ${share(name, "reliance")} %`).join(", "));
  at("rows").replaceChildren();
  node(at("rows"), "span", {}, Math.max(first, 0).toLocaleString("en"));
  node(at("rows"), "span", {}, `${last.toLocaleString("en")} rows`);
}

function alarm(line) {
  alerts.push(line);
  if (alerts.length > 100) alerts.shift();
  const item = node(at("alerts"), "li", { class: line.severity }, `${line.n_seen.toLocaleString("en")}  ${line.severity}: ${line.message}`);
  at("alerts").prepend(item);
  while (at("alerts").children.length > shownEvents) at("alerts").lastChild.remove();
}

function eventText(line) {
  const names = (list) => list.slice(0, 8).join(", ") + (list.length > 8 ? ` and ${list.length - 8} more` : "");
  if (line.event === "selection") {
    const parts = [];
    if (line.entered.length) parts.push(`in: ${names(line.entered)}`);
    if (line.left.length) parts.push(`out: ${names(line.left)}`);
    return parts.join("; ");
  }
  if (line.event === "gap") return `rows ${line.after + 1} to ${line.before - 1} are missing`;
  return { drift: "drift", end: "end of the stream", interrupted: "stopped", rotated: "the file was rotated" }[line.event] || line.event;
}

function take(line) {
  if (line.event === "known") {
    points.length = drifts.length = watched.length = alerts.length = 0;
    at("events").replaceChildren();
    at("alerts").replaceChildren();
    restoring = true;
    for (const one of line.lines) take({ ...one, selected: line.selected });
    restoring = false;
    strips();
    return;
  }
  if (line.event === "scores") {
    points.push(line);
    if (points.length > most) for (let i = points.length - 2; i > 0; i -= 2) points.splice(i, 1);
    figures(line);
    chart();
  } else if (line.event === "watch" || line.event === "alert") {
    if (line.event === "alert") alarm(line); else watched.push(line);
    if (watched.length > most) for (let i = watched.length - 2; i > 0; i -= 2) watched.splice(i, 1);
    if (!restoring) strips();
  } else {
    const item = document.createElement("li");
    item.textContent = `${(line.n_seen || 0).toLocaleString("en")}  ${eventText(line)}`;
    at("events").prepend(item);
    while (at("events").children.length > shownEvents) at("events").lastChild.remove();
    if (line.event === "drift") drifts.push(line.n_seen);
  }
  at("selected").replaceChildren();
  for (const name of line.selected.slice(0, 200)) node(at("selected"), "li", {}, name);
  ended = line.event === "end" || line.event === "interrupted";
  at("state").textContent = ended ? "ended" : "running";
}

let ended = false, restoring = false;
const source = new EventSource("/events");
source.onmessage = (message) => take(JSON.parse(message.data));
source.onerror = () => { if (ended) source.close(); else at("state").textContent = "no connection: the run has stopped or is restarting"; };
chart();
addEventListener("resize", chart);
