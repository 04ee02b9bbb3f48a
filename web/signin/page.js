"use strict";
// The pages format times in the zone of this cookie, the first one after signing in already.
(() => {
	const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
	if (zone && !/(^|; )zone=/.test(document.cookie)) {
		document.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=lax` + (location.protocol === "https:" ? "; secure" : "");
	}
})();
