// Pairs of views: the exact partner of the chosen pixel, or why there is none, and what a run takes for it.
"use strict";
const WHY = {
  occluded: "Something stands before it there, or view 2 sees its other side.",
  no_surface: "View 1 shows nothing there.",
  unknown: "View 2 has no depth there.",
};
const SHORT = {visible: "visible", occluded: "occluded", outside: "outside", no_surface: "no surface", unknown: "unknown"};
// what marks a pixel, by its status: a shape each
const SHAPE = {
  visible: "M12 3a9 9 0 1 0 .01 0M12 11v2M11 12h2",
  occluded: "M4 4h16v16h-16zM4 4l16 16M20 4l-16 16",
  outside: "M12 3l9 17h-18z",
  no_surface: "M12 3a9 9 0 1 0 .01 0M5.6 18.4l12.8-12.8",
  unknown: "M12 3a9 9 0 1 0 .01 0M7 12h2M11 12h2M15 12h2",
  learned: "M12 2l10 10l-10 10l-10 -10z",
};

function Shape({kind, turn = 0}) {
  return html`<svg viewBox="0 0 24 24" aria-hidden="true" style=${{transform: `rotate(${turn}deg)`}}><path class="halo" d=${SHAPE[kind]} /><path d=${SHAPE[kind]} /></svg>`;
}

// answers with arrays of numbers in them
const partnersOf = new WeakMap();
function mapOf(answer) {
  if (!partnersOf.has(answer)) {
    const found = {...answer, x: numbersOf(answer.x), y: numbersOf(answer.y)};
    if (answer.status) found.status = numbersOf(answer.status);
    partnersOf.set(answer, found);
  }
  return partnersOf.get(answer);
}

// the line of a map that is nearest to a pixel, and that pixel
function nearest(map, [x, y]) {
  const column = Math.min(Math.round(x / map.stride), map.shape[1] - 1), row = Math.min(Math.round(y / map.stride), map.shape[0] - 1);
  return [row * map.shape[1] + column, [column * map.stride, row * map.stride]];
}

// the pixel that is shown first: of those that view 2 shows, the one nearest to the middle; else the middle
function firstPixel(map, [height, width]) {
  if (map.first) return map.first;
  const middle = [width >> 1, height >> 1];
  let least = Infinity;
  map.first = middle;
  for (let line = 0; line < map.status.length; line++) {
    if (map.status[line]) continue;
    const at = [line % map.shape[1] * map.stride, Math.floor(line / map.shape[1]) * map.stride];
    const away = (at[0] - middle[0]) ** 2 + (at[1] - middle[1]) ** 2;
    if (away < least) { least = away; map.first = at; }
  }
  return map.first;
}

function CorrespondenceView({source, data, start}) {
  const [asked, setAsked] = useState(start ? start.asked : {step: "0"});
  const [at, setAt] = useState(start ? start.at : null);
  const [typed, setTyped] = useState("");
  const [run, setRun] = useState(Object.keys(source.about.runs)[0] || "");
  const [marked, setMarked] = useState(false);
  const pair = useAnswer({s: source.id, q: "pair", ...asked}, true);
  const found = pair.answer && !pair.error ? pair.answer : null;
  const partners = useAnswer(found ? {s: source.id, q: "partners", rows: found.rows.join(",")} : null);
  const before = useRef(null); // what is shown until the next pair is traced
  if (found && partners.answer) before.current = {found, map: mapOf(partners.answer)};
  const {found: shown, map} = before.current || {found: null, map: null};
  const grid = useAnswer(shown && run ? {s: source.id, q: "learned", run, rows: shown.rows.join(",")} : null);
  const step = asked.step ?? null;
  const [line, pixel] = map ? nearest(map, at || firstPixel(map, shown.sizes[0])) : [0, null];
  useEffect(() => { // once the pointer rests, since browsers limit how often an address changes
    const words = {view: "pairs", d: data.id, ...(step === null ? {rows: asked.rows} : {pair: step}), ...(at ? {x: at[0], y: at[1]} : {})};
    const timer = setTimeout(() => history.replaceState(null, "", "#" + new URLSearchParams(words)), 250);
    return () => clearTimeout(timer);
  }, [asked, at]);
  const swap = () => setAsked({rows: `${found.rows[1]},${found.rows[0]}`});
  const apply = event => { event.preventDefault(); const rows = typed.match(/\d+/g); if (rows && rows.length === 2) setAsked({rows: rows.join(",")}); };
  const listed = pairs => Object.entries(pairs).map(([name, value]) => `${name} ${Array.isArray(value) ? value.map(one => one || "unknown").join(" and ") : value || "unknown"}`).join(", ");
  return html`<div class="view"><section aria-label="Pair"><h2>Pair of views</h2>
    <p class="choice"><${Stepper} label="Pair" step=${step} last=${BigInt(source.about.last)} onStep=${to => setAsked({step: to})} />
      <button type="button" onClick=${swap} disabled=${!setsup.isLive || !found}>Swap the views</button></p>
    <form class="choice" onSubmit=${apply}><label>Rows <input type="text" class="step" value=${typed} placeholder="row, row" disabled=${!setsup.isLive} onInput=${event => setTyped(event.target.value)} /></label>
      <button type="submit" disabled=${!setsup.isLive}>Show these rows</button></form>
    <p aria-live="polite" class=${pair.busy ? "busy" : ""}>${found && `Rows ${found.rows.map(count).join(" and ")}. Shared: ${listed(found.agree) || "nothing"}. Different: ${listed(found.differ) || "nothing"}.`}${found && !partners.answer && !partners.error && html` <span class="busy">Tracing pixels …</span>`}</p>
    <${Problem} error=${pair.error || partners.error} />
    ${map && html`<div class=${found && partners.answer ? "" : "busy"}>
      <${Views} data=${data} source=${source} found=${shown} map=${map} line=${line} pixel=${pixel} onPick=${setAt} run=${run} grid=${grid.answer} marked=${marked} />
      <${Legend} map=${map} marked=${marked} onMark=${setMarked} />
      ${Object.keys(source.about.runs).length > 0 && html`<${Learned} source=${source} grid=${grid} run=${run} onRun=${setRun} />`}</div>`}
  </section>
  ${found && html`<section aria-label="Code"><h2>The same elsewhere</h2><${Copy} label="Python" text=${found.python} /></section>`}</div>`;
}

function Views({data, source, found, map, line, pixel, onPick, run, grid, marked}) {
  const status = source.about.statuses[map.status[line]];
  const partner = Number.isFinite(map.x[line]) ? [map.x[line], map.y[line]] : null;
  const learned = useLearned(source, found, run, grid, pixel);
  const images = found.rows.map(row => useAnswer(data.about.thumbs ? {s: data.id, q: "image", row, modality: found.modality} : null, true));
  const [height, width] = found.sizes[0];
  const move = event => {
    const by = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
    if (!by) return;
    event.preventDefault();
    const far = map.stride * (event.shiftKey ? 10 : 1);
    onPick([Math.max(0, Math.min(width - 1, pixel[0] + by[0] * far)), Math.max(0, Math.min(height - 1, pixel[1] + by[1] * far))]);
  };
  const point = event => {
    const box = event.currentTarget.getBoundingClientRect();
    const x = Math.floor((event.clientX - box.left) / box.width * width), y = Math.floor((event.clientY - box.top) / box.height * height);
    if (x >= 0 && y >= 0 && x < width && y < height) onPick(nearest(map, [x, y])[1]);
  };
  const words = place => `(${place.map(one => one.toFixed(2)).join(", ")})`;
  const where = status === "visible" ? `its partner in view 2 is ${words(partner)}`
    : partner ? `its point would be at ${words(partner)} of view 2` : status === "outside" ? "its point is behind camera 2" : "";
  const far = learned && status === "visible" ? Math.hypot(learned.partner[0] - partner[0], learned.partner[1] - partner[1]) : null;
  return html`<div class="pair">
    <${View} number=${1} row=${found.rows[0]} size=${found.sizes[0]} image=${images[0]} at=${pixel} kind=${status} map=${map} marked=${marked} onMove=${point} onKey=${move} />
    <${View} number=${2} row=${found.rows[1]} size=${found.sizes[1]} image=${images[1]} at=${status === "no_surface" ? null : partner} kind=${status} learned=${learned && learned.partner} /></div>
    <div class="told" aria-live="polite"><p><span class="mark-key"><${Shape} kind=${status} /></span> <strong class="partner">Pixel (${pixel.join(", ")}) of view 1: ${SHORT[status]}</strong>${where && `; ${where}`}.${WHY[status] && html` <small>${WHY[status]}</small>`}</p>
    ${learned && html`<p><span class="mark-key"><${Shape} kind="learned" /></span> <strong class="learned">Matched by ${source.about.runs[run]}</strong>: ${words(learned.partner)} of view 2${learned.at ? ` for pixel (${learned.at.join(", ")})` : ""}${far === null ? "" : `, ${far.toFixed(2)} pixels from the exact partner`}.</p>`}</div>`;
}

// what a run takes for the partner of a pixel: asked live once the pointer rests, in an exported page that of the nearest pixel of a grid
function useLearned(source, found, run, grid, pixel) {
  const rows = found.rows.join(","), key = pixel.join(",");
  const [resting, setResting] = useState(key);
  useEffect(() => {
    const timer = setTimeout(() => setResting(key), 80);
    return () => clearTimeout(timer);
  }, [key]);
  const one = useAnswer(grid && setsup.isLive ? {s: source.id, q: "learned", run, rows, pixel: resting} : null);
  if (!grid || setsup.isLive) return one.answer && resting === key ? one.answer : null;
  const map = mapOf(grid), [line, at] = nearest(map, pixel);
  return {partner: [map.x[line], map.y[line]], at: at.join(",") === key ? null : at};
}

function View({number, row, size: [height, width], image, at, kind, map = null, marked = false, learned = null, onMove = null, onKey = null}) {
  const picture = useRef(null), cover = useRef(null);
  const [loaded, setLoaded] = useState(0);
  useEffect(() => { if (map && marked) pattern(cover.current, map); }, [map, marked]);
  const inside = place => place && place[0] >= -0.5 && place[1] >= -0.5 && place[0] < width - 0.5 && place[1] < height - 0.5;
  const put = (place, shape) => {
    const edge = share => (inside(place) ? `${100 * share}%` : `clamp(14px, ${100 * share}%, calc(100% - 14px))`);
    if (!place) return null;
    const held = inside(place) ? place : [Math.max(0, Math.min(width - 1, place[0])), Math.max(0, Math.min(height - 1, place[1]))];
    const turn = inside(place) || shape !== "outside" ? 0 : Math.atan2(place[0] - held[0], held[1] - place[1]) * 180 / Math.PI;
    return html`<span class=${`mark ${shape}`} style=${{left: edge((held[0] + 0.5) / width), top: edge((held[1] + 0.5) / height)}}><${Shape} kind=${shape} turn=${turn} /></span>`;
  };
  const used = onKey ? {role: "application", tabindex: 0, onKeyDown: onKey, onPointerMove: onMove, onPointerDown: onMove,
    "aria-label": "View 1: arrow keys move the chosen pixel, with Shift by ten"} : {role: "img", "aria-label": `View 2, row ${row}`};
  return html`<figure><div class=${`scene ${onKey ? "chosen" : ""}`} ...${used} style=${{aspectRatio: `${width} / ${height}`}}>
      ${image.answer && html`<img ref=${picture} src=${image.answer} alt="" draggable=${false} onLoad=${() => setLoaded(loaded + 1)} />`}
      ${marked && html`<canvas ref=${cover} aria-hidden="true"></canvas>`}
      ${put(at, kind)}${put(learned, "learned")}</div>
    <figcaption>View ${number} <small>row ${count(row)}, ${width} × ${height} pixels</small></figcaption><${Problem} error=${image.error} />
    <${Loupe} picture=${picture} at=${inside(at) ? at : null} size=${[height, width]} loaded=${loaded} label=${`View ${number}, enlarged`} /></figure>`;
}

const AROUND = 10;

// the pixels about a place, enlarged
function Loupe({picture, at, size: [height, width], loaded, label}) {
  const canvas = useRef(null);
  const key = at ? at.join(",") : "";
  useEffect(() => {
    const context = canvas.current.getContext("2d"), side = canvas.current.width, image = picture.current;
    context.clearRect(0, 0, side, side);
    if (!at || !image || !image.naturalWidth) {
      context.fillStyle = "#888"; context.font = "15px sans-serif"; context.textAlign = "center";
      if (!at) context.fillText("not in this view", side / 2, side / 2);
      return;
    }
    const shown = 2 * AROUND + 1, scale = side / shown;
    context.imageSmoothingEnabled = false;
    const left = Math.round(at[0]) - AROUND, top = Math.round(at[1]) - AROUND;
    context.drawImage(image, left * image.naturalWidth / width, top * image.naturalHeight / height, shown * image.naturalWidth / width, shown * image.naturalHeight / height, 0, 0, side, side);
    const x = (at[0] - left + 0.5) * scale, y = (at[1] - top + 0.5) * scale;
    for (const [color, thick] of [["#000", 4], ["#fff", 2]]) {
      context.strokeStyle = color; context.lineWidth = thick;
      context.strokeRect(x - scale / 2, y - scale / 2, scale, scale);
    }
  }, [key, loaded, height, width]);
  return html`<canvas ref=${canvas} class="loupe" width="168" height="168" role="img" aria-label=${label}></canvas>`;
}

// hatches what view 2 does not show: lines where it is occluded, dots where outside, crosses where nothing is, bars where its depth is unknown
function pattern(canvas, map) {
  const [rows, columns] = map.shape, scale = Math.max(1, Math.ceil(640 / columns));
  canvas.width = columns * scale; canvas.height = rows * scale;
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  const light = [null, (x, y) => (x + y) % 9 < 2, (x, y) => x % 8 < 3 && y % 8 < 3, (x, y) => (x + y) % 12 < 2 || (x - y + 12000) % 12 < 2, (x, y) => y % 6 < 2];
  for (let y = 0, place = 0; y < canvas.height; y += 1) {
    const line = Math.floor(y / scale) * columns;
    for (let x = 0; x < canvas.width; x += 1, place += 4) {
      const status = map.status[line + Math.floor(x / scale)];
      if (!status) continue;
      const on = light[status](x, y) ? 255 : 0;
      image.data[place] = image.data[place + 1] = image.data[place + 2] = on;
      image.data[place + 3] = on ? 230 : 120;
    }
  }
  context.putImageData(image, 0, 0);
}

function Legend({map, marked, onMark}) {
  const total = map.counts.reduce((sum, one) => sum + one, 0);
  return html`<div class="legend"><table><caption>Pixels of view 1</caption><tbody>${Object.keys(SHORT).map((name, place) => (name !== "unknown" || map.counts[place] > 0) && html`<tr key=${name}>
      <th scope="row"><span class="mark-key"><${Shape} kind=${name} /></span> ${SHORT[name]}</th><td>${count(map.counts[place])}</td><td>${(100 * map.counts[place] / total).toFixed(1)} %</td></tr>`)}</tbody></table>
    <label><input type="checkbox" checked=${marked} onChange=${event => onMark(event.target.checked)} /> Hatch what view 2 does not show: lines for occluded, dots for outside, crosses for no surface${map.counts[4] > 0 && ", bars for unknown"}</label>
    ${map.stride > 1 && html`<p class="note">Every ${map.stride}th pixel in x and y can be chosen.</p>`}</div>`;
}

function Learned({source, grid: {answer, error, busy}, run, onRun}) {
  const share = number => `${(100 * number / Math.max(answer.visible, 1)).toFixed(1)} %`;
  return html`<div class="learned-matches"><p class="choice"><${Choice} label="Matches of" value=${run} options=${[...Object.entries(source.about.runs), ["", "no run"]]} onChange=${onRun} /></p>
    <${Problem} error=${error} />${run && busy && html`<p class="busy">matching pixels …</p>`}
    ${answer && html`<p>Of ${plural(answer.visible, "pixel")} of a grid that view 2 shows, ${share(answer.within[1])} are matched to within 1 pixel of the exact partner, ${share(answer.within[3])} to within 3, ${share(answer.within[5])} to within 5${answer.median === null ? "" : `; the median is ${answer.median.toFixed(2)} pixels`}.</p>`}</div>`;
}

// the pair and pixel of a link, null where it has none
function pairLink(link) {
  const step = link.get("pair"), rows = link.get("rows"), at = [link.get("x"), link.get("y")];
  const asked = /^\d{1,19}$/.test(step || "") ? {step: BigInt(step).toString()} : /^\d{1,15},\d{1,15}$/.test(rows || "") ? {rows} : null;
  return asked && {asked, at: at.every(one => /^\d{1,6}$/.test(one || "")) ? at.map(Number) : null};
}
