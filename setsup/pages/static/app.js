// The page: which source, which view.
"use strict";

// what a link says: a view, its dataset, and the draw or the pair that is shown there
function readLink(datasets) {
  const link = new URLSearchParams(location.hash.slice(1)), d = datasets.some(one => one.id === link.get("d")) ? link.get("d") : datasets.length ? datasets[0].id : null;
  const number = (name, digits, other) => (new RegExp(`^\\d{1,${digits}}$`).test(link.get(name) || "") ? BigInt(link.get(name)).toString() : other);
  const step = number("step", 19, null), share = {rank: number("rank", 4, ALONE.rank), world: number("world", 4, ALONE.world)};
  return {
    d,
    sampler: d && link.get("view") === "sampler" && link.get("sampler") && step !== null ? {sampler: link.get("sampler"), step, share} : null,
    pair: d && link.get("view") === "pairs" ? pairLink(link) : null,
  };
}

function App({about}) {
  const [sources] = useState(() => Object.fromEntries(Object.entries(about.sources).map(([id, one]) => [id, {id, about: one}])));
  const datasets = Object.values(sources).filter(one => one.about.kind === "dataset");
  const [start] = useState(() => readLink(datasets));
  const runs = Object.values(sources).filter(one => one.about.kind === "run");
  const embeddings = Object.values(sources).filter(one => one.about.kind === "embedding");
  const [turned, setView] = useState(start.sampler ? "sampler" : start.pair ? "pairs" : datasets.length ? "dataset" : runs.length ? "runs" : "embeddings");
  const [chosen, setChosen] = useState(start.d);
  const data = sources[chosen], sampler = chosen && sources["s" + chosen.slice(1)], pairs = chosen && sources["c" + chosen.slice(1)];
  const views = [...(datasets.length ? [["dataset", "Dataset"], ["sampler", "Sampler"]] : []), ...(pairs ? [["pairs", "Correspondences"]] : []), ...(runs.length ? [["runs", "Runs"]] : []), ...(embeddings.length ? [["embeddings", "Embeddings"]] : [])];
  const view = turned === "pairs" && !pairs ? "dataset" : turned, linked = chosen === start.d; // a link is of one dataset
  useEffect(() => { if (view !== "sampler" && view !== "pairs") history.replaceState(null, "", location.pathname); }, [view]);
  const turn = event => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!by) return;
    const at = (views.findIndex(([id]) => id === view) + by + views.length) % views.length;
    setView(views[at][0]);
    document.getElementById("tab-" + views[at][0]).focus();
  };
  return html`<header><h1>${about.title}</h1>
    ${datasets.length > 1 && view !== "runs" && view !== "embeddings" && html`<${Choice} label="Dataset" value=${chosen} onChange=${setChosen}
      options=${datasets.map(one => [one.id, one.about.name + (one.about.source && datasets.some(other => other !== one && other.about.name === one.about.name) ? ` (${one.about.source})` : "")])} />`}
    <div role="tablist" aria-label="Views" onKeyDown=${turn}>${views.map(([id, name]) => html`<button type="button" role="tab" id=${"tab-" + id} key=${id} aria-selected=${view === id}
      aria-controls="view" tabindex=${view === id ? 0 : -1} onClick=${() => setView(id)}>${name}</button>`)}</div>
    ${!setsup.isLive && html`<p class="note">An exported page${about.command && html`: what it cannot answer is asked live, by <code>${about.command}</code>`}.${about.note && ` ${about.note}`}</p>`}</header>
  <main><div id="view" role="tabpanel" aria-labelledby=${"tab-" + view}>${view === "runs" ? html`<${RunsView} runs=${runs} results=${Object.values(sources).find(one => one.about.kind === "results")} />` : view === "embeddings" ? html`<${EmbeddingsView} sources=${embeddings} />` : view === "dataset" ? html`<${DatasetView} key=${chosen} source=${data} />`
    : view === "pairs" ? pairs && html`<${CorrespondenceView} key=${chosen} source=${pairs} data=${data} start=${linked ? start.pair : null} />`
    : html`<${SamplerView} key=${chosen} source=${sampler} data=${data} start=${linked ? start.sampler : null} />`}</div></main>`;
}

addEventListener("hashchange", () => location.reload()); // a link was put into this page's address

setsup.get({}).then(
  about => { setsup.command = about.command; setsup.tiles = about.tiles; render(html`<${App} about=${about} />`, document.getElementById("page")); },
  error => render(html`<p class="problem" role="alert">${error.message}</p>`, document.getElementById("page")),
);
