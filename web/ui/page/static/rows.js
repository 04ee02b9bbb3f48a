// The form that corrects failed rows. What was typed there is in the page only, so to leave it asks first.
"use strict";

(() => {
	const form = document.querySelector("form.rows");
	if (!form) return;
	let typed = form.dataset.typed === "true";
	form.addEventListener("input", () => { typed = true; });
	form.addEventListener("submit", () => { typed = false; });
	addEventListener("beforeunload", (e) => { if (typed) e.preventDefault(); });
})();
