// The form that deposits (web/ui/deposit). Without this file it sends one file by a plain form. With it,
// files and folders are sent in parts by tus, several at once. What was begun is known to the server,
// by a fingerprint of names, sizes and times: after a reload, the same files go on where they stopped.
"use strict";

(() => {
	const form = document.getElementById("deposit");
	const list = document.getElementById("payloads");
	const drop = document.getElementById("drop");
	if (!form || !drop || !window.tus) return;
	const say = document.getElementById("deposit-texts").dataset;
	const total = document.getElementById("total");
	for (const e of document.querySelectorAll(".needs-script")) if (e.id !== "together") e.hidden = false;

	const checkedFirst = 8 << 20; // a payload up to this size is checked before it is sent
	const part = 64 << 20; // of one request: each one keeps the session alive
	const atOnce = 2;

	// --- Figures. ---
	const number = new Intl.NumberFormat(document.documentElement.lang, { maximumFractionDigits: 1, minimumFractionDigits: 1 });
	const bytes = (n) => {
		const units = ["KiB", "MiB", "GiB", "TiB"];
		if (n < 1024) return `${n} B`;
		let unit = -1;
		while (n >= 1024 && unit < units.length - 1) { n /= 1024; unit++; }
		return `${number.format(n)} ${units[unit]}`;
	};
	const filesOf = (n) => `${n} ${n === 1 ? say.file : say.files}`;
	const span = (s) => s < 60 ? `${Math.ceil(s)} s` : s < 3600 ? `${Math.round(s / 60)} min` : `${Math.floor(s / 3600)} h ${Math.round(s % 3600 / 60)} min`;
	// fingerprint tells payloads apart without reading them (cyrb53, twice).
	const fingerprint = (text) => [1, 2].map((seed) => {
		let [a, b] = [0xdeadbeef ^ seed, 0x41c6ce57 ^ seed];
		for (let i = 0; i < text.length; i++) {
			const c = text.charCodeAt(i);
			a = Math.imul(a ^ c, 2654435761);
			b = Math.imul(b ^ c, 1597334677);
		}
		a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
		b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
		return (4294967296 * (2097151 & b) + (a >>> 0)).toString(16).padStart(14, "0");
	}).join("");

	// --- What was begun in this browser: the request of each upload that is not submitted yet. ---
	const memory = {
		all() { try { return JSON.parse(localStorage.getItem("holdfast-deposit")) || {}; } catch { return {}; } },
		keep(id, what) {
			const all = this.all();
			if (what) all[id] = { ...what, at: Date.now() }; else delete all[id];
			for (const k of Object.keys(all).sort((x, y) => all[y].at - all[x].at).slice(100)) delete all[k];
			try { localStorage.setItem("holdfast-deposit", JSON.stringify(all)); } catch { /* then a reload asks for the fields again */ }
		},
	};

	// --- The API. A request that got no answer is repeated: each may be. ---
	class Refused extends Error {
		constructor(status, problem) { super(problem.detail || String(status)); this.status = status; this.problem = problem; }
	}
	const asJSON = { "Content-Type": "application/json" };
	const listed = 200; // faults
	// wordsOf returns what a problem says in the page's language, as HTML of the server; null if the server does not answer.
	const wordsOf = async (problem) => {
		const body = JSON.stringify({ ...problem, errors: (problem.errors || []).slice(0, listed) });
		try {
			const answer = await fetch("/words", { method: "POST", body, headers: asJSON, credentials: "same-origin" });
			return answer.ok ? await answer.json() : null;
		} catch { return null; }
	};
	const nodes = (html) => document.createRange().createContextualFragment(html);
	// detailOf is the sentence of a problem, as a node or as a text.
	const detailOf = (problem, words) => words && words.detail ? nodes(words.detail) : problem.detail || "";
	const pause = (ms) => new Promise((done) => { setTimeout(done, ms); addEventListener("online", done, { once: true }); });
	const call = async (p, method, path, body, headers = {}) => {
		for (let wait = 500; ; wait = Math.min(2 * wait, 10000)) {
			if (p.gone) throw new Refused(0, { detail: "" });
			let answer;
			try {
				answer = await fetch(path, { method, body, headers, credentials: "same-origin" });
			} catch {
				show(p, p.state, say.offline);
				await pause(wait);
				continue;
			}
			if (answer.ok) return answer.status === 204 ? null : answer.json();
			const problem = await answer.json().catch(() => ({ detail: answer.statusText }));
			if (problem.code !== "judging" && ![502, 503, 504].includes(answer.status) || problem.code === "not-accepting") throw new Refused(answer.status, problem);
			show(p, p.state, problem.code === "judging" ? "" : detailOf(problem, await wordsOf(problem)));
			await pause(problem.code === "judging" ? 1000 : wait);
		}
	};

	// --- The fields. ---
	const requestOf = () => {
		const text = (name) => form.elements[name].value.trim();
		const many = (name, by) => text(name).split(by).map((s) => s.trim()).filter(Boolean);
		const request = { collection: text("collection"), title: text("title"), creator: text("creator"), date: text("date"), ark: text("ark"), type: text("type") };
		const some = (all) => Object.values(all).some(Boolean);
		const terms = Object.fromEntries(["preservation_level", "embargo_until", "embargo_reason"].map((name) => [name, text(`terms.${name}`)]));
		const rights = Object.fromEntries(["basis", "status", "jurisdiction", "statement", "uri"].map((name) => [name, text(`terms.rights.${name}`)]));
		if (some(rights)) terms.rights = rights;
		if (some(terms)) request.terms = terms;
		request.local_ids = many("local_ids", /[\n;]/);
		// Spaces separate addresses where each part may be one: "ann at example.org" is one wrong address.
		request.notify = many("notify", /[;,]/).flatMap((one) => one.split(/\s+/).every((part) => part.includes("@")) ? one.split(/\s+/) : [one]);
		request.update = form.elements.update.checked;
		request.force = form.elements.force.checked;
		if (form.elements.corrects && text("corrects_in") === request.collection) request.corrects = { batch_id: text("corrects") };
		return request;
	};

	// --- What is wrong with the fields: beside each one, and above the button with links to them. ---
	const wrong = document.getElementById("wrong-fields");
	const fieldOf = (location) => {
		if (!(location || "").startsWith("body.")) return null;
		const path = location.slice(5).replace(/\[.*/, "");
		return [path, path.slice(path.lastIndexOf(".") + 1)].map((name) => form.elements[name]).find((e) => e && e.labels && e.labels.length) || null;
	};
	const trustFields = () => {
		for (const field of form.querySelectorAll("[aria-invalid]")) {
			field.removeAttribute("aria-invalid");
			document.getElementById(`fault-${field.id}`)?.remove();
			const rest = (field.getAttribute("aria-describedby") || "").split(" ").filter((id) => id && id !== `fault-${field.id}`);
			if (rest.length) field.setAttribute("aria-describedby", rest.join(" ")); else field.removeAttribute("aria-describedby");
		}
		wrong.replaceChildren();
		wrong.hidden = true;
	};
	// worded gives each fault what the server says of it; words: null if it says nothing.
	const worded = (found, words) => found.map((f, i) => ({ ...f, said: words && words.faults[i], english: words === null }));
	const textOf = (f) => {
		const text = element("span");
		if (f.said) text.append(nodes(`${f.said.wrong} ${f.said.fix}`)); else text.textContent = [f.message, f.fix].filter(Boolean).join("; ");
		if (f.english) text.lang = "en";
		return text;
	};
	// blame says of faults of fields what is wrong, and returns the others.
	const blame = (found) => {
		const first = form.querySelector("[aria-invalid]");
		for (const f of found) {
			const field = fieldOf(f.location);
			if (!field) continue;
			let beside = document.getElementById(`fault-${field.id}`);
			if (!beside) {
				beside = element("span", "bad");
				beside.id = `fault-${field.id}`;
				field.after(" ", beside);
				field.setAttribute("aria-invalid", "true");
				field.setAttribute("aria-describedby", `${field.getAttribute("aria-describedby") || ""} ${beside.id}`.trim());
				for (let at = field.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
			}
			const text = textOf(f);
			if ([...beside.children].some((e) => e.textContent === text.textContent)) continue;
			if (beside.childNodes.length) beside.append(" ");
			beside.append(text);
			const line = element("li");
			const link = element("a", "", field.dataset.label || field.labels[0].textContent);
			link.href = `#${field.id}`;
			line.append(link, ": ", text.cloneNode(true));
			if (wrong.hidden) wrong.append(element("p", "", say.wrong), element("ul"));
			wrong.hidden = false;
			wrong.lastChild.append(line);
		}
		if (!first) form.querySelector("[aria-invalid]")?.focus();
		return found.filter((f) => !fieldOf(f.location));
	};

	// --- Payloads and their rows. ---
	const payloads = [];
	const tones = {
		ready: ["waiting", "…"], waiting: ["waiting", "…"], checking: ["active", "▸"], sending: ["active", "▸"], judging: ["active", "▸"], paused: ["still", "‖"],
		unusable: ["bad", "✕"], decide: ["still", "!"], refused: ["bad", "✕"], failed: ["bad", "✕"], submitted: ["good", "✓"], again: ["good", "✓"],
	};
	const element = (name, classes, text) => {
		const e = document.createElement(name);
		if (classes) e.className = classes;
		if (text !== undefined) e.textContent = text;
		return e;
	};
	const row = (p) => {
		p.row = element("li", "payload");
		const head = element("div", "head");
		p.chip = element("span", "state waiting");
		head.append(element("strong", "", p.shown), " ", element("span", "figures note", (p.files > 1 ? `${filesOf(p.files)}, ` : "") + bytes(p.size)), " ", p.chip);
		p.bar = element("progress", "wide-bar");
		p.bar.max = Math.max(p.size, 1);
		p.bar.value = 0;
		p.bar.setAttribute("aria-label", p.shown);
		const line = element("div", "line");
		line.append(p.bar);
		const foot = element("div", "foot");
		p.note = element("span", "figures note");
		p.acts = element("span", "acts");
		foot.append(p.note, p.acts);
		p.faults = element("div", "faults");
		p.row.append(head, line, foot, p.faults);
		list.append(p.row);
	};
	const button = (text, act) => {
		const b = element("button", "quiet", text);
		b.type = "button";
		b.addEventListener("click", act);
		return b;
	};
	// show shows a payload's state, and a note, which is a text or a node. The note's place is always there, so that nothing jumps.
	const show = (p, state, note = "") => {
		const before = p.state;
		p.state = state;
		const [tone, mark] = tones[state];
		p.chip.className = `state ${tone}`;
		const text = `${mark} ${say[state === "unusable" ? "refused" : state]}`;
		if (p.chip.textContent !== text) p.chip.textContent = text;
		p.note.replaceChildren(note);
		if (before === state && p.acts.childNodes.length) return;
		p.acts.replaceChildren();
		if (state === "sending") p.acts.append(button(say.pause, () => { p.upload.abort(); show(p, "paused", far(p)); }));
		if (state === "paused") p.acts.append(button(say.go, () => { show(p, "sending"); p.upload.start(); }));
		if (state === "decide") p.acts.append(button(say.anyway, () => { p.decided = true; begin(p); }));
		if (state === "refused" || state === "failed") p.acts.append(button(say.retry, () => { trustFields(); fields.clear(); again(p); }));
		if (p.batch) {
			const link = element("a", "", say.open);
			link.href = "/deposits/" + encodeURIComponent(p.batch);
			p.acts.append(link);
		}
		if (!["checking", "judging", "submitted", "again"].includes(state)) p.acts.append(button(say.remove, () => remove(p)));
		sum();
	};
	const far = (p) => `${bytes(p.bar.value)} ${say.of} ${bytes(p.size)}`;
	const sum = () => {
		const open = payloads.filter((p) => p.state === "ready");
		const size = open.reduce((n, p) => n + p.size, 0);
		total.textContent = open.length ? `${filesOf(open.reduce((n, p) => n + p.files, 0))}, ${bytes(size)}` : "";
		const room = document.getElementById("rules")?.dataset.room;
		if (room !== undefined && size > Number(room)) total.textContent += `. ${say.room} ${bytes(Number(room))}`;
		document.getElementById("together").hidden = !(open.length > 1);
		form.elements.url.required = false;
	};
	const remove = (p) => {
		p.gone = true;
		if (p.upload) p.upload.abort();
		if (p.id && !p.batch) {
			memory.keep(p.id, null);
			fetch(`${form.dataset.uploads}/${encodeURIComponent(p.id)}`, { method: "DELETE" }).catch(() => { /* it expires */ });
		}
		payloads.splice(payloads.indexOf(p), 1);
		p.row.remove();
		sum();
	};

	// again begins anew with what was refused or could not be sent, with the fields as they are now.
	const again = (p) => {
		if (!p.id || p.state === "refused") p.request = { ...p.request, ...requestOf(), ...p.fixed() };
		p.faults.replaceChildren();
		begin(p);
	};

	// faults lists what is wrong with a payload; count: of all of it.
	const faults = (p, found, count) => {
		p.faults.replaceChildren();
		if (!found.length) return;
		const table = element("table", "cards");
		const head = table.createTHead().insertRow();
		const columns = [say.place, say.rule, say.what, say.fix, say.who];
		for (const c of columns) { const th = element("th", "", c); th.scope = "col"; head.append(th); }
		const body = table.createTBody();
		for (const f of found.slice(0, listed)) {
			const place = f.location || (f.source && f.file ? `${f.file} (${f.source})` : f.file || f.source || "");
			const line = f.line && !f.location ? `${say.line} ${f.line}${f.column ? `, ${say.column} ${f.column}` : ""}${f.field ? ` (${f.field})` : ""}` : place;
			const what = [f.message, f.expected && `${say.expected}: ${f.expected}`, f.found && `${say.found}: ${f.found}`].filter(Boolean).join("; ");
			const who = f.severity === "warning" ? say.warning : f.unreachable ? say.system : say.content;
			const r = body.insertRow();
			[line, f.rule || "", f.said ? nodes(f.said.wrong) : what, f.said ? nodes(f.said.fix) : f.fix || "", who].forEach((text, i) => { const td = r.insertCell(); td.append(text); td.dataset.label = columns[i]; if (f.english && (i === 2 || i === 3)) td.lang = "en"; });
		}
		const wide = element("div", "wide");
		wide.tabIndex = 0;
		wide.append(table);
		p.faults.append(wide);
		if (count > Math.min(found.length, listed)) p.faults.append(element("p", "note", `${count - Math.min(found.length, listed)} ${say.more}`));
	};
	const refuse = async (p, err) => {
		if (p.gone) return;
		if (!(err instanceof Refused)) { show(p, "failed", String(err.message || err)); return; }
		const system = err.status >= 500 || err.status === 401 || err.status === 429;
		const words = await wordsOf(err.problem);
		if (p.gone) return;
		show(p, system ? "failed" : "refused", err.status === 401 ? say.signin : detailOf(err.problem, words));
		const errors = err.problem.errors || [];
		const own = blame(worded(errors, words));
		faults(p, own, (err.problem.errors_total || 0) - (errors.length - own.length));
	};
	// judge shows a report. It returns whether to go on.
	const judge = async (p, report) => {
		const found = report.faults || [];
		faults(p, worded(found, found.length ? await wordsOf({ errors: found }) : undefined), report.errors + report.warnings);
		if (!report.accepted) { show(p, report.unreachable === report.errors ? "failed" : "refused"); return false; }
		if (report.rows_refused && !p.decided) { show(p, "decide", `${report.rows_refused} / ${report.rows} ${say.rows}`); return false; }
		return true;
	};

	// --- From the form to a batch. ---
	let running = 0;
	const waiting = [];
	const begin = (p) => { show(p, "waiting"); waiting.push(p); next(); };
	const next = () => {
		while (running < atOnce && waiting.length) {
			const p = waiting.shift();
			running++;
			deposit(p).catch((err) => refuse(p, err)).finally(() => { running--; next(); });
		}
	};
	// fieldsOf judges the fields of a payload, and says what is wrong with them. It returns whether they are right.
	// What several payloads share is judged once.
	const fields = new Map();
	const fieldsOf = (p) => {
		const ask = JSON.stringify({ ...p.request, folder: undefined, modified: undefined });
		if (!fields.has(ask)) {
			fields.set(ask, call(p, "POST", `${form.dataset.batches}?dry_run=true`, ask, asJSON).then(() => true, async (err) => {
				const errors = err instanceof Refused && err.problem.errors || [];
				const found = worded(errors, errors.length ? await wordsOf(err.problem) : undefined);
				if (!found.length || found.some((f) => !fieldOf(f.location))) throw err;
				blame(found);
				return false;
			}));
		}
		return fields.get(ask);
	};
	const deposit = async (p) => {
		const query = new URLSearchParams({ collection: p.request.collection, type: p.request.type || "auto" });
		if (!p.sent) {
			if (!p.blob) throw new Error(say.changed); // it arrived before this page was opened, and was refused
			show(p, "checking");
			// The fields and the payload are judged both, so that all faults are listed at once.
			const right = await fieldsOf(p);
			const small = p.size <= checkedFirst && (!right || !p.decided);
			const good = !small || await judge(p, await call(p, "POST", `${form.dataset.check}?${query}`, p.blob));
			if (!right) show(p, "refused", say.fields);
			if (!right || !good) return;
			p.judged = p.judged || small;
			await find(p);
			if (!p.sent) await send(p);
		}
		if (p.gone) return;
		p.bar.value = p.bar.max;
		show(p, "judging");
		if (!p.judged && !p.decided) {
			query.set("upload_id", p.id);
			if (!await judge(p, await call(p, "POST", `${form.dataset.check}?${query}`))) return;
		}
		let answer;
		try {
			answer = await call(p, "POST", form.dataset.batches, JSON.stringify({ ...p.request, upload_id: p.id }), { ...asJSON, "Idempotency-Key": `upload ${p.id}` });
		} catch (err) {
			if (err instanceof Refused && err.status < 500 && err.status !== 401) { // the server has removed it, or keeps it in vain
				p.sent = false;
				memory.keep(p.id, null);
			}
			throw err;
		}
		memory.keep(p.id, null);
		p.batch = answer.batch_id;
		p.again = answer.duplicate;
		show(p, answer.duplicate ? "again" : "submitted");
		if (payloads.length === 1) location.assign(`/deposits/${encodeURIComponent(p.batch)}${answer.duplicate ? "?again=1" : ""}`);
	};
	// find finds what was sent of a payload before.
	const find = async (p) => {
		const page = await call(p, "GET", `${form.dataset.uploads}?all=true`);
		const known = memory.all();
		for (const u of page.rows) {
			if (u.batch_id || u.size_bytes !== p.size || u.filename !== p.name || u.collection !== p.request.collection) continue;
			if (payloads.some((q) => q !== p && q.id === u.id)) continue;
			if (u.complete ? (known[u.id] || {}).fingerprint === p.fingerprint : (u.metadata || {}).fingerprint === p.fingerprint) {
				p.id = u.id;
				p.sent = u.complete;
				p.from = u.offset;
				document.getElementById(`upload-${u.id}`)?.remove();
				if (!document.querySelector("#unfinished > li")) document.getElementById("unfinished")?.closest("section").remove();
				return;
			}
		}
		p.id = "";
	};
	// told is the error of an upload by its cause; the library's own words are for programmers.
	const told = (p, err) => {
		if (p.unreadable) return new Error(say.changed);
		const answer = err.originalResponse;
		if (!answer) return err.originalRequest ? new Error(navigator.onLine ? say.unreached : say.lost) : err;
		try { return new Refused(answer.getStatus(), JSON.parse(answer.getBody())); } catch { /* it is no problem document */ }
		return new Error(`${say.answered} (HTTP ${answer.getStatus()})`);
	};
	const send = (p) => new Promise((done, failed) => {
		const samples = [];
		show(p, "sending", p.from ? `${say.from} ${bytes(p.from)}` : "");
		p.upload = new tus.Upload(p.blob, {
			endpoint: form.dataset.uploads,
			uploadUrl: p.id ? `${form.dataset.uploads}/${p.id}` : null,
			metadata: { filename: p.name, collection: p.request.collection, fingerprint: p.fingerprint },
			chunkSize: part,
			retryDelays: [0, 1000, 2000, 5000, ...Array(1000).fill(10000)],
			storeFingerprintForResuming: false,
			removeFingerprintOnSuccess: false,
			onUploadUrlAvailable() {
				p.id = p.upload.url.slice(p.upload.url.lastIndexOf("/") + 1);
				memory.keep(p.id, { fingerprint: p.fingerprint, request: p.request, name: p.name, shown: p.shown, size: p.size, files: p.files, decided: p.decided, judged: p.judged });
			},
			// A file that was changed cannot be read any more. To the network that looks like a broken line.
			async onBeforeRequest(request) {
				if (request.getMethod() !== "PATCH") return;
				const at = Math.min(p.bar.value, p.size - 1);
				await p.blob.slice(at, at + 1).arrayBuffer().catch(() => { p.unreadable = true; throw new Error(say.changed); });
			},
			onShouldRetry(err) {
				const status = err.originalResponse ? err.originalResponse.getStatus() : 0;
				const again = !p.unreadable && (status === 0 || [400, 409, 423, 429, 500, 502, 503, 504].includes(status) && !/not-accepting/.test(err.originalResponse.getBody()));
				if (again && p.state === "sending") show(p, "sending", navigator.onLine ? say.broken : say.offline);
				return again;
			},
			onProgress(sent) {
				const now = performance.now();
				p.bar.value = sent;
				samples.push([now, sent]);
				while (samples.length > 2 && now - samples[0][0] > 10000) samples.shift();
				const rate = (sent - samples[0][1]) / Math.max(now - samples[0][0], 1) * 1000;
				if (p.state === "sending") show(p, "sending", far(p) + (rate > 0 && samples.length > 2 ? `, ${bytes(Math.round(rate))}/s, ${span((p.size - sent) / rate)} ${say.left}` : ""));
			},
			onError(err) { failed(told(p, err)); },
			onSuccess() { p.sent = true; done(); },
		});
		p.upload.start();
	});

	// --- What people drop or choose. ---
	// add lists a payload. One that was begun before goes on at once.
	const add = (p) => {
		p.fingerprint = fingerprint(p.print);
		if (payloads.some((q) => q.fingerprint === p.fingerprint && !q.batch)) { total.textContent = `${p.shown}: ${say.listed}`; return; }
		payloads.push(p);
		row(p);
		const wrong = p.wrong || [];
		if (wrong.some((f) => f.severity === "error")) {
			show(p, "unusable");
			faults(p, wrong, wrong.length);
			return;
		}
		show(p, "ready");
		faults(p, wrong, wrong.length);
		const before = Object.values(memory.all()).find((m) => m.fingerprint === p.fingerprint && m.size === p.size);
		if (before) {
			p.request = before.request;
			p.decided = before.decided;
			p.faults.before(element("p", "note", `${say.given} ${[p.request.title, p.request.collection].filter(Boolean).join(" · ")}`));
			begin(p);
		}
	};
	const addFile = (file) => {
		if (!file.name) return;
		add({
			name: file.name, shown: file.name, blob: file, size: file.size, files: 1, parts: [{ path: file.name, file }], folders: [],
			print: JSON.stringify(["file", file.name, file.size, file.lastModified]), fixed: () => ({ modified: new Date(file.lastModified).toISOString() }),
		});
	};
	// namesOf judges names as the server does, before anything is sent (source/unpack/name.go).
	const namesOf = (files, folders) => {
		const wrong = [];
		const note = (file, severity, rule, message, fix) => wrong.push({ file, severity, rule, message, fix });
		if (files.length > 2000000 || folders.length > 1000000) note("", "error", "limit", say.many, say.split);
		const seen = new Map();
		const utf8 = new TextEncoder();
		for (const { path } of files) {
			if (!path.isWellFormed()) note(path, "error", "name", say.utf8, say.rename);
			else if (/^[\\/]/.test(path) || /^[A-Za-z]:($|[\\/])/.test(path)) note(path, "error", "name", say.absolute, say.rename);
			else if (path.split(/[\\/]/).includes("..")) note(path, "error", "name", say.leads, say.rename);
			else if (path.split("/").some((part) => utf8.encode(part).length > 255)) note(path, "warning", "name-long", say.long, say.shorten);
			const folded = path.normalize("NFC").toLowerCase();
			if (seen.has(folded)) note(`${seen.get(folded)}, ${path}`, "warning", "name-case", say.folded, say.rename);
			seen.set(folded, path);
		}
		return wrong.sort((a, b) => (a.severity === "error" ? 0 : 1) - (b.severity === "error" ? 0 : 1));
	};
	const addFolder = (name, files, folders = []) => {
		if (!files.length) {
			add({
				name, shown: `${name}/`, blob: new Blob([]), size: 0, files: 0, parts: [], folders: [], print: JSON.stringify(["empty", name]), fixed: () => ({}),
				wrong: [{ severity: "error", rule: "empty", message: say.empty, fix: say.fill }],
			});
			return;
		}
		const bag = holdfastTar.isBag(files.map((f) => f.path));
		const blob = holdfastTar.pack(files, folders);
		files.sort((a, b) => holdfastTar.compare(a.path, b.path));
		add({
			name: `${name}.tar`, shown: `${name}/`, wrong: namesOf(files, folders), blob, size: blob.size, files: files.length, parts: files, folders, folder: name,
			print: JSON.stringify(["folder", name, ...files.map((f) => [f.path, f.file.size, f.file.lastModified])]),
			fixed: () => ({ folder: true, type: ["container", "bag"].includes(form.elements.type.value) ? form.elements.type.value : bag ? "bag" : "container" }),
		});
	};
	const walk = async (entry, prefix, files, folders) => {
		if (entry.isFile) {
			files.push({ path: prefix + entry.name, file: await new Promise((ok, no) => entry.file(ok, no)) });
			return;
		}
		const reader = entry.createReader();
		for (;;) {
			const some = await new Promise((ok, no) => reader.readEntries(ok, no));
			if (!some.length) break;
			for (const e of some) {
				if (e.isDirectory) folders.push(prefix + e.name);
				await walk(e, e.isDirectory ? `${prefix}${e.name}/` : prefix, files, folders);
			}
		}
	};
	const dropped = async (transfer) => {
		const entries = [...transfer.items].filter((i) => i.kind === "file").map((i) => i.webkitGetAsEntry ? i.webkitGetAsEntry() : null);
		const plain = [...transfer.files];
		for (const [i, entry] of entries.entries()) {
			if (!entry || entry.isFile) { addFile(plain[i]); continue; }
			const [files, folders] = [[], []];
			total.textContent = `${entry.name}/ …`;
			await walk(entry, "", files, folders);
			sum();
			addFolder(entry.name, files, folders);
		}
	};
	for (const name of ["dragenter", "dragover"]) {
		addEventListener(name, (e) => {
			if (![...e.dataTransfer.types].includes("Files")) return;
			e.preventDefault();
			drop.classList.add("over");
		});
	}
	addEventListener("dragleave", (e) => { if (!e.relatedTarget) drop.classList.remove("over"); });
	addEventListener("drop", (e) => {
		if (![...e.dataTransfer.types].includes("Files")) return;
		e.preventDefault();
		drop.classList.remove("over");
		dropped(e.dataTransfer).catch((err) => { total.textContent = String(err.message || err); });
	});
	const file = document.getElementById("file");
	file.multiple = true;
	file.className = "hidden";
	file.tabIndex = -1;
	file.labels[0].hidden = true;
	file.setAttribute("aria-label", file.labels[0].textContent);
	document.getElementById("files").addEventListener("click", () => file.click());
	file.addEventListener("change", () => {
		for (const f of file.files) addFile(f);
		file.value = "";
	});
	const chooser = document.getElementById("folder-input");
	chooser.disabled = false;
	chooser.removeAttribute("name");
	document.getElementById("folder").addEventListener("click", () => chooser.click());
	chooser.addEventListener("change", () => {
		const by = new Map();
		for (const f of chooser.files) {
			const [top, ...rest] = f.webkitRelativePath.split("/");
			if (!by.has(top)) by.set(top, []);
			by.get(top).push({ path: rest.join("/"), file: f });
		}
		for (const [name, files] of by) addFolder(name, files);
		chooser.value = "";
	});

	form.addEventListener("submit", (e) => {
		let open = payloads.filter((p) => p.state === "ready");
		const refused = payloads.filter((p) => ["refused", "failed"].includes(p.state) && p.blob);
		if (!open.length && !refused.length) {
			if (form.elements.url.value.trim()) return; // the form itself submits an address
			e.preventDefault();
			if (!payloads.some((p) => !p.batch)) total.textContent = say.nothing;
			return;
		}
		e.preventDefault();
		trustFields();
		fields.clear();
		const request = requestOf();
		if (open.length > 1 && form.elements.together.value === "yes") {
			const parts = open.flatMap((p) => p.folder ? p.parts.map((f) => ({ path: `${p.folder}/${f.path}`, file: f.file })) : p.parts);
			const folders = open.flatMap((p) => p.folder ? p.folders.map((f) => `${p.folder}/${f}`) : []);
			for (const p of open) remove(p);
			addFolder(request.title.replace(/[/\\\0]/g, " ").trim().slice(0, 80) || "files", parts, folders);
			open = payloads.filter((p) => p.state === "ready");
		}
		const wanted = [...open, ...refused];
		const found = [];
		if (wanted.length > 1 && request.ark) found.push({ location: "body.ark", message: say.single });
		if (wanted.length > 1 && request.local_ids.length) found.push({ location: "body.local_ids", message: say.single });
		if (wanted.some((p) => p.folder) && !["auto", "container", "bag"].includes(request.type)) found.push({ location: "body.type", message: say.nofolder });
		if (found.length) { blame(found); return; }
		for (const p of refused) again(p);
		for (const p of open) {
			p.request = { ...request, ...p.fixed() };
			begin(p);
		}
	});
	addEventListener("beforeunload", (e) => { if (payloads.some((p) => ["waiting", "checking", "sending"].includes(p.state))) e.preventDefault(); });

	// --- What arrived completely before the page was closed is submitted, as it was asked to be. ---
	const known = memory.all();
	for (const e of document.querySelectorAll("#unfinished [data-sent]")) {
		const m = known[e.dataset.sent];
		if (!m) continue;
		const p = { ...m, id: e.dataset.sent, sent: true, parts: [], folders: [], fixed: () => ({}) };
		e.remove();
		payloads.push(p);
		row(p);
		begin(p);
	}
})();
