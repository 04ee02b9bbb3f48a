// Buttons that copy the text of an element, whose id they name. Without this file people select it.
"use strict";
for (const button of document.querySelectorAll("button[data-copy]")) {
	if (!navigator.clipboard) continue;
	button.hidden = false;
	button.addEventListener("click", async () => {
		await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
		button.textContent = button.dataset.copied;
	});
}
