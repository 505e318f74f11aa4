"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, properties) => Object.assign(document.createElement(tag), properties);
  const root = document.documentElement;
  root.classList.add("js");
  document.querySelector(".tools").hidden = false;

  // Light, dark, or as the system has it.
  const themes = ["system", "light", "dark"];
  const theme = document.getElementById("theme");
  theme.addEventListener("click", () => {
    const next = themes[(themes.indexOf(root.dataset.theme || "system") + 1) % themes.length];
    if (next === "system") delete root.dataset.theme;
    else root.dataset.theme = next;
    theme.textContent = `Theme: ${next}`;
  });

  // A page that loads itself again says when nobody has written it anew for an hour.
  const made = document.querySelector("[data-made]");
  const hours = made ? Math.floor((Date.now() - Date.parse(made.dataset.made)) / 3_600_000) : 0;
  if (hours > 0) {
    made.classList.add("bad");
    made.textContent += `: ${hours} ${hours > 1 ? "hours" : "hour"} ago`;
  }

  // Folded parts: all at once, for print, and where a link leads into one.
  const details = all("details");
  const folds = document.getElementById("folds");
  folds.hidden = !details.length;
  folds.addEventListener("click", () => {
    const open = folds.textContent === "Unfold all";
    details.forEach((one) => { one.open = open; });
    folds.textContent = open ? "Fold all" : "Unfold all";
  });
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = details.filter((one) => !one.open);
    folded.forEach((one) => { one.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((one) => { one.open = false; }));
  const targetOf = (link) => document.getElementById(decodeURIComponent(link.hash.slice(1)));
  const unfold = (target) => {
    for (let one = target?.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link) unfold(targetOf(link));
  });
  if (location.hash) unfold(targetOf(location));

  // The contents follow.
  const nav = document.querySelector("nav");
  const links = nav ? all("a", nav).filter(targetOf) : [];
  const follow = () => {
    const shown = links.filter((link) => link.offsetParent);
    const ends = innerHeight + scrollY >= root.scrollHeight - 2;
    const passed = shown.filter((link) => targetOf(link).getBoundingClientRect().top < innerHeight * 0.3);
    const here = ends && scrollY > 0 ? shown.at(-1) : passed.at(-1) || shown[0];
    links.forEach((link) => link.toggleAttribute("aria-current", link === here));
    if (here && nav.scrollWidth > nav.clientWidth) nav.scrollLeft = here.offsetLeft - nav.clientWidth / 3;
  };
  if (nav) {
    let waiting = false;
    addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; follow(); });
    }, { passive: true });
    follow();
  }

  // Tables: sorted by a column, filtered by words. A row "old size" stays below the row that it belongs to.
  const units = { K: 2 ** -10, M: 1, G: 2 ** 10, T: 2 ** 20 };
  const number = (text) => {
    const found = /^([+-]?[0-9][0-9,]*(?:[.][0-9]+)?) ?([KMGT%]?)(?![0-9A-Za-z._:-])/.exec(text.replace("−", "-"));
    return found ? Number(found[1].replaceAll(",", "")) * (units[found[2]] || 1) : null;
  };
  const compare = (one, other) => {
    const [a, b] = [number(one), number(other)];
    if (a !== null && b !== null) return a - b;
    return (a === null) - (b === null) || one.localeCompare(other, "en", { numeric: true });
  };
  for (const table of all("main table")) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const headings = all("thead th:not(.bar)", table);
    if (original.length > 1) headings.forEach((heading, column) => {
      if (!heading.textContent.trim()) return;
      const button = make("button", { type: "button" });
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const was = heading.getAttribute("aria-sort");
        const next = { ascending: "descending", descending: null }[was] ?? (was ? null : "ascending");
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        const groups = [];
        original.forEach((row) => (row.classList.contains("sub") ? groups.at(-1).push(row) : groups.push([row])));
        if (next) {
          heading.setAttribute("aria-sort", next);
          const sign = next === "ascending" ? 1 : -1;
          const key = (group) => group[0].cells[column].textContent.trim();
          groups.sort((one, other) => sign * compare(key(one), key(other)));
        }
        table.classList.toggle("flat", Boolean(next));
        body.append(...groups.flat());
      });
    });
    if (original.length >= 10) {
      const label = make("label", { className: "filter", textContent: "Filter " });
      const input = make("input", { type: "search", autocomplete: "off" });
      const told = make("span", { role: "status" });
      label.append(input, told);
      table.parentElement.before(label);
      input.setAttribute("aria-label", `Filter ${table.getAttribute("aria-label")}`);
      input.addEventListener("input", () => {
        const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
        let shown = 0;
        for (const row of original) {
          row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
          shown += !row.hidden;
        }
        table.classList.toggle("flat", words.length > 0);
        told.textContent = words.length ? `${shown} of ${original.length} ${table.dataset.of}` : "";
      });
    }
  }

  // A narrow window shows each row as a block, which must stay a row for those who listen.
  const roles = { table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", th: "columnheader", td: "cell" };
  for (const [tag, role] of Object.entries(roles)) {
    all(`.wide ${tag}`).forEach((one) => one.setAttribute("role", role));
  }

  // What scrolls sideways can be scrolled by keyboard.
  const boxes = all(".wide");
  const reach = () => boxes.forEach((box) => {
    const wide = box.scrollWidth > box.clientWidth;
    box.toggleAttribute("role", wide);
    if (wide) {
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", all("table", box)[0]?.getAttribute("aria-label") || "Table");
    } else ["tabindex", "role", "aria-label"].forEach((name) => box.removeAttribute(name));
  });
  reach();
  addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);

  // Commands are copied whole, except those of a plan that must not be carried out.
  const copy = async (text, button) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea", { value: text });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = label; }, 1500);
  };
  const copier = (label, text) => {
    const button = make("button", { type: "button", textContent: label });
    button.addEventListener("click", () => button.textContent === label && copy(text, button));
    return button;
  };
  for (const box of all(".command").filter((one) => !one.closest(".refused"))) {
    const button = copier("Copy", box.querySelector("code").textContent);
    const title = box.closest("li")?.querySelector(".title")?.textContent;
    if (title) button.setAttribute("aria-label", `Copy the command: ${title}`);
    box.append(button);
  }
  for (const list of all("ol.steps.commands")) {
    const commands = all(".command code", list).map((code) => code.textContent);
    if (commands.length > 1) list.before(copier(`Copy all ${commands.length} commands`, `${commands.join("\n")}\n`));
  }

  // Figures of pictures, as soon as the pointer is on them.
  const tip = make("div", { className: "tip", hidden: true });
  document.body.append(tip);
  for (const title of all("main svg title")) {
    const shape = title.parentElement;
    const text = title.textContent;
    if (shape.tagName === "svg") shape.setAttribute("aria-label", text);
    title.remove();
    shape.addEventListener("pointerenter", () => { tip.textContent = text; tip.hidden = false; });
    shape.addEventListener("pointerleave", () => { tip.hidden = true; });
    shape.addEventListener("pointermove", (event) => {
      tip.style.left = `${Math.max(Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8), 8)}px`;
      tip.style.top = `${event.clientY + 16}px`;
    });
  }
})();
