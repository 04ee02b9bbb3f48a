// The pages work without this file. It keeps times and live parts up to date, and adds shortcuts.
"use strict";

// --- The reader's time zone: the server formats times in the zone of this cookie. The page of sign-in sets it, too (web/signin). ---
(() => {
	const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
	if (zone && !/(^|; )zone=/.test(document.cookie)) {
		document.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=lax` + (location.protocol === "https:" ? "; secure" : "");
	}
	const zones = document.getElementById("zones");
	document.getElementById("zone")?.addEventListener("focus", () => {
		zones.append(...Intl.supportedValuesOf("timeZone").map((name) => Object.assign(document.createElement("option"), { value: name })));
	}, { once: true });
})();

// --- Relative times grow older. The exact time is in the title. ---
(() => {
	const text = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "always", style: "short" });
	const units = [["day", 86400, 172800], ["hour", 3600, 3600], ["minute", 60, 60], ["second", 1, 0]];
	const age = () => {
		for (const at of document.querySelectorAll("time[data-ago]")) {
			const seconds = (Date.parse(at.dateTime) - Date.now()) / 1000;
			if (!(Date.parse(at.dateTime) > 0)) continue;
			const [unit, size] = units.find(([, , least]) => Math.abs(seconds) >= least);
			const now = text.format(Math.trunc(seconds / size), unit);
			if (at.textContent !== now) at.textContent = now;
		}
	};
	setInterval(age, 10000);
})();

// --- Live parts (web/ui/page/live.go). A hidden page has no stream: a browser allows few at once. ---
(() => {
	const stream = document.getElementById("stream");
	if (!stream) return;
	const copy = stream.cloneNode();
	const live = document.getElementById("live");
	const good = live && live.textContent;
	const say = (text) => { if (live && live.textContent !== text) live.textContent = text; };
	const strangers = new Set();
	let over = false;
	document.addEventListener("visibilitychange", () => {
		const now = document.getElementById("stream");
		if (document.hidden && now) {
			htmx.remove(now);
		} else if (!document.hidden && !now && !over) {
			const again = copy.cloneNode();
			// What this page shows is no longer what it began with. Without a digest, everything is sent.
			again.setAttribute("sse-connect", copy.getAttribute("sse-connect").replace(/&seen=[^&]*/, ""));
			document.body.append(again);
			htmx.process(again);
		}
	});
	document.body.addEventListener("htmx:sseOpen", () => say(good));
	document.body.addEventListener("htmx:sseError", () => say(live && live.dataset.lost));
	document.body.addEventListener("htmx:sseClose", (e) => { if (e.detail.type === "message") over = true; });
	// A message has the parts that changed, each with its id, in a template.
	document.body.addEventListener("htmx:sseBeforeMessage", (e) => {
		if (e.target.id !== "stream") return;
		e.preventDefault();
		say(good);
		const parts = document.createElement("template");
		parts.innerHTML = e.detail.data;
		for (const part of [...parts.content.children].map((t) => t.content.firstElementChild)) {
			const here = document.getElementById(part.id);
			if (here) {
				const height = here.offsetHeight;
				Idiomorph.morph(here, part, { ignoreActiveValue: true });
				const now = document.getElementById(part.id);
				// What is below does not move up while somebody reads it.
				if (now.nodeName !== "TR" && now.offsetHeight < height) now.style.minHeight = `${height}px`;
				htmx.process(now);
			} else {
				// A row that this page does not have waits behind a link, so that nothing jumps.
				strangers.add(part.id);
			}
		}
		const chip = document.getElementById("new");
		if (chip && strangers.size > 0) {
			chip.hidden = false;
			chip.querySelector("[data-count]").textContent = strangers.size;
		}
	});
})();

// --- Shortcuts: / search, ? help, j and k along the rows, Ctrl-K the palette. ---
(() => {
	const typing = (e) => e.target.closest("input, textarea, select, [contenteditable]");
	const rows = () => [...document.querySelectorAll("main tbody tr")].filter((r) => r.querySelector("a") && r.offsetParent);
	document.addEventListener("keydown", (e) => {
		if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
			e.preventDefault();
			palette();
			return;
		}
		if (e.ctrlKey || e.metaKey || e.altKey || typing(e)) return;
		if (e.key === "/") {
			const search = document.querySelector("main input[type=search]") || document.querySelector(".find input");
			if (search) { e.preventDefault(); search.focus(); search.select(); }
		} else if (e.key === "?") {
			location.assign("/help#keys");
		} else if (e.key === "j" || e.key === "k") {
			const all = rows();
			const at = all.indexOf(document.activeElement.closest("tr"));
			const next = all[Math.max(0, Math.min(all.length - 1, at + (e.key === "j" ? 1 : -1)))];
			if (next) { next.querySelector("a").focus(); next.scrollIntoView({ block: "nearest" }); }
		}
	});
	// The palette lists the navigation and the page's own links, and searches anything else.
	const palette = () => {
		let dialog = document.getElementById("palette");
		if (!dialog) {
			dialog = document.createElement("dialog");
			dialog.id = "palette";
			const name = document.querySelector(".find input").dataset.palette;
			dialog.setAttribute("aria-label", name);
			const form = document.createElement("form");
			form.method = "get";
			form.action = "/find";
			const input = document.createElement("input");
			input.type = "search";
			input.name = "q";
			input.autocomplete = "off";
			input.placeholder = name;
			input.setAttribute("aria-label", name);
			const list = document.createElement("ul");
			form.append(input, list);
			dialog.append(form);
			document.body.append(dialog);
			const fill = () => {
				list.replaceChildren();
				const wanted = input.value.toLowerCase();
				const add = (name, href) => {
					const row = document.createElement("li");
					const link = document.createElement("a");
					link.href = href;
					link.textContent = name;
					link.addEventListener("click", () => {
						dialog.close();
						// The rest of the key press must not go to the field that the focus returns to.
						document.activeElement.blur();
					});
					row.append(link);
					list.append(row);
					return link;
				};
				for (const a of document.querySelectorAll("nav.side a, main h1 a, main .crumbs a, main section[aria-labelledby] > h2")) {
					const name = a.textContent.trim();
					const href = a.href || "#" + a.id;
					if (!name.toLowerCase().includes(wanted) || list.children.length >= 12) continue;
					add(name, href);
				}
				if (!wanted) return;
				for (const [path, field] of [["/deposits", "q"], ["/items", "q"], ["/objects", "text"]]) {
					const a = document.querySelector(`nav.side a[href="${path}"]`);
					if (a) add(`${a.textContent.trim()}: ${input.value}`, `${path}?${field}=${encodeURIComponent(input.value)}`).dataset.search = "";
				}
			};
			input.addEventListener("input", fill);
			form.addEventListener("keydown", (e) => {
				const links = [...list.querySelectorAll("a")];
				const at = links.indexOf(document.activeElement);
				if (e.key === "ArrowDown" || e.key === "ArrowUp") {
					e.preventDefault();
					const to = at + (e.key === "ArrowDown" ? 1 : -1);
					(links[to] || (to < 0 ? input : links[links.length - 1]) || input).focus();
				}
			});
			form.addEventListener("submit", (e) => {
				const first = list.querySelector("a:not([data-search])");
				if (first && input.value) { e.preventDefault(); first.click(); }
			});
			fill();
		}
		// A closed dialog gives the focus back. Enter on a link must not go on to the field that had it.
		const before = document.activeElement;
		before.blur();
		dialog.oncancel = () => setTimeout(() => before.focus());
		dialog.showModal();
		const input = dialog.querySelector("input");
		input.value = "";
		input.dispatchEvent(new Event("input"));
		input.focus();
	};
})();
