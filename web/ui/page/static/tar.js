// A folder as a tar file: the same bytes that `holdfast submit` makes of it (cmd/holdfast/payload), so
// that both are recognised as the same content. The tar is a Blob whose parts are the browser's own
// references to the files: their bytes are read when they are sent, and are never in memory together.
"use strict";

const holdfastTar = (() => {
	const utf8 = new TextEncoder();
	const isASCII = (text) => /^[\x01-\x7f]*$/.test(text);
	const octal = (n, width) => n.toString(8).padStart(width, "0");
	const mostOctal = 0o77777777777;

	// header is a block of 512 bytes (POSIX.1-2017, pax, ustar Interchange Format).
	const header = (f) => {
		const block = new Uint8Array(512);
		const put = (at, text) => block.set(utf8.encode(text), at);
		let name = utf8.encode(f.name.replace(/[^\x01-\x7f]/g, "")).subarray(0, 100);
		if (f.name.length > 100 && name[99] === 0x2f) { // a long name of a file must not seem to be that of a folder
			let end = 100;
			while (end > 0 && name[end - 1] === 0x2f) end--;
			name = name.subarray(0, end);
		}
		block.set(name, 0);
		put(100, octal(f.mode, 7));
		put(108, octal(0, 7));
		put(116, octal(0, 7));
		put(124, octal(f.size > mostOctal ? 0 : f.size, 11));
		put(136, octal(f.seconds > mostOctal || f.seconds < 0 ? 0 : f.seconds, 11));
		put(156, f.type);
		if (f.prefix) put(345, f.prefix);
		put(257, "ustar\u000000");
		if (f.device) {
			put(329, octal(0, 7));
			put(337, octal(0, 7));
		}
		let sum = 8 * 0x20;
		for (const b of block) sum += b;
		put(148, octal(sum, 6) + "\0 ");
		return block;
	};
	const padding = (size) => new Uint8Array((512 - (size % 512)) % 512);

	// record is a pax record, whose length counts its own digits.
	const record = (key, value) => {
		const rest = utf8.encode(` ${key}=${value}\n`).length;
		let size = rest + String(rest).length;
		size = rest + String(size).length;
		return `${size} ${key}=${value}\n`;
	};

	// split splits a long ASCII name into the two fields of a header without records; null: impossible.
	const split = (name) => {
		const end = name.length > 156 ? 156 : name.endsWith("/") ? name.length - 1 : name.length;
		const at = name.lastIndexOf("/", end - 1);
		const left = name.length - at - 1;
		return at <= 0 || left > 100 || left === 0 || at > 155 ? null : [name.slice(0, at), name.slice(at + 1)];
	};

	// entry is the header of a file or folder. A folder's name ends in a slash, and its time is 0.
	const entry = (name, file) => {
		const size = file ? file.size : 0;
		const at = file ? Math.max(0, file.lastModified) : 0;
		const records = [];
		const fraction = at % 1000;
		if (fraction) records.push(record("mtime", (Math.floor(at / 1000) + "." + String(fraction).padStart(3, "0")).replace(/0+$/, "")));
		const short = isASCII(name) && name.length <= 100;
		const halves = short || !isASCII(name) || fraction || size > mostOctal ? null : split(name);
		if (!short && !halves) records.push(record("path", name));
		if (size > mostOctal) records.push(record("size", size));
		const parts = [];
		if (records.length) {
			const text = utf8.encode(records.join(""));
			const slash = name.lastIndexOf("/");
			const folder = name.slice(0, slash + 1);
			const under = (folder + "PaxHeaders.0/" + name.slice(slash + 1)).replace(/\/+/g, "/").replace(/\/+$/, "");
			parts.push(header({ name: under.replace(/[^\x01-\x7f]/g, "").slice(0, 100).replace(/\/+$/, ""), mode: 0, size: text.length, seconds: 0, type: "x" }), text, padding(text.length));
		}
		parts.push(header({ name: halves ? halves[1] : name, prefix: halves && halves[0], mode: file ? 0o644 : 0o755, size, seconds: Math.floor(at / 1000), type: file ? "0" : "5", device: true }));
		return parts;
	};

	// compare sorts paths as a walk through the folders does: by the bytes of each name.
	const compare = (a, b) => {
		const [x, y] = [a.split("/"), b.split("/")];
		for (let i = 0; i < x.length && i < y.length; i++) {
			if (x[i] === y[i]) continue;
			const [p, q] = [utf8.encode(x[i]), utf8.encode(y[i])];
			for (let j = 0; j < p.length && j < q.length; j++) if (p[j] !== q[j]) return p[j] - q[j];
			return p.length - q.length;
		}
		return x.length - y.length;
	};

	// pack makes a Blob of files, each {path, file}, and of the names of folders.
	const pack = (files, folders = []) => {
		const all = new Map();
		const addFolders = (path) => {
			const names = path.split("/");
			for (let n = 1; n < names.length; n++) all.set(names.slice(0, n).join("/"), null);
		};
		for (const f of folders) { addFolders(f + "/"); }
		for (const { path, file } of files) {
			addFolders(path);
			all.set(path, file);
		}
		const parts = [];
		for (const path of [...all.keys()].sort(compare)) {
			const file = all.get(path);
			if (file) parts.push(...entry(path, file), file, padding(file.size));
			else parts.push(...entry(path + "/", null));
		}
		parts.push(new Uint8Array(1024));
		return new Blob(parts);
	};

	// isBag reports whether files are a bag, by their names (intake/topfolder.go).
	const isBag = (paths) => {
		const signs = (names) => names.includes("bagit.txt") ||
			names.some((n) => /^manifest-[^/]*\.txt$/.test(n)) && names.some((n) => n.startsWith("data/"));
		if (signs(paths)) return true;
		const tops = new Set(paths.map((p) => p.includes("/") ? p.slice(0, p.indexOf("/")) : ""));
		return tops.size === 1 && !tops.has("") && signs(paths.map((p) => p.slice(p.indexOf("/") + 1)));
	};
	return { pack, isBag, compare };
})();
if (typeof module === "object") module.exports = holdfastTar;
