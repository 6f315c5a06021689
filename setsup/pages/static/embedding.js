// Embeddings: points coloured by a factor, their images and their nearest neighbours.
"use strict";
function EmbeddingsView({sources}) {
  const [first, setFirst] = useState(sources[0]), [second, setSecond] = useState(null), [picked, setPicked] = useState(null);
  const find = id => sources.find(one => one.id === id) || null, options = sources.map(one => [one.id, one.about.name]);
  const choose = set => id => { setPicked(null); set(find(id)); if (set === setFirst && second && second.id === id) setSecond(null); };
  const sameRows = second && first.about.data === second.about.data;
  return html`<div class="view"><section aria-label="Embeddings"><h2>Embeddings</h2>
    ${sources.length > 1 && html`<p class="choice"><${Choice} label="Embeddings" value=${first.id} options=${options} onChange=${choose(setFirst)} />
      <${Choice} label="Beside it" value=${second ? second.id : ""} options=${[["", "none"], ...options.filter(([id]) => id !== first.id)]} onChange=${choose(setSecond)} />
      ${second && html`<small>${sameRows ? "A row that is picked in one is picked in the other." : "They are of different datasets: rows are picked in each."}</small>`}</p>`}
    <div class=${second ? "beside" : ""}>${[first, second].map((source, place) => source && html`<div class="panel" key=${`${place}${source.id}`}>
      <${Embedding} source=${source} linked=${sameRows ? picked : null} onLink=${sameRows ? setPicked : null} /></div>`)}</div></section></div>`;
}

// one embedding; linked is the row that is picked in both of two, and onLink picks it there
function Embedding({source, linked, onLink}) {
  const {about} = source, [factor, setFactor] = useState(about.first), [only, setOnly] = useState([]);
  const [own, setOwn] = useState(null), [hovered, setHovered] = useState(null);
  const {answer, error, busy} = useAnswer({s: source.id, q: "points"});
  const colours = useAnswer(factor === null ? null : {s: source.id, q: "colours", factor}, true), dark = useDark();
  const palette = colours.answer && (dark ? colours.answer.dark : colours.answer.colours);
  const points = useRef({});
  if (answer && points.current.of !== answer) points.current = {of: answer, places: numbersOf(answer.points), rows: numbersOf(answer.rows)};
  const shared = onLink && linked !== null && points.current.rows ? points.current.rows.indexOf(linked) : -1;
  const picked = onLink ? (shared < 0 ? null : shared) : own;
  const setPicked = point => (onLink ? onLink(point === null ? null : points.current.rows[point]) : setOwn(point));
  const near = useAnswer(picked === null ? null : {s: source.id, q: "near", start: startOf(source, picked)});
  const place = picked === null ? 0 : picked - startOf(source, picked);
  const nearest = near.answer ? near.answer.places[place].map((one, at) => [one, near.answer.distances[place][at]]).filter(([one]) => one >= 0) : [];
  useEffect(() => setOnly([]), [factor]);
  if (error) return html`<${Problem} error=${error} />`;
  if (!answer) return html`<p class=${busy ? "busy" : ""}>projecting ${plural(about.rows, "row")} …</p>`;
  const rows = points.current.rows, turn = code => setOnly(only.includes(code) ? only.filter(one => one !== code) : [...only, code]);
  return html`<p class="note prose">${about.name}${about.data ? `, of ${about.data}` : ""}: ${answer.count < answer.of - answer.left_out ? `${count(answer.count)} of ${plural(answer.of, "row")}, chosen at random` : plural(answer.count, "row")}, ${plural(about.dimensions, "dimension")}. Shown are ${answer.method}.${answer.left_out ? ` ${plural(answer.left_out, "row")} whose embedding is not finite ${answer.left_out === 1 ? "is" : "are"} left out.` : ""}${about.data ? "" : " To see images, name the dataset, too: setsup explore DATASET FOLDER."}</p>
    ${about.factors.length > 0 && html`<p class="choice"><${Choice} label="Colour" value=${factor} options=${about.factors.map(one => [one.name, one.name + (one.unit ? ` (${one.unit})` : "")])} onChange=${setFactor} /></p>`}
    <${Problem} error=${colours.error} />
    <div class="embedding"><${Plot} source=${source} places=${points.current.places} rows=${rows} colours=${colours.answer} palette=${palette} only=${only}
        picked=${picked} near=${nearest} hovered=${hovered} onHover=${setHovered} onPick=${setPicked} factor=${factor} />
      ${colours.answer && html`<${ColourLegend} factor=${about.factors.find(one => one.name === factor)} found=${colours.answer} palette=${palette} only=${only} onTurn=${turn} onAll=${() => setOnly([])} />`}</div>
    <${Picked} source=${source} rows=${rows} picked=${picked} near=${nearest} error=${near.error} busy=${near.busy} factor=${factor} onPick=${setPicked} among=${answer.count} />`;
}

const startOf = (source, point) => point - point % source.about.chunk;

function Plot({source, places, rows, colours, palette, only, picked, near, hovered, onHover, onPick, factor}) {
  const canvas = useRef(null), marks = useRef(null), plot = useRef(null), shown = useRef({}), held = useRef({pointers: new Map(), moved: 0, timer: 0});
  const [drawn, setDrawn] = useState(""), [focused, setFocused] = useState(false), [at, setAt] = useState(null);
  shown.current = {picked, near, hovered, focused};
  const mark = () => plot.current && drawMarks(marks.current, plot.current, shown.current);
  // in the frame in which the legend appears, and not after it
  useLayoutEffect(() => {
    plot.current = scatter(canvas.current, places, mark);
    setDrawn(plot.current.name);
    return () => { clearTimeout(held.current.timer); plot.current.close(); plot.current = null; };
  }, [places]);
  useLayoutEffect(() => {
    if (!plot.current || !colours) return;
    const shades = palette.flatMap((one, code) => [1, 3, 5].map(from => parseInt(one.slice(from, from + 2), 16)).concat(!only.length || only.includes(code) ? 255 : 0));
    plot.current.recolour(numbersOf(colours.codes), shades);
  }, [places, colours, palette, only]);
  useEffect(mark);
  useEffect(() => { // where a wheel is turned over the plot, the page stays
    const turn = event => { event.preventDefault(); const [x, y] = inside(event); plot.current.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.002)), x, y); };
    canvas.current.addEventListener("wheel", turn, {passive: false});
    return () => canvas.current && canvas.current.removeEventListener("wheel", turn);
  }, []);
  const inside = event => { const box = canvas.current.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const found = ([x, y]) => plot.current.at(x, y, Math.max(6, plot.current.size()));
  const down = event => { held.current.pointers.set(event.pointerId, inside(event)); held.current.moved = 0; event.currentTarget.setPointerCapture(event.pointerId); };
  const move = event => {
    const now = inside(event), {pointers} = held.current, before = pointers.get(event.pointerId);
    if (!before) { // the images of points that are only passed over are not asked for
      clearTimeout(held.current.timer);
      held.current.timer = setTimeout(() => { if (plot.current) { const point = found(now); setAt(now); onHover(point); } }, 30);
      return;
    }
    const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    held.current.moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (others.length) {
      const [other] = others, apart = place => Math.max(10, Math.hypot(place[0] - other[0], place[1] - other[1]));
      plot.current.zoomBy(apart(now) / apart(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
      plot.current.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
    } else plot.current.pan(now[0] - before[0], now[1] - before[1]);
    pointers.set(event.pointerId, now);
  };
  const up = event => {
    const alone = held.current.pointers.size === 1;
    if (held.current.pointers.delete(event.pointerId) && alone && held.current.moved < 5 && event.type === "pointerup") {
      const now = inside(event), point = found(now);
      setAt(now); onHover(point);
      if (point !== null) onPick(point);
    }
  };
  const press = event => {
    const by = canvas.current.clientWidth / 10, acts = {
      ArrowLeft: () => plot.current.pan(by, 0), ArrowRight: () => plot.current.pan(-by, 0), ArrowUp: () => plot.current.pan(0, by), ArrowDown: () => plot.current.pan(0, -by),
      "+": () => plot.current.zoomBy(1.5), "=": () => plot.current.zoomBy(1.5), "-": () => plot.current.zoomBy(1 / 1.5), 0: plot.current.fit, Home: plot.current.fit,
      Enter: () => { const point = plot.current.at(canvas.current.clientWidth / 2, canvas.current.clientHeight / 2, 4 * by); if (point !== null) onPick(point); }, Escape: () => onPick(null),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    onHover(null);
    acts[event.key]();
  };
  return html`<div class="scatter"><div class="points"><canvas ref=${canvas} tabindex="0" role="application" aria-label=${`Plot of ${plural(rows.length, "embedding")}${factor === null ? "" : `, coloured by ${factor}`}`} aria-describedby=${"plot-keys-" + source.id} data-by=${drawn}
      onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerCancel=${up} onPointerLeave=${() => { clearTimeout(held.current.timer); onHover(null); }} onKeyDown=${press}
      onFocus=${event => setFocused(event.currentTarget.matches(":focus-visible"))} onBlur=${() => setFocused(false)}></canvas><canvas ref=${marks} class="marks" aria-hidden="true"></canvas>
      ${hovered !== null && at && html`<${Tip} source=${source} rows=${rows} point=${hovered} at=${at} width=${canvas.current.clientWidth} factor=${factor} />`}</div>
    <p class="choice"><button type="button" aria-label="Zoom in" onClick=${() => plot.current.zoomBy(1.5)}>+</button><button type="button" aria-label="Zoom out" onClick=${() => plot.current.zoomBy(1 / 1.5)}>−</button>
      <button type="button" onClick=${() => plot.current.fit()}>Show all</button></p>
    <p class="note" id=${"plot-keys-" + source.id}>Wheel or + and − zoom, dragging or the arrow keys move, 0 shows all. A click, or Enter for the point nearest to the middle, shows a row and its nearest neighbours.</p></div>`;
}

// rings around what is pointed at, and lines from the picked point to its neighbours
function drawMarks(canvas, plot, {picked, near, hovered, focused}) {
  const sharp = Math.min(2, devicePixelRatio || 1), width = canvas.clientWidth, height = canvas.clientHeight, style = getComputedStyle(canvas);
  canvas.width = width * sharp; canvas.height = height * sharp;
  const context = canvas.getContext("2d"), radius = plot.size() / 2 + 3;
  context.scale(sharp, sharp);
  const ring = (point, colour, line) => { const [x, y] = plot.where(point); context.beginPath(); context.arc(x, y, radius, 0, 7); context.strokeStyle = colour; context.lineWidth = line; context.stroke(); };
  const ink = style.getPropertyValue("--ink").trim(), paper = style.getPropertyValue("--card").trim(), strong = style.getPropertyValue("--mark").trim();
  if (picked !== null) {
    for (const [point] of near) {
      const [x, y] = plot.where(picked), [right, down] = plot.where(point), part = radius / Math.max(2 * radius, Math.hypot(right - x, down - y));
      context.beginPath(); context.moveTo(x + (right - x) * part, y + (down - y) * part); context.lineTo(right - (right - x) * part, down - (down - y) * part);
      for (const [colour, line] of [[paper, 3], [ink, 1]]) { context.strokeStyle = colour; context.lineWidth = line; context.stroke(); }
    }
    for (const [point] of near) {
      ring(point, paper, 4); ring(point, ink, 2);
    }
    ring(picked, paper, 6); ring(picked, strong, 3.5);
  }
  if (hovered !== null && hovered !== picked) { ring(hovered, paper, 4); ring(hovered, ink, 2); }
  if (focused) {
    context.beginPath();
    for (const [x, y] of [[9, 0], [0, 9]]) { context.moveTo(width / 2 - x, height / 2 - y); context.lineTo(width / 2 + x, height / 2 + y); }
    context.strokeStyle = strong; context.lineWidth = 2; context.stroke();
  }
}

function Tip({source, rows, point, at, width, factor}) {
  const values = useValues(source, point);
  const style = {left: `${Math.min(Math.max(4, at[0] + 14), Math.max(4, width - 190))}px`, top: `${at[1] + 14}px`};
  return html`<div class="tip" style=${style}>${source.about.thumbs && html`<${PointImage} source=${source} rows=${rows} point=${point} />`}
    <p><strong>row ${count(rows[point])}</strong>${values && factor !== null && html`<br />${factor} ${values[factor] || "unknown"}`}</p></div>`;
}

// the values of the factors of a point, once they are there
function useValues(source, point) {
  const start = point === null ? 0 : startOf(source, point);
  const {answer} = useAnswer(point === null ? null : {s: source.id, q: "rows", start});
  return answer && Object.fromEntries(Object.entries(answer.values).map(([name, some]) => [name, some[point - start]]));
}

function PointImage({source, rows, point}) {
  const start = startOf(source, point), {thumbs, data} = source.about, {columns, side} = setsup.tiles;
  const {answer, error} = useAnswer(thumbs ? {s: source.id, q: "thumbs", start} : null);
  const name = `row ${count(rows[point])}${data ? ` of ${data}` : ""}`;
  if (!answer || error) return html`<span class="no-image" role="img" aria-label=${name}>${thumbs && !error ? "…" : count(rows[point])}</span>`;
  const place = point - start, style = {width: side + "px", height: side + "px", objectPosition: `-${place % columns * side}px -${Math.floor(place / columns) * side}px`};
  return html`<img src=${answer} alt=${name} style=${style} />`;
}

function ColourLegend({factor, found, palette, only, onTurn, onAll}) {
  const [group, button] = useOneTabStop(Math.max(1, found.legend.length));
  const unit = factor.unit ? ` ${factor.unit}` : "";
  return html`<div class="legend" role="group" aria-label=${`Colours of ${factor.name}`}><h3>${factor.name}${factor.unit ? ` (${factor.unit})` : ""}</h3>
    ${found.scale && html`<${Scale} found=${found} palette=${palette} unit=${unit} />`}
    ${found.legend.length > 0 && html`<ul ...${group}>${found.legend.map((one, at) => html`<li key=${one.colour}><button type="button" ...${button(at)} aria-pressed=${only.includes(one.colour)} onClick=${() => onTurn(one.colour)}>
      <span class="key" style=${{background: palette[one.colour]}}></span> <span class="level">${one.name}</span> <small>${count(one.count)}</small></button></li>`)}</ul>
      <p class="note">${only.length ? html`<button type="button" class="link" onClick=${onAll}>Show all levels</button>` : "Click a level to see it alone."}</p>`}</div>`;
}

function Scale({found, palette, unit}) {
  const bar = useRef(null), colours = palette.slice(0, -1); // without that of what is unknown
  useEffect(() => {
    bar.current.width = colours.length; bar.current.height = 1;
    const context = bar.current.getContext("2d");
    colours.forEach((colour, at) => { context.fillStyle = colour; context.fillRect(at, 0, 1, 1); });
  }, [palette]);
  const words = found.scale.map(one => Number(one.toPrecision(4)) + unit);
  return html`<canvas ref=${bar} class="ramp" role="img" aria-label=${`Scale of colours from ${words[0]} to ${words[1]}`}></canvas><div class="ends"><span>${words[0]}</span><span>${words[1]}</span></div>`;
}

function Picked({source, rows, picked, near, error, busy, factor, onPick, among}) {
  const values = useValues(source, picked);
  if (picked === null) return html`<p aria-live="polite">Nothing is picked yet.</p>`;
  return html`<h3>Row ${count(rows[picked])} and its nearest neighbours</h3><p aria-live="polite" class=${busy ? "busy" : ""}>${values ? `row ${count(rows[picked])}: ${Object.entries(values).map(([name, value]) => `${name} ${value || "unknown"}`).join(", ")}` : "…"}</p>
    <${Problem} error=${error} />
    <div class="near"><figure class="picked"><${PointImage} source=${source} rows=${rows} point=${picked} /><figcaption>row ${count(rows[picked])}</figcaption></figure>
      ${near.map(([point, distance]) => html`<${Neighbour} key=${point} source=${source} rows=${rows} point=${point} distance=${distance} of=${values} factor=${factor} onPick=${onPick} />`)}</div>
    <p class="note">Nearest by the L2 distance of the embeddings in all ${plural(source.about.dimensions, "dimension")}, among the ${plural(among, "row")} shown. A click goes there. <button type="button" class="link" onClick=${() => onPick(null)}>Clear</button></p>`;
}

function Neighbour({source, rows, point, distance, of, factor, onPick}) {
  const values = useValues(source, point);
  const differs = of && values ? Object.keys(values).filter(name => values[name] !== of[name]) : null;
  const words = differs === null ? "" : differs.length ? `other ${differs.join(", ")}` : "the same factors";
  return html`<figure><button type="button" class="thumb" aria-label=${`row ${count(rows[point])}, distance ${distance.toPrecision(3)}${words ? `, ${words}` : ""}`} onClick=${() => onPick(point)}><${PointImage} source=${source} rows=${rows} point=${point} /></button>
    <figcaption>row ${count(rows[point])}<small>distance ${distance.toPrecision(3)}</small><small>${words}</small></figcaption></figure>`;
}
