// The list of items: suggestions for the query, and a box that chooses all rows of the page.
"use strict";

(() => {
	const input = document.getElementById("q");
	const list = document.getElementById("suggestions");
	if (!input || !list) return;
	list.addEventListener("click", (e) => {
		const link = e.target.closest("a[data-fill]");
		if (!link || link.getAttribute("href") !== "#q") return;
		e.preventDefault();
		input.value = link.dataset.fill;
		input.focus();
		input.dispatchEvent(new Event("input", { bubbles: true }));
	});
	const close = () => list.replaceChildren();
	// An answer that comes after Escape, or after the focus has gone on, opens the list no more.
	let dismissed = false;
	input.addEventListener("input", () => { dismissed = false; });
	input.addEventListener("focus", () => { dismissed = false; });
	list.addEventListener("htmx:beforeSwap", (e) => { if (dismissed || !input.form.contains(document.activeElement)) e.detail.shouldSwap = false; });
	document.addEventListener("focusin", (e) => { if (!input.form.contains(e.target)) close(); });
	document.addEventListener("keydown", (e) => {
		const links = [...list.querySelectorAll("a")];
		const at = links.indexOf(document.activeElement);
		if (e.key === "Escape" && (at >= 0 || document.activeElement === input)) {
			if (links.length > 0) e.preventDefault(); // it would clear the field
			close();
			input.focus();
			dismissed = true;
		} else if ((e.key === "ArrowDown" || e.key === "ArrowUp") && links.length > 0 && (at >= 0 || document.activeElement === input)) {
			e.preventDefault();
			(links[at + (e.key === "ArrowDown" ? 1 : -1)] || input).focus();
		}
	});
	document.addEventListener("click", (e) => { if (!e.target.closest("form.query")) close(); });
})();

(() => {
	const form = document.querySelector("form.selection");
	const every = document.getElementById("every");
	if (!form || !every) return;
	const boxes = () => [...form.querySelectorAll("input[name=id]")];
	const text = every.parentElement.querySelector("[data-chosen]");
	const plain = text.textContent;
	let last = null;
	const say = () => {
		const chosen = boxes().filter((b) => b.checked).length;
		every.checked = chosen > 0 && chosen === boxes().length;
		every.indeterminate = chosen > 0 && !every.checked;
		text.textContent = chosen > 0 ? chosen + " " + text.dataset.chosen : plain;
	};
	every.hidden = false;
	form.noValidate = true; // what is said below must not stop the next press of a button
	form.addEventListener("submit", (e) => {
		const none = !boxes().some((b) => b.checked) && !form.elements.all?.checked;
		every.setCustomValidity(none ? text.dataset.none : "");
		if (none) { e.preventDefault(); every.reportValidity(); }
	});
	every.addEventListener("change", () => { for (const b of boxes()) b.checked = every.checked; say(); });
	// With the shift key, all rows between are chosen too.
	form.addEventListener("click", (e) => {
		if (e.target.name !== "id") return;
		const all = boxes();
		if (e.shiftKey && last) {
			const [from, to] = [all.indexOf(last), all.indexOf(e.target)].sort((a, b) => a - b);
			for (const b of all.slice(from, to + 1)) b.checked = e.target.checked;
		}
		last = e.target;
		say();
	});
	say();
})();
