// Filters of the gallery of datasets. Without JavaScript all cards are shown.
document.addEventListener("DOMContentLoaded", () => {
  const gallery = document.querySelector(".gallery");
  if (!gallery) return;
  const cards = [...gallery.querySelectorAll(".dataset")];
  const factors = [...new Set(cards.flatMap((card) => card.dataset.factors.split(" ").filter(Boolean)))].sort();
  const choices = {
    samples: [["", "any number"], ["10000", "10,000 or more"], ["100000", "100,000 or more"], ["500000", "500,000 or more"]],
    fetch: [["", "any size"], ["nothing", "nothing"], ["small", "below 1 GB"], ["large", "1 GB or more"], ["unstated", "not stated"]],
    licence: [["", "any licence"], ["open", "open licence"], ["research", "for research"], ["signed", "to be signed"], ["unstated", "not stated"], ["own", "your own files"]],
  };
  const titles = { samples: "Rows", fetch: "To fetch", licence: "Licence" };
  const made = (tag, attributes, ...children) => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.append(...children);
    return element;
  };

  const asked = new URLSearchParams(location.search);
  const words = made("input", { type: "search", name: "factor", placeholder: "azimuth, digit", autocomplete: "off", value: asked.get("factor") ?? "" });
  const list = made("datalist", { id: "factors" }, ...factors.map((name) => made("option", { value: name })));
  words.setAttribute("list", "factors");
  const selects = Object.entries(choices).map(([name, options]) => {
    const select = made("select", { name }, ...options.map(([value, text]) => made("option", { value, textContent: text })));
    if (options.some(([value]) => value === asked.get(name))) select.value = asked.get(name);
    return select;
  });
  const found = made("output", { className: "found" });
  found.setAttribute("aria-live", "polite");
  const form = made("form", { className: "filter" },
    made("label", {}, "Factor or name", words), list,
    ...selects.map((select) => made("label", {}, titles[select.name], select)),
    made("button", { type: "reset", textContent: "Reset" }), found);
  form.setAttribute("aria-label", "Filter the datasets");

  const filter = () => {
    const word = words.value.trim().toLowerCase();
    const [samples, fetch, licence] = selects.map((select) => select.value);
    let count = 0;
    for (const card of cards) {
      const { name, factors: own, samples: number, fetch: size, licence: kind } = card.dataset;
      // a factor of exactly this name, as the list suggests it, does not also mean those that contain it
      const named = factors.includes(word) ? own.split(" ").includes(word) : name.includes(word) || own.includes(word);
      card.hidden = !(named && Number(number) >= Number(samples) && (!fetch || size === fetch) && (!licence || kind === licence));
      count += !card.hidden;
    }
    found.textContent = count ? `${count} of ${cards.length} datasets` : "No dataset is like this";
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    words.setAttribute("value", "");
    for (const option of form.querySelectorAll("option")) option.defaultSelected = false;
    setTimeout(filter); // after the fields are reset
  });
  gallery.before(form);
  filter();
});
