// A dataset: its card, counts under a filter, pairs of factors, rows.
"use strict";

function DatasetView({source}) {
  const [draft, setDraft] = useState("");
  const [{where, clicked}, setFilter] = useState({where: "", clicked: {}});
  const [row, setRow] = useState(null);
  const [pending, setPending] = useState({busy: false, error: null});
  const held = useRef({typed: "", clicked: {}}), asked = useRef(held.current);
  // what is typed and, of each factor, the bar that is clicked; it holds once its rows are counted: what is no expression changes nothing
  const filter = (text, clicked = {}) => {
    const typed = text.trim();
    const bars = Object.values(clicked), where = [typed && bars.length ? `(${typed})` : typed, ...bars].filter(Boolean).join(" and "), now = {typed, clicked};
    const mine = then => value => now === asked.current && then(value);
    asked.current = now;
    setDraft(where);
    setPending({busy: true, error: null});
    setsup.get({s: source.id, q: estimated(source) ? "estimate" : "counts", where}).then(
      mine(() => { held.current = now; setFilter({where, clicked}); setPending({busy: false, error: null}); }),
      mine(error => { asked.current = held.current; setPending({busy: false, error}); }),
    );
  };
  // a bar that is clicked again is left out; an exported page has the filters of one bar
  const pick = (name, expression) => {
    const {typed, clicked: {[name]: before, ...others}} = setsup.isLive ? asked.current : {typed: "", clicked: asked.current.clicked};
    filter(typed, {...(setsup.isLive ? others : {}), ...(before === expression ? {} : {[name]: expression})});
  };
  const total = useCounts(source, "");
  const found = useCounts(source, where);
  const shown = found.answer;
  const told = shown && `${count(shown.rows)} of ${plural(source.about.rows, "row")}${!where ? "" : pending.error ? ` satisfy ${where}` : " satisfy the filter"}`;
  const message = found.error ? "" : !shown ? "counting …" : !shown.sample ? told
    : `about ${told}: estimated from ${count(shown.sample)} random rows, shares of all rows within 0.6 percentage points (95 %); counting all …`;
  return html`<div class="view">
    <${Card} about=${source.about} />
    <section aria-labelledby="filter-heading"><h2 id="filter-heading">Filter</h2>
      <form class="filter" onSubmit=${event => { event.preventDefault(); if (draft === where) filter(held.current.typed, clicked); else filter(draft); }}>
        <label class="grow">Rows where <input type="text" value=${draft} maxlength="2000" spellcheck="false" autocomplete="off" disabled=${!setsup.isLive}
          placeholder=${example(source.about.factors)} onInput=${event => setDraft(event.target.value)} /></label>
        <button type="submit" disabled=${!setsup.isLive}>Apply</button>
        <button type="button" onClick=${() => filter("")} disabled=${!where && !draft}>Clear</button>
      </form>
      <p aria-live="polite" class=${found.busy || pending.busy ? "busy" : ""}>${message}</p>
      <${Problem} error=${pending.error || found.error} />
    </section>
    <section aria-labelledby="histogram-heading"><h2 id="histogram-heading">Values</h2>
      <div class="histograms">${source.about.factors.map(factor => html`<${Histogram} key=${factor.name} factor=${factor}
        sample=${shown && shown.sample}
        all=${total.answer && total.answer.factors[factor.name]} some=${where && shown ? shown.factors[factor.name] : null}
        clicked=${clicked[factor.name]} onPick=${expression => pick(factor.name, expression)} />`)}</div>
    </section>
    <${Joint} source=${source} where=${where} />
    <${Rows} source=${source} where=${where} onPick=${setRow} />
    ${row !== null && html`<${RowDetail} source=${source} row=${row} onClose=${() => setRow(null)} />`}
  </div>`;
}

// large tables are estimated at once, while all their rows are counted
const estimated = source => setsup.isLive && source.about.sample > 0;

function useCounts(source, where) {
  const exact = useAnswer({s: source.id, q: "counts", where}, true);
  const quick = useAnswer(estimated(source) ? {s: source.id, q: "estimate", where} : null);
  return exact.busy && quick.answer ? {...quick, busy: true} : exact;
}

// an expression for this table
function example(factors) {
  const factor = factors.find(one => one.literals && one.literals.length);
  return factor ? `${factor.term} == ${factor.literals[0]}` : "";
}

function Card({about}) {
  const modalities = about.modalities.map(one => `${one.name}: ${one.shape.map(side => side ?? "any").join(" × ").replace("any × any", "any size")} ${one.dtype}${one.unit ? " " + one.unit : ""}`);
  return html`<section aria-labelledby="card-heading"><h2 id="card-heading">${about.title || about.name}</h2>
    ${about.description && html`<p class="prose">${about.description}</p>`}
    <${Facts} facts=${[["name", about.name], ["rows", count(about.rows) + (about.grid ? ", all combinations of levels" : "")],
      ["factors", about.factors.length], ["arrays", modalities.join("; ")], ["licence", about.licence], ["images", about.withheld ? "not included: the licence does not permit redistribution" : ""], ["homepage", about.homepage],
      ["fingerprint", html`<code>${about.fingerprint}</code>`]]} />
    ${about.citation && html`<details><summary>Citation</summary><pre>${about.citation}</pre></details>`}
  </section>`;
}

const BARS = 60;

function Histogram({factor, sample, all, some, clicked, onPick}) {
  const unit = factor.unit ? ` (${factor.unit})` : "";
  const kind = factor.kind + (factor.within ? `, within ${factor.within}` : "") + (factor.role !== "variation" ? `, ${factor.role}` : "");
  if (!all) return html`<figure class="histogram"><figcaption>${factor.name}${unit} <small>${kind}</small></figcaption><p class="busy">counting …</p></figure>`;
  const counts = (some || all).counts;
  // a filter's own levels are shown where it lists others, of a factor with very many, and its own bins where rows are estimated
  const own = some && (some.levels || String(some.edges) !== String(all.edges)), of = own ? some : all;
  const listed = of.edges ? bins(factor, of) : levels(factor, of), top = Math.max(1, ...of.counts);
  // of many levels, a bar for each of the first that have rows
  const known = listed.map((_, place) => place), had = place => of.counts[place] > 0;
  const kept = listed.length > BARS ? known.filter(had) : known, places = kept.slice(0, BARS), bars = places.map(place => listed[place]);
  // under few bars stands the level of each, under more that of the first and of the last
  const each = !of.edges && bars.length > 2 && bars.length <= 6 && bars.every(item => item.short.length <= 42 / bars.length);
  const ends = each || bars.length < 2 ? bars : [bars[0], bars[bars.length - 1]];
  const unknown = (some || all).unknown, about = sample ? "about " : "";
  return html`<figure class="histogram"><figcaption>${factor.name}${unit} <small>${kind}, ${factor.literals ? plural(factor.size, "level") : "numbers"}${unknown ? `, ${count(unknown)} unknown` : ""}</small></figcaption>
    <${Bars} factor=${factor} bars=${bars} clicked=${clicked} onPick=${onPick} about=${about}
      parts=${places.map(place => counts[place])} wholes=${places.map(place => (own ? 0 : all.counts[place]))} top=${top} />
    <div class=${each ? "ends each" : "ends"}>${ends.map((item, at) => html`<span key=${at} title=${item.short}>${item.short}</span>`)}</div>
    ${listed.length > BARS && html`<small>bars: ${kept.length > BARS ? `the first ${BARS} of the ` : "the "}${plural(kept.length, "level")} with rows</small>`}
    <details><summary>as a table</summary><${Scroll} label=${`Rows by ${factor.name}, as a table`}><table><thead><tr><th scope="col">${factor.name}</th><th scope="col">rows</th>${some && !own && html`<th scope="col">of</th>`}</tr></thead>
      <tbody>${listed.map((item, place) => html`<tr key=${place}><th scope="row">${item.label}</th><td>${about}${count(counts[place])}</td>${some && !own && html`<td>${count(all.counts[place])}</td>`}</tr>`)}
      ${unknown > 0 && html`<tr><th scope="row">unknown</th><td>${count(unknown)}</td></tr>`}</tbody></table><//></details></figure>`;
}

function Bars({factor, bars, parts, wholes, top, clicked, about, onPick}) {
  const [group, button] = useOneTabStop(bars.length);
  return html`<div class="bars ${bars.length > 24 ? "dense" : ""}" role="group" aria-label=${`Rows by ${factor.name}`} ...${group}>${bars.map((item, at) => html`<button key=${at} type="button" ...${button(at)}
    class="bar" aria-label=${`${factor.name} ${item.label}: ${about}${plural(parts[at], "row")}`} title=${`${item.label}: ${about}${count(parts[at])}`}
    aria-pressed=${item.expression === clicked} disabled=${!setsup.isLive && !item.exported} onClick=${() => onPick(item.expression)}>
      <span class="whole" style=${{height: `${100 * wholes[at] / top}%`}}></span>
      <span class="part" style=${{height: `${100 * parts[at] / top}%`}}></span></button>`)}</div>`;
}

function levels(factor, found) {
  const names = found.levels || factor.levels;
  return names.map((label, code) => {
    const literal = found.literals ? found.literals[code] : factor.literals[code];
    return {label, short: label, expression: `${factor.term} == ${literal}`, exported: factor.exported};
  });
}

function bins(factor, found) {
  const edges = found.edges, last = edges.length - 2, name = factor.term;
  // as many digits as tell edges apart
  const digits = [3, 4, 5, 6, 7, 8].find(most => new Set(edges.map(one => one.toPrecision(most))).size === edges.length) || 9;
  const words = edge => String(Number(edge.toPrecision(digits)));
  return found.counts.map((_, place) => ({
    label: `${words(edges[place])} to ${words(edges[place + 1])}`,
    short: words(place === last ? edges[last + 1] : edges[place]),
    expression: `${name} >= ${edges[place]} and ${name} ${place === last ? "<=" : "<"} ${edges[place + 1]}`,
    exported: false,
  }));
}

function Joint({source, where}) {
  const names = source.about.factors.filter(one => one.literals).map(one => one.name);
  // what an exported page holds are factors of few levels
  const few = source.about.factors.filter(one => one.exported).map(one => one.name);
  const [pair, setPair] = useState((!setsup.isLive && few.length > 1 ? few : names).slice(0, 2));
  const canvas = useRef(null), dark = useDark();
  const {answer, error} = useAnswer(names.length > 1 && pair[0] !== pair[1] ? {s: source.id, q: "joint", x: pair[0], y: pair[1], where} : null);
  const [x, y] = pair.map(name => source.about.factors.find(one => one.name === name));
  useEffect(() => {
    if (!answer || !canvas.current) return;
    const rows = answer.counts, columns = rows[0].length, top = most(rows), side = sideOf(rows), gap = side > 5 ? 1 : 0;
    const context = canvas.current.getContext("2d");
    canvas.current.width = columns * side; canvas.current.height = rows.length * side;
    rows.forEach((line, down) => line.forEach((number, across) => {
      context.fillStyle = shade(number / top, dark);
      context.fillRect(across * side, down * side, side - gap, side - gap);
    }));
  }, [answer, dark]);
  if (names.length < 2) return null;
  const choose = place => html`<${Choice} label=${place ? "Columns" : "Lines"} value=${pair[place]} options=${names} onChange=${name => setPair(pair.map((old, at) => (at === place ? name : old)))} />`;
  const cells = answer ? answer.counts.length * answer.counts[0].length : 0;
  return html`<section aria-labelledby="joint-heading"><h2 id="joint-heading">Two factors</h2>
    <p class="choice">${choose(0)}${choose(1)}</p><${Problem} error=${error} />
    ${answer && html`<div class="map"><div class="axis">${y.name}</div><${Levels} names=${y.levels} side=${sideOf(answer.counts)} across=${true} /><div class="axis up">${x.name}</div><${Levels} names=${x.levels} side=${sideOf(answer.counts)} />
      <canvas ref=${canvas} class="heat" role="img" aria-label=${`Rows by ${pair[0]} (lines) and ${pair[1]} (columns), as in the table below`}></canvas></div>
      <p class="note"><span class="key" style=${{background: shade(0, dark)}}></span> no row
        to <span class="key" style=${{background: shade(1, dark)}}></span> ${plural(most(answer.counts), "row")}.</p>
      ${cells <= 2500 ? html`<details open=${cells <= 200}><summary>as a table</summary><${Scroll} label=${`Rows by ${x.name} and ${y.name}, as a table`}><table><thead><tr><th scope="col">${x.name} \\ ${y.name}</th>${y.levels.map(level => html`<th scope="col" key=${level}>${level}</th>`)}</tr></thead>
      <tbody>${answer.counts.map((line, at) => html`<tr key=${at}><th scope="row">${x.levels[at]}</th>${line.map((number, place) => html`<td key=${place}>${count(number)}</td>`)}</tr>`)}</tbody></table><//></details>`
    : html`<p>${count(cells)} combinations: too many for a table here; <code>table.joint_counts</code> gives them.</p>`}`}
  </section>`;
}

const most = rows => Math.max(1, ...rows.map(row => Math.max(...row)));

// pixels of a cell of the map
const sideOf = counts => Math.max(1, Math.min(28, Math.floor(480 / Math.max(counts[0].length, counts.length))));

// levels along an axis of the map: as many as have room, the first among them
function Levels({names, side, across = false}) {
  const longest = Math.min(12, Math.max(...names.map(name => [...name].length))), room = across ? 8 * longest + 6 : 18;
  const every = Math.max(1, Math.ceil(room / side));
  const shown = names.map((name, at) => [name, at]).filter(([, at]) => at % every === 0);
  return html`<div class=${across ? "levels across" : "levels"} aria-hidden="true" style=${across ? {} : {width: `${longest + 1}ch`}}>${shown.map(([name, at]) => html`<span key=${at} title=${name} style=${{[across ? "left" : "top"]: `${(at + 0.5) / names.length * 100}%`}}>${name}</span>`)}</div>`;
}

// the colour of a share of the largest count, from that of the ground; no row is much nearer to it than one
function shade(part, dark) {
  const share = part ? 0.12 + 0.88 * part : 0, [none, most] = dark ? [[32, 41, 51], [108, 178, 232]] : [[247, 250, 252], [33, 103, 172]];
  return `rgb(${none.map((from, at) => Math.round(from + (most[at] - from) * share)).join(", ")})`;
}

function Rows({source, where, onPick}) {
  const [order, setOrder] = useState("table");
  const [page, setPage] = useState(0);
  useEffect(() => setPage(0), [where, order]);
  const {answer, error, busy} = useAnswer({s: source.id, q: "rows", order, page, where}, true);
  const limit = source.about.shown || Infinity;
  const pages = answer ? Math.max(1, Math.ceil(Math.min(answer.count, limit) / source.about.page)) : 1;
  const label = row => {
    const place = answer.rows.indexOf(row);
    return `row ${count(row)}: ` + Object.entries(answer.values).map(([name, values]) => `${name} ${values[place] || "unknown"}`).join(", ");
  };
  return html`<section aria-labelledby="rows-heading"><h2 id="rows-heading">Rows</h2>
    <p class="choice"><${Choice} label="Order" value=${order} options=${[["table", "of the table"], ["random", "random, the same each time"]]} onChange=${setOrder} />
      <button type="button" disabled=${page === 0} onClick=${() => setPage(page - 1)}>Previous</button>
      <span aria-live="polite" class=${busy ? "busy" : ""}>page ${count(page + 1)} of ${count(pages)}</span>
      <button type="button" disabled=${page + 1 >= pages} onClick=${() => setPage(page + 1)}>Next</button></p>
    ${answer && answer.count > limit && html`<p class="note">This exported page has the first ${count(limit)} of ${plural(answer.count, "row")} in either order; <code>${setsup.command}</code> has them all.</p>`}
    <${Problem} error=${error} />
    ${answer && (answer.rows.length ? html`<${Thumbs} source=${source} rows=${answer.rows} labels=${label} onPick=${onPick} />` : html`<p>No row satisfies the filter.</p>`)}
  </section>`;
}

function RowDetail({source, row, onClose}) {
  const {answer, error} = useAnswer({s: source.id, q: "row", row});
  const heading = useRef(null);
  useEffect(() => heading.current && heading.current.focus(), [row]);
  const close = event => event.key === "Escape" && onClose();
  return html`<section class="detail" aria-labelledby="row-heading" onKeyDown=${close}><h2 id="row-heading" tabindex="-1" ref=${heading}>Row ${count(row)}</h2>
    <button type="button" onClick=${onClose}>Close</button><${Problem} error=${error} />
    ${answer && answer.row === row && html`<${Facts} facts=${Object.entries(answer.values).map(([name, value]) => [name, value || "unknown"])} />
      <div class="modalities">${answer.modalities.map(one => html`<figure key=${one.name}>${one.image && html`<${Whole} source=${source} row=${row} modality=${one.name} />`}
        <figcaption><strong>${one.name}</strong> ${one.words}</figcaption></figure>`)}</div>`}
  </section>`;
}

function Whole({source, row, modality}) {
  const {answer, error} = useAnswer({s: source.id, q: "image", row, modality});
  return error ? html`<${Problem} error=${error} />` : answer && html`<img class="whole-image" src=${answer} alt=${`${modality} of row ${row}`} />`;
}
