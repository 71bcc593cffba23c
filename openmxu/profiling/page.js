// Draws the charts of a profile page, and as many instructions of the timeline as can be told apart at each zoom.
"use strict";

const read = (id) => JSON.parse(document.getElementById(id).textContent);
const charts = read("charts");
const lanes = read("timeline-data");
const MOST = 500;  // bars of a lane that are drawn one by one

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function themed(layout) {
  const axis = {gridcolor: style("--line"), zerolinecolor: style("--line"), linecolor: style("--line")};
  const copy = structuredClone(layout);
  Object.assign(copy, {paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)"});
  copy.font = {color: style("--text"), size: window.innerWidth < 600 ? 10 : 12};
  copy.modebar = {bgcolor: "rgba(0,0,0,0)", color: style("--muted"), activecolor: style("--accent")};
  copy.hoverlabel = {align: "left", font: {size: 12}};
  for (const name of ["xaxis", "yaxis"]) copy[name] = {...copy[name], ...axis};
  for (const menu of copy.updatemenus ?? []) {
    Object.assign(menu, {bgcolor: style("--card"), bordercolor: style("--line"), font: {color: style("--accent")}});
  }
  return copy;
}

const config = {responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "toImage"]};

// Instructions of a lane between two cycles: one by one if they are few, or else joined where no gap is to be seen.
function bars(lane, from, to) {
  const found = {base: [], x: [], y: [], hovertext: [], opacity: []};
  const visible = [];
  for (let i = 0; i < lane.begun.length; i++) {
    if (lane.done[i] >= from && lane.begun[i] <= to) visible.push(i);
  }
  const add = (begin, end, text, busy) => {
    found.base.push(begin); found.x.push(Math.max(end - begin, 1)); found.y.push(lane.place);
    found.hovertext.push(text); found.opacity.push(0.35 + 0.65 * busy);
  };
  if (visible.length <= MOST) {
    for (const i of visible) add(lane.begun[i], lane.end[i], single(lane, i), 1);
    return found;
  }
  const gap = (to - from) / MOST;
  let first = visible[0], last = first, end = lane.end[first], busy = end - lane.begun[first], count = 1;
  const join = () => add(lane.begun[first], end, joined(lane, first, last, count), Math.min(1, busy / Math.max(1, end - lane.begun[first])));
  for (const i of visible.slice(1)) {
    if (lane.begun[i] - end > gap || lane.layer[i] !== lane.layer[first]) {
      join();
      first = i; end = lane.end[i]; busy = end - lane.begun[i]; count = 1;
    } else {
      end = Math.max(end, lane.end[i]); busy += lane.end[i] - lane.begun[i]; count += 1;
    }
    last = i;
  }
  join();
  return found;
}

const number = (value) => value.toLocaleString("en-US");
const layerName = (lane, i) => lane.layer[i] < 0 ? "no layer" : lanes.layers[lane.layer[i]];
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

function single(lane, i) {
  const lines = [escaped(layerName(lane, i)), `cycles ${number(lane.begun[i])} to ${number(lane.done[i])}`];
  if (lane.index) {
    const index = lane.index[i];
    lines.unshift(`<b>${index}</b> ${escaped(lanes.text[index]).replace(/(.{48,60}?), /g, "$1,<br>")}`);
    lines.push(...(lanes.stalls[index] ?? []));
  } else {
    lines.unshift(lane.name);
  }
  return lines.join("<br>");
}

function joined(lane, first, last, count) {
  const cycles = `cycles ${number(lane.begun[first])} to ${number(lane.done[last])}`;
  const what = lane.index ? "instructions" : "waits";
  return `${lane.name}: ${number(count)} ${what}<br>${escaped(layerName(lane, first))}<br>${cycles}<br>zoom in to see each`;
}

function timelineTraces(from, to) {
  return lanes.lanes.map((lane) => {
    const {opacity, ...drawn} = bars(lane, from, to);
    return {
      type: "bar", orientation: "h", width: 0.75, name: lane.name, showlegend: false, hoverinfo: "text",
      textposition: "none", marker: {color: lane.color, opacity, line: {width: 0}}, ...drawn,
    };
  });
}

const timeline = document.getElementById("timeline");
const occupancy = document.getElementById("occupancy");
let drawing = false;

async function show(from, to) {
  drawing = true;
  const layout = timeline.layout;
  layout.xaxis.range = [from, to];
  layout.xaxis.autorange = false;
  await Plotly.react(timeline, timelineTraces(from, to), layout, config);
  await Plotly.relayout(occupancy, {"xaxis.range": [from, to]});
  drawing = false;
}

function zoomed(chart) {
  if (drawing) return;
  const axis = chart.layout.xaxis;
  const [from, to] = axis.autorange ? [0, lanes.cycles] : axis.range;
  show(from, to);
}

function follow(chart) {
  chart.on("plotly_relayout", (change) => {
    if (Object.keys(change).some((key) => key.startsWith("xaxis"))) zoomed(chart);
  });
}

// Plotly forgets the height of a figure when it follows a change of the window's width.
function sized(name, height) {
  document.getElementById(name).style.height = `${height}px`;
}

async function draw() {
  for (const [name, figure] of Object.entries(charts)) {
    sized(name, figure.layout.height);
    await Plotly.newPlot(name, figure.data, themed(figure.layout), config);
  }
  const layout = {
    height: 90 + 44 * lanes.rows.length, margin: {l: 10, r: 10, t: 10, b: 10}, barmode: "overlay", dragmode: "zoom",
    xaxis: {title: {text: "cycle"}, range: [0, lanes.cycles], automargin: true},
    yaxis: {
      autorange: false, range: [lanes.rows.length - 0.5, -0.5], fixedrange: true, automargin: true,
      tickvals: lanes.rows.map((_, place) => place), ticktext: lanes.rows,
    },
  };
  sized("timeline", layout.height);
  await Plotly.newPlot(timeline, timelineTraces(0, lanes.cycles), themed(layout), config);
  follow(timeline);
  follow(occupancy);
  document.body.dataset.ready = "yes";
}

const choice = document.getElementById("layer");
choice.addEventListener("change", () => {
  const [from, to] = choice.value.split(" ").map(Number);
  show(from, to);
});
dark.addEventListener("change", () => {
  for (const name of [...Object.keys(charts), "timeline"]) {
    Plotly.relayout(name, themed(document.getElementById(name).layout));
  }
});
draw();
