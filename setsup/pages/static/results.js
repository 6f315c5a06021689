// Results of runs beside those of the paper, and whether its claims hold.
"use strict";
function Results({source}) {
  const {answer, error, busy} = useAnswer({s: source.id, q: "tables"});
  return html`<section aria-label="Results"><h2>Beside the paper</h2><p class="note">Means ± standard deviations over seeds, of the runs on this page.</p><${Problem} error=${error} />${busy && html`<p class="busy">reading evaluations …</p>`}
    ${answer && answer.reports.map(one => html`<${Filled} key=${one.name} report=${one} />`)}</section>`;
}

function Filled({report}) {
  return html`<div><h3>${report.name}: ${report.shows}</h3><p class="note">${report.about}</p>
    <div class="scroll tall" tabindex="0" role="region" aria-label=${`Results of ${report.name}`}><table class="cells"><thead><tr>${report.heads.map((head, at) => (head ? html`<th scope="col" key=${at}>${head}</th>` : html`<td key=${at}></td>`))}</tr></thead>
      <tbody>${report.rows.map((row, at) => html`<tr key=${at} class=${row.kind}>${row.cells.map((cell, place) => html`<td key=${place} data-head=${report.heads[place] || null}>${cell}</td>`)}</tr>`)}</tbody></table></div>
    ${report.verdicts.length > 0 && html`<ul class="verdicts">${report.verdicts.map((one, at) => html`<li key=${at} class=${one.holds === null ? "" : one.holds ? "holds" : "fails"}><p><strong>${one.lines[0]}</strong></p>${one.lines.slice(1).map(line => html`<p class="note" key=${line}>${line}</p>`)}</li>`)}</ul>`}
    ${report.notes.map(note => html`<p class="note" key=${note}>${note}</p>`)}
    ${report.commands.length > 0 && html`<${Copy} text=${report.commands.join("\n")} label="Commands for what is missing" />`}</div>`;
}
