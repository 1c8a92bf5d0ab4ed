"use strict";
// What a page does: tabs, lines that light together, and, where a server is, the editor and its questions.
(() => {
  const get = (id) => document.getElementById(id);
  const all = (what, where = document) => [...where.querySelectorAll(what)];
  const tabs = all("nav [role=tab]");
  const section = (name) => get(`pane-${name}`);
  let pane = "";

  // ---- tabs

  function show(name) {
    pane = name;
    for (const tab of tabs) {
      const chosen = tab.dataset.pane === name;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      section(tab.dataset.pane).hidden = !chosen;
    }
    reveal(section(name));
  }

  function step(event) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = tabs[(tabs.indexOf(event.target) + by + tabs.length) % tabs.length];
    next.focus();
    next.click();
  }

  // ---- lines that come from the same line of the program

  let lit = new Set();
  let onLight = () => {};

  const origins = (line) => (line.dataset.o || "").split(" ").filter(Boolean);

  function paint(where = document) {
    for (const line of all(".l", where)) line.classList.toggle("lit", origins(line).some((one) => lit.has(one)));
    for (const tab of tabs) tab.classList.toggle("has-lit", section(tab.dataset.pane).querySelector(".l.lit") !== null);
  }

  function reveal(where, except = null) {
    const first = where.querySelector(".l.lit");
    if (first === null || first === except) return;
    for (let at = first.closest("details"); at !== null; at = at.parentElement.closest("details")) at.open = true;
    first.scrollIntoView({ block: "center" });
  }

  function light(lines, from = null) {
    lit = new Set(lines.map(String));
    paint();
    for (const where of [get("listing"), pane && section(pane)]) {
      if (where && !(from && where.contains(from))) reveal(where);
    }
    onLight(lines.map(Number), from);
  }

  document.addEventListener("click", (event) => {
    const line = event.target.closest(".l");
    if (line === null || event.target.closest("summary, a, button") || !getSelection().isCollapsed) return;
    light(origins(line), line);
  });
  for (const tab of tabs) {
    tab.addEventListener("click", () => choose(tab.dataset.pane));
    tab.addEventListener("keydown", step);
  }

  // ---- a page that is one file

  let choose = (name) => { show(name); history.replaceState(null, "", `#${name}`); };
  if (document.body.dataset.mode === "alone") {
    const wanted = location.hash.slice(1);
    show(tabs.some((tab) => tab.dataset.pane === wanted) ? wanted : tabs[0].dataset.pane);
    return;
  }

  // ---- a page of a server: the editor

  const { asked, targets, panes } = JSON.parse(get("start").content.textContent);
  const titles = Object.fromEntries(panes.map((each) => [each.name, each.title]));
  let name = asked.name;
  const editor = CodeMirror.fromTextArea(get("text"), {
    mode: "te", lineNumbers: true, lineSeparator: "\n", indentUnit: 4, styleActiveLine: false, tabSize: 4, inputStyle: "contenteditable",
    extraKeys: { Tab: (cm) => cm.somethingSelected() ? cm.indentSelection("add") : cm.replaceSelection("    "), "Shift-Tab": "indentLess" },
  });
  const LARGEST = 256 * 1024;

  let lighted = [];
  onLight = (lines, from) => {
    for (const line of lighted) editor.removeLineClass(line, "background", "lit");
    lighted = lines.filter((line) => line >= 1 && line <= editor.lineCount()).map((line) => editor.addLineClass(line - 1, "background", "lit"));
    if (from !== editor && lines.length && lines[0] >= 1) editor.scrollIntoView({ line: lines[0] - 1, ch: 0 }, 80);
  };
  editor.on("mousedown", (cm, event) => {
    const at = cm.coordsChar({ left: event.clientX, top: event.clientY });
    light([at.line + 1], cm.getWrapperElement());
  });

  // ---- questions: one at a time, the newest next; a pane is kept until something changes

  let version = 0;
  const known = new Map();
  let busy = false;
  let waiting = false;
  let timer = 0;

  const question = () => ({
    text: editor.getValue("\n"), name, function: get("function").value, target: get("target").value,
    schedule: get("schedule").value, sizes: get("sizes").value, pane,
  });

  function changed(wait) {
    version += 1;
    clearTimeout(timer);
    timer = setTimeout(ask, wait);
  }

  async function ask() {
    if (busy) { waiting = true; return; }
    const of = version, what = pane;
    if (known.get(what) === of) return;
    busy = true;
    state("working …");
    try {
      const found = await send(question());
      if (of === version) take(found, of, what);
    } catch (reason) {
      state(`no answer: ${reason.message}`, true);
    } finally {
      busy = false;
      if (waiting || known.get(pane) !== version && of !== version) { waiting = false; ask(); }
    }
  }

  async function send(body) {
    const given = await fetch("show", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), credentials: "omit",
    });
    const data = given.headers.get("Content-Type")?.startsWith("application/json") ? await given.json() : null;
    if (!given.ok) throw new Error(data?.error ?? `the server said ${given.status}`);
    return data;
  }

  function take(found, of, what) {
    known.set(what, of);
    const head = document.createElement("h2");
    head.textContent = titles[what];
    section(what).innerHTML = found.html;
    section(what).prepend(head);
    get("problems").innerHTML = found.problems;
    if (found.functions.length) {  // while a text cannot be read, what was chosen of it stays
      fill(get("function"), found.functions, found.function);
      fill(get("schedule"), found.schedules, get("schedule").value || asked.schedule);
    }
    underline(found.marks);
    paint();
    if (what === pane) reveal(section(what));
    state(found.ok ? "" : "see what is wrong", !found.ok);
  }

  function fill(select, words, chosen) {
    if (document.activeElement === select && words.length === select.options.length) return;
    select.replaceChildren(...words.map((word) => new Option(word, word, false, word === chosen)));
  }

  function state(text, wrong = false) {
    get("state").textContent = text;
    get("state").classList.toggle("wrong", wrong);
  }

  // ---- problems in the editor

  let underlined = [];

  function underline(marks) {
    for (const mark of underlined) mark.clear();
    underlined = marks.filter((mark) => mark.at !== null).map((mark) => editor.markText(
      place(mark.at.line, mark.at.column), place(mark.at.end_line, mark.at.end_column),
      { className: `wave ${mark.severity}`, attributes: { title: `${mark.code}: ${mark.message}` } },
    ));
  }

  // Columns count characters from 1; the editor counts halves of UTF-16 from 0.
  function place(line, column) {
    const text = editor.getLine(line - 1) ?? "";
    return { line: line - 1, ch: [...text].slice(0, column - 1).join("").length };
  }

  // ---- programs from elsewhere, and to elsewhere

  function open(text, title) {
    if (text.length > LARGEST) { state(`${title} is too large for this page`, true); return; }
    name = title;
    document.title = `${title} – texpr explore`;
    get("function").replaceChildren();
    get("schedule").replaceChildren();
    get("sizes").value = "";
    lit = new Set();
    editor.setValue(text.replaceAll("\r\n", "\n"));
  }

  get("examples").addEventListener("change", async (event) => {
    const wanted = event.target.value;
    event.target.selectedIndex = 0;
    if (!wanted.trim()) return;
    try {
      const found = await fetch(`examples/${wanted}`, { credentials: "omit" });
      if (!found.ok) throw new Error(`the server said ${found.status}`);
      open(await found.text(), wanted.split("/").pop());
    } catch (reason) {
      state(`no example: ${reason.message}`, true);
    }
  });
  get("open").addEventListener("click", () => get("file").click());
  get("file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file === undefined) return;
    if (file.size > LARGEST) { state(`${file.name} is too large for this page`, true); return; }
    open(await file.text(), file.name);
  });
  get("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([editor.getValue("\n")], { type: "text/plain" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  // ---- to begin with

  choose = (wanted) => { show(wanted); ask(); };
  editor.on("change", () => changed(400));
  for (const id of ["function", "target", "schedule"]) get(id).addEventListener("change", () => changed(0));
  get("sizes").addEventListener("change", () => changed(0));
  get("schedule").replaceChildren(new Option(asked.schedule, asked.schedule));
  if (asked.function) get("function").replaceChildren(new Option(asked.function, asked.function));
  show(panes[0].name);
  editor.setValue(asked.text.replaceAll("\r\n", "\n"));
  if (!asked.text) changed(0);
})();
