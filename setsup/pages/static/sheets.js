// Sets of a draw, laid out by what their positions are: members and the canonical image of an orbit, anchor, positive and negative.
"use strict";
const someOf = (names, most = 6) => names.slice(0, most).join(", ") + (names.length > most ? ` and ${count(names.length - most)} more` : "");

function SetBlock({number, set, data, onPick}) {
  const words = pairs => Object.entries(pairs).map(([name, value]) => `${name} = ${value}`).join(", ");
  const varying = Object.entries(set.varying).map(([name, values]) => `${name} ${values}`).join(", ");
  const changed = set.labels && Object.entries(set.labels).filter(([, yes]) => yes).map(([name]) => name).join(", ");
  const told = set.roles && set.roles.length <= 3 ? null : varying;
  return html`<div class="set"><p><strong>set ${number}</strong> ${set.of && html`<small>${set.of}</small> `}${set.roles && !words(set.fixed) ? "" : `fixed: ${words(set.fixed) || "nothing"}`}${set.labels && html`; labels: ${changed || "none"}`}
    ${told && html`<br /><small>distinct values: ${told}</small>`}</p>
    ${set.roles && set.roles.length <= 3 ? html`<${Roles} set=${set} data=${data} onPick=${onPick} />`
    : set.canonical !== undefined ? html`<${Orbit} set=${set} data=${data} onPick=${onPick} />`
      : html`<${Thumbs} source=${data} rows=${set.rows} mask=${set.mask || null} onPick=${onPick} wrap=${captioned(set)} />`}</div>`;
}

// a thumbnail with what is said below it; null where nothing is
function captioned(set) {
  const lines = at => [
    set.roles && set.roles[at], set.pool && (set.pool[at] ? "of the pool" : ""), set.canonical !== undefined && set.rows[at] === set.canonical ? "canonical" : "",
    ...Object.values(set.members || {}).map(values => values[at]),
  ].filter(Boolean);
  if (!set.roles && !set.pool && !set.members && set.canonical === undefined) return null;
  return (thumb, at) => html`<figure key=${at} class=${`member ${set.rows[at] === set.canonical ? "canonical" : ""} ${set.pool && set.pool[at] ? "pooled" : ""}`}>${thumb}<figcaption>${lines(at).map((line, place) => html`<span key=${place}>${line}</span>`)}</figcaption></figure>`;
}

function Orbit({set, data, onPick}) {
  const unit = name => (data.about.factors || []).filter(one => one.name === name && one.unit).map(one => ` (${one.unit})`).join("");
  const names = Object.keys(set.members || {}).map(name => name + unit(name));
  return html`<div class="orbit"><figure class="member canonical"><${Thumbs} source=${data} rows=${[set.canonical]} onPick=${onPick} />
      <figcaption><strong>canonical</strong><span>row ${count(set.canonical)}</span></figcaption></figure>
    <div class="grow-members"><p class="note">members${names.length ? `, by ${names.join(" and ")}` : ""}${set.rows.includes(set.canonical) ? "" : "; the canonical row is none of them"}</p>
      <${Thumbs} source=${data} rows=${set.rows} mask=${set.mask || null} onPick=${onPick} wrap=${captioned(set)} /></div></div>`;
}

// two or three positions, with what each shares with the first and by what it differs
function Roles({set, data, onPick}) {
  const first = set.roles[0];
  const about = at => {
    if (at === 0) return null;
    const {shared, differs} = set.compared[at - 1], changes = Object.entries(differs);
    return html`<span><strong>shares with the ${first}:</strong> ${someOf(shared) || "nothing"}</span>
      <span><strong>differs:</strong> ${changes.length ? someOf(changes.map(([name, [one, other]]) => `${name} ${one} → ${other}`)) : "in nothing"}</span>`;
  };
  // what is beyond the roles only pads
  const wrap = (thumb, at) => (at < set.roles.length ? html`<figure key=${at} class=${`role ${set.roles[at]}`}>${thumb}
    <figcaption><strong>${set.roles[at]}</strong><span>row ${count(set.rows[at])}</span>${about(at)}</figcaption></figure>` : null);
  return html`<${Thumbs} source=${data} rows=${set.rows} mask=${set.mask || null} onPick=${onPick} wrap=${wrap} />`;
}
