// Parts that all views share.
"use strict";
const {html, render, useState, useEffect, useLayoutEffect, useRef} = htmPreact;

const count = number => (typeof number === "string" ? BigInt(number) : Number(number)).toLocaleString("en-US"); // steps are strings, of 64 bits
const plural = (number, noun) => `${count(number)} ${noun}${Number(number) === 1 ? "" : "s"}`;

// the answer to a question: {answer, error, busy}; null asks nothing. With keep, the one before stays while it is busy.
// One question at a time is asked: of those that come meanwhile, as when steps are passed, the last one is the next
function useAnswer(question, keep = false) {
  const [state, setState] = useState({answer: null, error: null, busy: question !== null});
  const key = JSON.stringify(question), flight = useRef({wanted: null, busy: false});
  const ask = () => {
    const now = flight.current, {wanted} = now, done = found => {
      now.busy = false;
      if (now.wanted === null) return;
      const newest = now.wanted === wanted;
      if (newest || (keep && !found.error)) setState({...found, busy: !newest, key: wanted.key});
      if (!newest) ask();
    };
    now.busy = true;
    setsup.get(wanted.question).then(answer => done({answer, error: null}), error => done({answer: null, error}));
  };
  useEffect(() => {
    flight.current.wanted = question && {question, key};
    if (question === null) { setState({answer: null, error: null, busy: false, key}); return; }
    setState(before => ({answer: keep ? before.answer : null, error: null, busy: true, key}));
    if (!flight.current.busy) ask();
  }, [key]);
  useEffect(() => () => { flight.current.wanted = null; }, []);
  return keep || state.key === key ? state : {answer: null, error: null, busy: question !== null};
}

// numbers of an answer: base64 of their bytes
function numbersOf({type, data}) {
  const text = atob(data), bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return new {float32: Float32Array, uint32: Uint32Array, float64: Float64Array, uint8: Uint8Array}[type](bytes.buffer);
}

// whether the page is dark, also when that changes while it is open
function useDark() {
  const [query] = useState(() => matchMedia("(prefers-color-scheme: dark)")), [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const turn = () => setDark(query.matches);
    query.addEventListener("change", turn);
    return () => query.removeEventListener("change", turn);
  }, []);
  return dark;
}

function Problem({error}) {
  if (!error) return null;
  if (error.missing) return html`<p class="note" role="status">${error.message}${setsup.command && html` ${" "}The live page has it: <code>${setsup.command}</code>`}</p>`;
  return html`<p class="problem" role="alert">${error.message}</p>`;
}

// thumbnails of rows, many in one image; onPick makes each a button, wrap(thumbnail, place) puts something about it
function Thumbs({source, rows, mask = null, labels = null, onPick = null, wrap = null}) {
  const pieces = [], {chunk} = setsup.tiles;
  for (let start = 0; start < rows.length; start += chunk) pieces.push([start, rows.slice(start, start + chunk)]);
  return html`<div class="thumbs">${pieces.map(([start, some]) => html`<${ThumbPiece} key=${start} source=${source}
    rows=${some} mask=${mask && mask.slice(start, start + chunk)} labels=${labels} onPick=${onPick} wrap=${wrap && ((thumb, place) => wrap(thumb, start + place))} />`)}</div>`;
}

function ThumbPiece({source, rows, mask, labels, onPick, wrap}) {
  const asking = some => (source.about.thumbs && some.length ? {s: source.id, q: "thumbs", rows: some.join(","), ...source.about.more} : null);
  const all = useAnswer(asking(rows));
  // without those that cannot be read, which the error names
  const damaged = (all.error && all.error.rows) || [], rest = rows.filter(row => !damaged.includes(row));
  const some = useAnswer(damaged.length ? asking(rest) : null);
  const {answer, error, busy} = damaged.length ? some : all;
  const {columns, side: tile} = setsup.tiles;
  const thumbs = rows.map((row, number) => {
    const place = damaged.length ? rows.slice(0, number).filter(one => !damaged.includes(one)).length : number;
    const lost = damaged.includes(row);
    const hidden = mask && !mask[number];
    const label = (labels ? labels(row) : `row ${count(row)}`) + (lost ? ", whose image cannot be read" : "") + (hidden ? ", padding" : "");
    const style = {width: tile + "px", height: tile + "px",
      objectPosition: `-${(place % columns) * tile}px -${Math.floor(place / columns) * tile}px`};
    const inside = answer && !error && !lost
      ? html`<img src=${answer} alt="" style=${style} class=${hidden ? "padding" : ""} />`
      : html`<span class=${lost ? "no-image lost" : "no-image"} style=${{minWidth: tile + "px", minHeight: busy || lost ? tile + "px" : "1.6em"}}>${busy ? "" : count(row)}</span>`;
    const thumb = onPick
      ? html`<button type="button" key=${number} class="thumb" title=${label} aria-label=${label} onClick=${() => onPick(row)}>${inside}</button>`
      : html`<span key=${number} class="thumb" title=${label} role="img" aria-label=${label}>${inside}</span>`;
    return wrap ? wrap(thumb, number) : thumb;
  });
  return [...thumbs, all.error && !all.error.missing && html`<${Problem} key="problem" error=${all.error} />`];
}

// buttons that are one tab stop: the arrow keys, Home and End go through them. Attributes of the group, and of the button at a place
function useOneTabStop(buttons) {
  const [held, setHeld] = useState(0), at = Math.min(held, buttons - 1);
  const press = event => {
    const by = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -Infinity, End: Infinity}[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const all = [...event.currentTarget.querySelectorAll("button[tabindex]")];
    all[Math.min(buttons - 1, Math.max(0, at + by))].focus();
  };
  return [{onKeyDown: press}, place => ({tabindex: place === at ? 0 : -1, onFocus: () => setHeld(place)})];
}

// round numbers from low to high, about as many as are wanted, by which an axis is labelled; log: 1, 2 and 5 times powers of ten
function ticks(low, high, wanted, log = false) {
  if (log) {
    const decades = Math.log10(high / low), factors = decades > wanted ? [1] : decades > wanted / 2 ? [1, 3] : [1, 2, 5], apart = Math.ceil(decades / wanted);
    const powers = Array.from({length: Math.floor(Math.log10(high)) - Math.floor(Math.log10(low)) + 1}, (_, at) => Math.floor(Math.log10(low)) + at);
    const marks = powers.filter(power => factors.length > 1 || power % apart === 0).flatMap(power => factors.map(factor => Number(`${factor}e${power}`))).filter(value => value >= low && value <= high);
    if (marks.length > 1) return marks;
  }
  const raw = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find(one => one * power >= raw * 0.999) * power;
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return Array.from({length: last - first + 1}, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

// what may be larger than its place: a reader without a mouse scrolls it with the arrow keys
function Scroll({label, tall = false, children}) {
  return html`<div class=${tall ? "scroll tall" : "scroll"} role="group" aria-label=${label} tabindex="0">${children}</div>`;
}

// one of some values, each a string or a pair of it and what it is called
function Choice({label, value, options, onChange}) {
  return html`<label>${label} <select value=${value} onChange=${event => onChange(event.target.value)}>${options.map(one => (Array.isArray(one) ? one : [one, one]))
    .map(([id, words]) => html`<option key=${id} value=${id}>${words}</option>`)}</select></label>`;
}

// a step, in decimals since it has 64 bits: by buttons and keys, typed, and by a slider; steps are those there are, where not all are
function Stepper({label, step, first = 0n, last, onStep, steps = null}) {
  const [typed, setTyped] = useState(null);
  const noun = label.toLowerCase(), at = step === null ? first : BigInt(step), top = last > 100000n ? 1023n : last;
  const go = to => onStep(String(to < first ? first : to > last ? last : to));
  const move = by => {
    const further = steps && (by < 0n ? steps.filter(one => BigInt(one) < at).pop() : steps.find(one => BigInt(one) > at));
    setTyped(null);
    go(step === null ? first : steps ? BigInt(further ?? at) : at + by);
  };
  const press = event => {
    const by = {ArrowLeft: -1n, ArrowRight: 1n, PageUp: 100n, PageDown: -100n}[event.key];
    if (by !== undefined) { event.preventDefault(); move(by); }
  };
  const number = text => (/^\d{1,19}$/.test(text.replace(/[,_ ]/g, "")) ? BigInt(text.replace(/[,_ ]/g, "")) : null); // with separators, as they are written here
  const type = event => { setTyped(event.target.value); if (number(event.target.value) !== null) go(number(event.target.value)); };
  const wanted = typed === null ? null : number(typed);
  const range = `${label}s go from ${count(String(first))} to ${count(String(last))}`;
  const wrong = typed === null || typed === "" || (step !== null && wanted === at) ? ""
    : wanted === null ? `A ${noun} is a whole number. ${range}.`
    : wanted < first || wanted > last ? `${range}; ${count(String(at))} is shown.`
    : steps ? `This page was exported without ${noun} ${count(String(wanted))}; ${count(String(at))} is the nearest in it.` : "";
  return html`<button type="button" aria-label=${`Previous ${noun}`} onClick=${() => move(-1n)}>◀</button>
    <label>${label} <input class="step" type="text" inputmode="numeric" value=${typed ?? step ?? ""} aria-invalid=${wrong !== ""} onKeyDown=${press} onInput=${type} onBlur=${() => setTyped(null)} /></label>
    <button type="button" aria-label=${`Next ${noun}`} onClick=${() => move(1n)}>▶</button>
    <input type="range" min=${String(first)} max=${String(top)} value=${String(at > top ? top : at)} aria-label=${`${label}, up to ${count(top)}`} onInput=${event => { setTyped(null); go(BigInt(event.target.value)); }} />
    <span role="status" class="note">${wrong}${wrong && !setsup.isLive && setsup.command ? html` All are in <code>${setsup.command}</code>.` : ""}</span>`;
}

function Facts({facts}) {
  return html`<dl class="facts">${facts.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function Copy({text, label}) {
  const [done, setDone] = useState(false);
  const area = useRef(null);
  const copy = () => {
    area.current.select();
    const said = () => { setDone(true); setTimeout(() => setDone(false), 1500); };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(said, () => document.execCommand("copy") && said());
    else if (document.execCommand("copy")) said();
  };
  return html`<div class="copy"><label>${label}<textarea ref=${area} readonly rows=${text.split("\n").length} spellcheck="false" value=${text}></textarea></label>
    <button type="button" onClick=${copy}>${done ? "Copied" : "Copy"}</button></div>`;
}

const percent = chance => {
  if (chance === null || chance === undefined) return "not known";
  if (chance === 0) return "never";
  return chance >= 0.001 ? `${(100 * chance).toPrecision(3)} %` : chance.toExponential(2);
};
