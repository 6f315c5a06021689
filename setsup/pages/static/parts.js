// Parts that all views share.
"use strict";
const {html, render, useState, useEffect, useRef} = htmPreact;

const count = number => Number(number).toLocaleString("en-US");
const plural = (number, noun) => `${count(number)} ${noun}${Number(number) === 1 ? "" : "s"}`;

// a factor's name as an expression has it, whatever it is
const nameOf = name => "`" + name.replaceAll("`", "``") + "`";

// the answer to a question: {answer, error, busy}; null asks nothing. With keep, the one before stays while it is busy
function useAnswer(question, keep = false) {
  const [state, setState] = useState({answer: null, error: null, busy: question !== null});
  const key = JSON.stringify(question);
  useEffect(() => {
    let current = true;
    if (question === null) { setState({answer: null, error: null, busy: false, key}); return undefined; }
    setState(before => ({answer: keep ? before.answer : null, error: null, busy: true, key}));
    setsup.get(question).then(
      answer => current && setState({answer, error: null, busy: false, key}),
      error => current && setState({answer: null, error, busy: false, key}),
    );
    return () => { current = false; };
  }, [key]);
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
  return html`<p class="problem" role="alert">${error.message}${error.missing && html` ${" "}Ask it live: <code>${setsup.command}</code>`}</p>`;
}

// thumbnails of rows, many in one image; onPick makes each a button, wrap(thumbnail, place) puts something about it
function Thumbs({source, rows, tile = 64, mask = null, labels = null, onPick = null, wrap = null}) {
  const modality = source.about.thumbs;
  const pieces = [];
  for (let start = 0; start < rows.length; start += 64) pieces.push([start, rows.slice(start, start + 64)]);
  return html`<div class="thumbs">${pieces.map(([start, some]) => html`<${ThumbPiece} key=${start} source=${source}
    modality=${modality} rows=${some} tile=${tile} mask=${mask && mask.slice(start, start + 64)} labels=${labels} onPick=${onPick} wrap=${wrap && ((thumb, place) => wrap(thumb, start + place))} />`)}</div>`;
}

function ThumbPiece({source, modality, rows, tile, mask, labels, onPick, wrap}) {
  const asked = modality ? {s: source.id, q: "thumbs", rows: rows.join(","), modality, tile, ...source.about.more} : null;
  const {answer, error} = useAnswer(asked);
  const columns = source.about.columns;
  return rows.map((row, place) => {
    const hidden = mask && !mask[place];
    const label = (labels ? labels(row) : `row ${count(row)}`) + (hidden ? ", padding" : "");
    const style = {width: tile + "px", height: tile + "px",
      objectPosition: `-${(place % columns) * tile}px -${Math.floor(place / columns) * tile}px`};
    const inside = answer && !error
      ? html`<img src=${answer} alt="" style=${style} class=${hidden ? "padding" : ""} />`
      : html`<span class="no-image" style=${{minWidth: tile + "px", minHeight: "1.6em"}}>${count(row)}</span>`;
    const thumb = onPick
      ? html`<button type="button" key=${place} class="thumb" title=${label} aria-label=${label} onClick=${() => onPick(row)}>${inside}</button>`
      : html`<span key=${place} class="thumb" title=${label} role="img" aria-label=${label}>${inside}</span>`;
    return wrap ? wrap(thumb, place) : thumb;
  });
}

// what may be larger than its place: a reader without a mouse scrolls it with the arrow keys
function Scroll({label, tall = false, children}) {
  return html`<div class=${tall ? "scroll tall" : "scroll"} role="group" aria-label=${label} tabindex="0">${children}</div>`;
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
