// Runs: curves of a metric, and the batch that was trained on in any step.
"use strict";
const COLOURS = ["var(--bar)", "var(--mark)", "#2f855a", "#805ad5", "#b7791f", "#718096"];
const DASHES = ["", "7 4", "2 3", "9 3 2 3", "5 2", "1 4"];

function RunsView({runs, results}) {
  const metrics = [...new Set(runs.flatMap(one => one.about.metrics))];
  const [metric, setMetric] = useState(metrics.find(name => /loss/.test(name)) || metrics[0]);
  const [chosen, setChosen] = useState({run: runs[0], step: null});
  const pick = (run, step) => {
    const shown = run.about.shown;
    const nearest = shown.length ? shown.reduce((best, one) => (Math.abs(one - step) < Math.abs(best - step) ? one : best)) : step;
    setChosen({run, step: Math.min(Math.max(1, nearest), run.about.steps)});
  };
  return html`<div class="view">
    <section aria-label="Runs"><h2>Runs</h2>${runs.map((run, place) => html`<p key=${run.id}><svg width="34" height="8" aria-hidden="true"><path d="M0 4H34" stroke=${COLOURS[place % 6]} stroke-dasharray=${DASHES[place % 6]} stroke-width="3" /></svg>
      <strong> ${run.about.name}</strong> (${run.about.folder}): ${count(run.about.trained)} of ${plural(run.about.steps, "step")}${run.about.data ? `, on ${run.about.data}` : ""}${run.about.substitute ? ", its SUBSTITUTE" : ""}${run.about.changed ? "; the file of its preset has changed since" : ""}</p>`)}</section>
    <section aria-label="Curves"><h2>Curves</h2>${metrics.length ? html`<p class="choice"><${Choice} label="Metric" value=${metric} options=${metrics} onChange=${setMetric} />
      <span>Click a point to see the batch of that step.</span></p><${Curves} runs=${runs} metric=${metric} chosen=${chosen} onPick=${pick} />` : html`<p>No step is logged yet.</p>`}</section>
    <${Batch} runs=${runs} chosen=${chosen} onPick=${pick} />
    ${results && html`<${Results} source=${results} />`}
  </div>`;
}

function Curves({runs, metric, chosen, onPick}) {
  const [found, setFound] = useState({metric: null, curves: []}), [log, setLog] = useState(false);
  useEffect(() => {
    let current = true;
    const curveOf = async run => {
      const nothing = {steps: [], values: []};
      if (!run.about.metrics.includes(metric)) return nothing;
      try { return await setsup.get({s: run.id, q: "curve", metric}); } catch (error) { return {...nothing, error}; }
    };
    Promise.all(runs.map(curveOf)).then(curves => current && setFound({metric, curves}));
    return () => { current = false; };
  }, [metric, runs]);
  if (found.metric !== metric) return html`<p class="busy">reading …</p>`;
  const problem = found.curves.find(one => one.error);
  const steps = found.curves.flatMap(one => one.steps), values = found.curves.flatMap(one => one.values);
  if (!steps.length) return html`<p>No finite value of it is logged.</p><${Problem} error=${problem && problem.error} />`;
  const least = Math.min(...values), most = Math.max(...values), logged = log && least > 0;
  const low = least, high = most > low ? most : low + (Math.abs(low) || 1) * 0.01; // of one value only
  const left = Math.min(...steps), right = Math.max(...steps, left + 1), put = value => (logged ? Math.log(value) : value);
  const WIDTH = 1000, HEIGHT = 300, x = step => (step - left) / (right - left) * WIDTH, y = value => HEIGHT - (put(value) - put(low)) / (put(high) - put(low)) * HEIGHT;
  const across = ticks(left, right, 5).filter(Number.isInteger), up = ticks(low, high, 5, logged);
  const click = event => {
    const box = event.currentTarget.getBoundingClientRect();
    const at = [(event.clientX - box.left) / box.width * WIDTH, (event.clientY - box.top) / box.height * HEIGHT];
    let best = [Infinity, null, null];
    found.curves.forEach((curve, place) => curve.steps.forEach((step, index) => {
      const away = Math.hypot(x(step) - at[0], y(curve.values[index]) - at[1]);
      if (away < best[0]) best = [away, runs[place], step];
    }));
    onPick(best[1], best[2]);
  };
  const number = Math.max(0, runs.indexOf(chosen.run)), {shown} = runs[number].about, own = shown.length ? shown : found.curves[number].steps, held = own.findIndex(step => step >= chosen.step);
  const press = event => { // from one step of the run to the next: of those that are logged, or that an exported page has
    const to = {ArrowLeft: held - 1, ArrowRight: chosen.step === null ? 0 : own[held] === chosen.step ? held + 1 : held, Home: 0, End: own.length - 1}[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (own[to] !== undefined) onPick(runs[number], own[to]);
  };
  const mark = chosen.step === null ? null : found.curves[runs.indexOf(chosen.run)];
  const index = mark ? mark.steps.indexOf(chosen.step) : -1;
  const top = runs.map((run, place) => ({run, curve: found.curves[place]})).filter(one => one.curve.steps.length)
    .map(({run, curve}) => { const at = curve.values.indexOf(Math.max(...curve.values)); return {run, step: curve.steps[at], value: curve.values[at], spikes: (curve.spikes || []).filter(one => one !== curve.steps[at])}; });
  return html`<p class="choice"><label><input type="checkbox" checked=${logged} disabled=${least <= 0} onChange=${event => setLog(event.target.checked)} /> Logarithmic</label>${least <= 0 && html` <small>no logarithm: the least value is ${least.toPrecision(4)}</small>`}</p>
  <div class="plot"><div class="ticks up">${up.map(value => html`<span key=${value} style=${{top: `${y(value) / HEIGHT * 100}%`}}>${tickText(value)}</span>`)}</div>
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="application" tabindex="0" aria-label=${`${metric} over steps ${count(left)} to ${count(right)}, from ${least.toPrecision(4)} to ${most.toPrecision(4)}; the arrow keys go from step to step`} onClick=${click} onKeyDown=${press}>
      ${up.map(value => html`<path key=${`y${value}`} class="grid" d=${`M0 ${y(value).toFixed(1)}H${WIDTH}`} vector-effect="non-scaling-stroke" />`)}${across.map(step => html`<path key=${`x${step}`} class="grid" d=${`M${x(step).toFixed(1)} 0V${HEIGHT}`} vector-effect="non-scaling-stroke" />`)}
      ${found.curves.map((curve, place) => html`<polyline key=${place} fill="none" stroke=${COLOURS[place % 6]} stroke-dasharray=${DASHES[place % 6]} stroke-width="2" vector-effect="non-scaling-stroke" points=${curve.steps.map((step, at) => `${x(step).toFixed(1)},${y(curve.values[at]).toFixed(1)}`).join(" ")} />`)}
      ${chosen.step !== null && html`<path d=${`M${x(chosen.step)} 0V${HEIGHT}`} stroke="var(--soft)" vector-effect="non-scaling-stroke" />`}
      ${index >= 0 && html`<ellipse cx=${x(chosen.step)} cy=${y(mark.values[index])} rx="5" ry="5" fill="var(--mark)" />`}</svg>
    <div class="ticks across">${across.map(step => html`<span key=${step} style=${{left: `${x(step) / WIDTH * 100}%`}}>${count(step)}</span>`)}</div><div class="axis">step</div></div>
  <ul>${top.map(one => html`<li key=${one.run.id}>${one.run.about.name}: largest at <button type="button" class="link" onClick=${() => onPick(one.run, one.step)}>step ${count(one.step)}</button>, ${one.value.toPrecision(4)}${one.spikes.length > 0 && html`; spikes at ${one.spikes.map((step, at) => html`${at ? ", " : ""}<button key=${step} type="button" class="link" onClick=${() => onPick(one.run, step)}>step ${count(step)}</button>`)}`}</li>`)}</ul><${Problem} error=${problem && problem.error} />`;
}

const tickText = value => (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6) ? value.toExponential() : String(value));

function Batch({runs, chosen, onPick}) {
  const {run, step} = chosen;
  const [share, setShare] = useState({});
  const {rank, part} = {rank: 0, part: 0, ...(share.run === run.id ? share : {})}; // those of another run are not of this one
  const more = {...(rank ? {rank} : {}), ...(part ? {part} : {})};
  const asked = step === null ? null : {s: run.id, step, ...more};
  const batch = useAnswer(asked && {...asked, q: "batch"});
  const sheet = useAnswer(asked && run.about.images ? {...asked, q: "sheet"} : null);
  const found = batch.answer;
  const data = found && {id: run.id, about: {thumbs: found.thumbs, more: {step, ...more}}};
  return html`<section aria-label="Batch"><h2>Batch of a step</h2><p class="choice">
      ${runs.length > 1 && html`<${Choice} label="Run" value=${run.id} options=${runs.map(one => [one.id, `${one.about.name} (${one.about.folder})`])} onChange=${to => onPick(runs.find(one => one.id === to), step || 1)} />`}
      <${Stepper} label="Step" step=${step} first=${1n} last=${BigInt(run.about.steps)} steps=${run.about.shown.length ? run.about.shown : null} onStep=${to => onPick(run, Number(to))} />
      ${run.about.devices > 1 && html`<label>Rank <input class="small" type="number" min="0" max=${run.about.devices - 1} value=${rank} disabled=${!setsup.isLive} onChange=${event => setShare({run: run.id, part, rank: Number(event.target.value)})} /></label>`}
      ${run.about.parts > 1 && html`<label>Part <input class="small" type="number" min="0" max=${run.about.parts - 1} value=${part} disabled=${!setsup.isLive} onChange=${event => setShare({run: run.id, rank, part: Number(event.target.value)})} /></label>`}</p>
    <p aria-live="polite" class=${batch.busy ? "busy" : ""}>${found ? `step ${count(found.step)}, draw ${count(found.draw)} of the sampler, rank ${found.rank} of ${found.world}: ${Object.entries(found.metrics).map(([name, value]) => `${name} ${value === null ? "not finite" : value.toPrecision(4)}`).join(", ")}` : step === null ? "Click a curve, or type a step." : batch.busy ? "drawing it again …" : ""}</p>
    <${Problem} error=${batch.error} />
    ${found && html`${run.about.images && html`<h3>As the method got it, with its augmentation</h3><${Problem} error=${sheet.error} />${sheet.busy && html`<p class="busy">drawing the images …</p>`}${sheet.answer && html`<${Scroll} label="Images of the step" tall=${true}><img class="sheet" src=${sheet.answer} alt=${`Images of step ${found.step} after the augmentation`} /><//>`}`}
      <h3>Its rows</h3>${found.sets.map((one, place) => html`<${SetBlock} key=${place} number=${place} set=${one} data=${data} onPick=${null} />`)}`}
  </section>`;
}
