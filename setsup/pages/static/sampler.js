// A sampler: the draw of any step, what is reached, when a row is drawn.
"use strict";

// the one share there is without ranks
const ALONE = {rank: "0", world: "1"};

const assemble = (kind, fingerprint, fields) => {
  const given = Object.entries(fields).filter(([, text]) => text.trim() !== "").map(([name, text]) => `${JSON.stringify(name)}:${asJson(text)}`);
  return `{"sampler":${JSON.stringify(kind)},${fingerprint ? `"fingerprint":${JSON.stringify(fingerprint)},` : ""}"arguments":{${given.join(",")}}}`;
};

// what a user typed, as JSON: as it is where it is JSON, else a list where there are commas, else a string
function asJson(text) {
  const given = text.trim();
  try { JSON.parse(given); return given; } catch { /* bare words */ }
  if (given === "True" || given === "False" || given === "None") return {True: "true", False: "false", None: "null"}[given];
  return given.includes(",") && !/[=<>"']/.test(given) ? JSON.stringify(given.split(",").map(one => one.trim()).filter(Boolean)) : JSON.stringify(given);
}

function SamplerView({source, data, start}) {
  const [compared, setCompared] = useState(false);
  const held = useRef(start); // the first one as it is now, with which the second one begins
  if (!source.about.first && !start) return html`<div class="view"><p>No factor of this table has two rows of one level, so there is no sampler to begin with.</p></div>`;
  return html`<div class="view"><div class=${compared ? "beside" : ""}>
    <${SamplerPanel} key="one" source=${source} data=${data} start=${start} linked=${true} name="" held=${held} />
    ${compared && html`<${SamplerPanel} key="two" source=${source} data=${data} start=${held.current} linked=${false} name="Second " />`}
  </div><p><button type="button" onClick=${() => setCompared(!compared)} aria-pressed=${compared}>${compared ? "Show one sampler" : "Compare with a second sampler"}</button></p></div>`;
}

function SamplerPanel({source, data, start, linked, name, held = null}) {
  const first = source.about.first;
  const [text, setText] = useState(start ? start.sampler : first.text);
  const [step, setStep] = useState(start ? start.step : source.about.begin);
  const [share, setShare] = useState(start ? start.share : ALONE);
  const [row, setRow] = useState(null);
  const [shown, setShown] = useState(null);
  const [last, setLast] = useState(source.about.last); // of the rank; that of the answer before, while there is an error
  if (held) held.current = {sampler: text, step, share};
  const split = share.world === "1" ? {} : share;
  const found = useAnswer({s: source.id, q: "draw", sampler: text, step, ...split}, true);
  const current = !found.error && found.answer ? found.answer : null;
  useEffect(() => { if (current) { setShown(current.described); setLast(current.last); } }, [current]);
  useEffect(() => {
    if (linked) history.replaceState(null, "", "#" + new URLSearchParams({view: "sampler", d: data.id, sampler: text, step, ...split}));
  }, [linked, text, step, share]);
  const described = shown || (first ? first : {sampler: "SetSampler", arguments: {}});
  const said = current ? `step ${count(current.step)}${split.rank ? " of all ranks" : ""}: ${plural(current.sets.length, "set")} of ${plural(current.sets[0].rows.length, "row")}${current.weights ? `, drawn by weight: ${current.weights}` : ""}` : "";
  return html`<div class="panel">
    <${SamplerForm} source=${source} described=${described} text=${text} onChange=${setText} name=${name} />
    <section aria-label=${`${name}Draw`}><h2>${name}Draw</h2>
      <p class="choice"><${Stepper} label="Step" step=${step} last=${BigInt(last)} onStep=${setStep} />
        <label>Rank <input class="small" type="text" inputmode="numeric" value=${share.rank} disabled=${!setsup.isLive} onInput=${event => /^\d{1,4}$/.test(event.target.value) && setShare({...share, rank: event.target.value})} /></label>
        <label>of <input class="small" type="text" inputmode="numeric" value=${share.world} disabled=${!setsup.isLive} onInput=${event => /^[1-9]\d{0,3}$/.test(event.target.value) && setShare({...share, world: event.target.value})} /></label></p>
      <p aria-live="polite" class=${found.busy ? "busy" : ""}>${said}</p><${Problem} error=${found.error} />
      ${current && current.sets.map((one, place) => html`<${SetBlock} key=${place} number=${place} set=${one} data=${data} onPick=${setRow} />`)}
      ${row !== null && html`<${DrawnRow} source=${source} data=${data} text=${text} row=${row} step=${step} split=${split} since=${current && current.since} onStep=${setStep} onClose=${() => setRow(null)} />`}
    </section>
    ${current && html`<${ReachSection} source=${source} text=${text} since=${current.since} name=${name} />`}
    ${current && html`<${Coverage} source=${source} text=${text} name=${name} />`}
    ${current && html`<section aria-label=${`${name}Code`}><h2>The same elsewhere</h2><${Copy} label="Python" text=${current.python} />
      ${current.command ? html`<${Copy} label="Command line" text=${current.command} />` : html`<p>No command line gives this draw: <code>setsup sample</code> draws steps from 0 on, and has fewer options.</p>`}</section>`}
  </div>`;
}

function SamplerForm({source, described, text, onChange, name}) {
  const kinds = source.about.kinds, options = kinds[described.sampler] || [];
  const [draft, setDraft] = useState(null);
  const [kind, setKind] = useState(null);
  const chosen = kind || described.sampler;
  const fields = draft || described.arguments;
  const listed = kinds[chosen] || Object.keys(described.arguments).map(one => ({name: one, default: "", choices: [], needed: false}));
  const first = source.about.first;
  const begins = first && !source.about.given && /"small"/.test(text) && text === first.text;
  useEffect(() => { setDraft(null); setKind(null); }, [JSON.stringify(described)]); // an answer for another step leaves what is typed
  const apply = event => { event.preventDefault(); onChange(assemble(chosen, described.fingerprint, fields)); };
  const change = (option, value) => setDraft({...fields, [option]: value});
  const paste = event => event.target.value.trim() && onChange(event.target.value.trim());
  return html`<section aria-label=${`${name}Sampler`}><h2>${name}Sampler</h2>
    <form onSubmit=${apply} class="options"><fieldset disabled=${!setsup.isLive}>
      <${Choice} label="kind" value=${chosen} options=${[...new Set([...Object.keys(kinds), described.sampler])]} onChange=${to => { setKind(to); setDraft(beginning(to, text, source.about.tables)); }} />
      ${listed.map(option => option.choices.length ? html`<${Choice} key=${option.name} label=${option.name + (option.needed ? " (needed)" : "")} value=${plain(fields[option.name] ?? option.default)} options=${option.choices} onChange=${to => change(option.name, JSON.stringify(to))} />`
    : html`<label key=${option.name} class=${WHOLE.includes(option.name) ? "whole-line" : ""}>${option.name}${option.needed ? " (needed)" : ""}
        ${WHOLE.includes(option.name) ? html`<textarea rows="3" spellcheck="false" required=${option.needed} value=${fields[option.name] ?? ""} placeholder=${option.name === "neighbours" ? "[[1, 2], [0, 2], …], a line for each row" : option.name === "overlaps" ? "the name of a table" : "the JSON of sampler.to_dict()"} onInput=${event => change(option.name, event.target.value)}></textarea>${option.name === "neighbours" ? html`<small>${tableWords(source.about.tables)}</small>` : option.name === "overlaps" && html`<small>${overlapWords(source.about.tables)}</small>`}`
    : html`<input type="text" spellcheck="false" autocomplete="off" required=${option.needed} value=${plain(fields[option.name] ?? "")} placeholder=${option.name === "overlap" ? "[0.3, 0.8]" : option.needed ? "factor, factor" : plain(option.default)} onInput=${event => change(option.name, event.target.value)} />`}</label>`)}
      <button type="submit">Draw</button></fieldset></form>
    ${begins && html`<p class="note">The page begins with sets that fix the first factor, and with small = drop: groups that are too small for a set are omitted and listed below. Python's default, error, refuses such a sampler.</p>`}
    <details><summary>Paste or copy a sampler as data</summary><label>what <code>sampler.to_dict()</code> gives, as JSON<textarea rows="4" spellcheck="false" readonly=${!setsup.isLive} value=${text} onChange=${paste}></textarea></label></details>
  </section>`;
}

// options that are samplers, or tables
const WHOLE = ["base", "samplers", "neighbours", "overlaps"];

const tableWords = tables => (tables.length ? `or the name of a table that this page knows: ${tables.join(", ")}` : "or a table of a file, as setsup embed --neighbours writes it: start the page with --sampler FILE, the JSON of to_dict() of a NeighbourSampler of that file");

const overlapWords = tables => (tables.length ? `a table that this page knows: ${tables.join(", ")}` : "a table of a file: start the page with --sampler FILE, the JSON of to_dict() of an OverlapSampler of that file");

// what a kind that is made of other samplers begins with: the one that is shown
function beginning(kind, text, tables) {
  return kind === "Mixture" ? {base: text} : kind === "Zip" ? {samplers: `[${text},${text}]`} : kind === "NeighbourSampler" && tables.length ? {neighbours: JSON.stringify(tables[0])} : kind === "OverlapSampler" && tables.length ? {overlaps: JSON.stringify(tables[0])} : {};
}

// JSON of an argument as a user writes it: strings without quotes, lists of strings with commas, null as nothing
function plain(text) {
  if (text === undefined || text === "null") return "";
  try {
    const value = JSON.parse(text);
    if (typeof value === "string") return value;
    if (Array.isArray(value) && value.length > 1 && value.every(one => typeof one === "string" && /^\w+$/.test(one))) return value.join(", ");
  } catch { /* as it is */ }
  return text;
}

// step, and when it is drawn next: of the rank, where there are several
function DrawnRow({source, data, text, row, step, split, since, onStep, onClose}) {
  const {answer, error} = useAnswer(since && {s: source.id, q: "row", sampler: text, row, step: since});
  const [from, setFrom] = useState(null), place = JSON.stringify(split);
  useEffect(() => setFrom(null), [row, text, place]);
  const when = useAnswer(from === null ? null : {s: source.id, q: "when", sampler: text, row, step: from, ...split});
  const next = String(BigInt(step) + 1n), rank = split.rank ? ` of rank ${split.rank}` : "";
  return html`<div class="detail"><h3>Row ${count(row)} <button type="button" onClick=${onClose}>Close</button></h3><${Problem} error=${error} />
    ${answer && html`<p>Chance in a step: <strong>${answer.estimated && answer.chance ? "about " : ""}${percent(answer.chance)}</strong>${answer.wait !== null && answer.chance ? `; on average it is drawn every ${count(Math.round(answer.wait))} steps` : ""}.</p>
      ${answer.reasons.map(one => html`<p key=${one.reason}>Never drawn: ${one.reason}. ${one.option && html`To reach it: ${one.option}.`}</p>`)}`}
    <p><button type="button" disabled=${!setsup.isLive} onClick=${() => setFrom(next)}>When is it drawn next?</button>${!setsup.isLive && html` <small>asked live: <code>${setsup.command}</code></small>`}
    ${from !== null && when.busy && html` <span class="busy">searching …</span>`}
    ${from !== null && !when.busy && when.answer && html`<span aria-live="polite"> ${when.answer.steps.length ? html`At ${when.answer.steps.map((one, at) => html`${at ? ", " : ""}<button type="button" class="link" key=${one} onClick=${() => onStep(one)}>step ${count(one)}</button>`)}${rank}.` : when.answer.ends ? `Not again, up to the last step${rank}.` : `Not before step ${count(when.answer.until)}${rank}.`}</span>`}</p>
    <${Problem} error=${when.error} /></div>`;
}

function ReachSection({source, text, since, name}) {
  const {answer, error, busy} = useAnswer({s: source.id, q: "reach", sampler: text, step: since});
  return html`<section aria-label=${`${name}Reach`}><h2>What is drawn, and what never is</h2><${Problem} error=${error} />${busy && !answer && html`<p class="busy">counting …</p>`}
    ${answer && answer.groups.map((one, place) => html`<div key=${place}>
      <p>${one.what === "nothing" ? "All rows as one group" : html`Groups of equal <strong>${one.what}</strong>`}${one.sets.length ? ` (sets ${one.sets.join(", ")})` : ""}: ${count(one.drawable)} of ${count(one.groups)} ${one.groups === 1 ? "is" : "are"} drawn${one.least_chance === null ? "" : `, each with a chance of ${one.estimated ? "about " : ""}${percent(one.least_chance)}${one.largest_chance > one.least_chance * 1.001 ? ` to ${percent(one.largest_chance)}` : ""} in a step`}.</p>
      ${one.never.map(never => html`<div class="never" key=${never.reason}><p><strong>Never drawn: ${plural(never.groups, "group")}, ${plural(never.rows, "row")}.</strong> Why: ${never.reason}.${never.option && html` To reach ${never.groups === 1 ? "it" : "them"}: <em>${never.option}</em>.`}</p>
        <ul>${never.first.map(group => html`<li key=${group}>${group}</li>`)}${never.groups > never.first.length && html`<li>and ${count(never.groups - never.first.length)} more</li>`}</ul></div>`)}
      ${one.never.length === 0 && html`<p>Every group is drawn.</p>`}
      ${one.unknown_rows > 0 && html`<p>${plural(one.unknown_rows, "row")} in no group: a fixed value is unknown there.</p>`}
      ${one.excluded_rows > 0 && html`<p>${plural(one.excluded_rows, "row")} excluded by where= and weights=.</p>`}
      ${one.unreached_rows > 0 && html`<p>${plural(one.unreached_rows, "row")} of drawn groups never drawn: ${one.unreached}.</p>`}
      <details><summary>Chance of each group</summary><${Scroll} label=${`Chance of each group of equal ${one.what}`}><table><thead><tr><th scope="col">group</th><th scope="col">rows</th><th scope="col">chance in a step</th></tr></thead>
        <tbody>${one.first.map(group => html`<tr key=${group.group}><th scope="row">${group.group}</th><td>${count(group.rows)}</td><td>${percent(group.chance)}</td></tr>`)}</tbody></table><//>
        ${one.drawable > one.first.length && html`<p>${count(one.first.length)} of ${count(one.drawable)} groups, the most likely ones.</p>`}</details></div>`)}
    ${answer && answer.notes.map(note => html`<p key=${note}>${note}</p>`)}
    ${answer && html`<details><summary>Report</summary><pre>${answer.report}</pre></details>`}</section>`;
}

function Coverage({source, text, name}) {
  const [asked, setAsked] = useState(!setsup.isLive);
  const {answer, error, busy} = useAnswer(asked ? {s: source.id, q: "coverage", sampler: text} : null);
  return html`<section aria-label=${`${name}Coverage`}><h2>Coverage</h2>${setsup.isLive && html`<p><button type="button" onClick=${() => setAsked(true)} disabled=${asked}>Count the rows of the first steps</button></p>`}<${Problem} error=${error} />
    ${asked && busy && html`<p class="busy">counting …</p>`}
    ${answer && html`<${Scroll} label="Distinct rows after some steps"><table><thead><tr><th scope="col">steps</th><th scope="col">distinct rows</th><th scope="col">of ${count(answer.of)}</th></tr></thead>
      <tbody>${answer.steps.map((stop, place) => html`<tr key=${stop}><th scope="row">${count(stop)}</th><td>${count(answer.rows[place])}</td><td>${(100 * answer.rows[place] / answer.of).toPrecision(3)} %</td></tr>`)}</tbody></table><//>`}</section>`;
}
