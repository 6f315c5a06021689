// The page: which source, which view.
"use strict";

function App({about}) {
  const sources = Object.fromEntries(Object.entries(about.sources).map(([id, one]) => [id, {id, about: one}]));
  const datasets = Object.values(sources).filter(one => one.about.kind === "dataset");
  const link = new URLSearchParams(location.hash.slice(1));
  const runs = Object.values(sources).filter(one => one.about.kind === "run");
  const embeddings = Object.values(sources).filter(one => one.about.kind === "embedding");
  const linked = datasets.length && link.get("view") === "sampler" && link.get("sampler") && /^\d{1,19}$/.test(link.get("step") || "");
  const paired = datasets.length && link.get("view") === "pairs" && pairLink(link);
  const [view, setView] = useState(linked ? "sampler" : paired ? "pairs" : datasets.length ? "dataset" : runs.length ? "runs" : "embeddings");
  const [chosen, setChosen] = useState(datasets.some(one => one.id === link.get("d")) ? link.get("d") : datasets.length ? datasets[0].id : null);
  const [start] = useState(linked ? {sampler: link.get("sampler"), step: BigInt(link.get("step")).toString()} : null);
  const data = sources[chosen], sampler = chosen && sources["s" + chosen.slice(1)], pairs = chosen && sources["c" + chosen.slice(1)];
  const views = [...(datasets.length ? [["dataset", "Dataset"], ["sampler", "Sampler"]] : []), ...(pairs ? [["pairs", "Correspondences"]] : []), ...(runs.length ? [["runs", "Runs"]] : []), ...(embeddings.length ? [["embeddings", "Embeddings"]] : [])];
  if (view === "pairs" && !pairs) setView("dataset");
  useEffect(() => { if (view !== "sampler" && view !== "pairs") history.replaceState(null, "", location.pathname); }, [view]);
  const turn = event => {
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (!by) return;
    const at = (views.findIndex(([id]) => id === view) + by + views.length) % views.length;
    setView(views[at][0]);
    document.getElementById("tab-" + views[at][0]).focus();
  };
  return html`<header><h1>${about.title}</h1>
    ${datasets.length > 1 && view !== "runs" && view !== "embeddings" && html`<label>Dataset <select value=${chosen} onChange=${event => setChosen(event.target.value)}>${datasets.map(one => html`<option key=${one.id} value=${one.id}>${one.about.name}${one.about.source && datasets.some(other => other !== one && other.about.name === one.about.name) ? ` (${one.about.source})` : ""}</option>`)}</select></label>`}
    <div role="tablist" aria-label="Views" onKeyDown=${turn}>${views.map(([id, name]) => html`<button type="button" role="tab" id=${"tab-" + id} key=${id} aria-selected=${view === id}
      aria-controls="view" tabindex=${view === id ? 0 : -1} onClick=${() => setView(id)}>${name}</button>`)}</div>
    ${!setsup.isLive && html`<p class="note">An exported page${about.command && html`: what it cannot answer is asked live, by <code>${about.command}</code>`}.${about.note && ` ${about.note}`}</p>`}</header>
  <main><div id="view" role="tabpanel" aria-labelledby=${"tab-" + view}>${view === "runs" ? html`<${RunsView} runs=${runs} results=${Object.values(sources).find(one => one.about.kind === "results")} />` : view === "embeddings" ? html`<${EmbeddingsView} sources=${embeddings} />` : view === "dataset" ? html`<${DatasetView} key=${chosen} source=${data} />`
    : view === "pairs" ? pairs && html`<${CorrespondenceView} key=${chosen} source=${pairs} data=${data} start=${paired} />`
    : html`<${SamplerView} key=${chosen} source=${sampler} data=${data} start=${start} />`}</div></main>`;
}

setsup.get({}).then(
  about => { setsup.command = about.command; setsup.tiles = about.tiles; render(html`<${App} about=${about} />`, document.getElementById("page")); },
  error => render(html`<p class="problem" role="alert">${error.message}</p>`, document.getElementById("page")),
);
