package ocfl

import (
	"net/url"
	"slices"
	"strings"
)

// check checks the inventory as a whole. It runs at the end, because the keys may come in any
// order.
func (d *decoder) check() {
	inv := &d.out.inv
	for _, key := range []string{"id", "type", "digestAlgorithm", "head"} {
		if !d.seen[key] {
			d.fault("E036", "key %s is missing", key)
		}
	}
	for _, key := range []string{"manifest", "versions"} {
		if !d.seen[key] {
			d.fault("E041", "key %s is missing", key)
		}
	}
	if !d.seen["versions"] {
		d.fault("E043", "key versions is missing")
	}
	switch {
	case d.seen["id"] && inv.ID == "":
		d.fault("E037", "id is empty")
	case inv.ID != "" && !isURI(inv.ID):
		d.fault("W005", "id %q is not a URI", inv.ID)
	}
	d.checkType()
	if d.seen["digestAlgorithm"] && inv.Algorithm != "" {
		switch {
		case !addresses(inv.Algorithm):
			d.fault("E025", "digestAlgorithm is %q", inv.Algorithm)
		case inv.Algorithm != SHA512:
			d.fault("W004", "digestAlgorithm is %s", inv.Algorithm)
		}
	}
	d.checkContentDirectory()
	d.checkVersionNames()
	d.checkManifest()
	d.checkStates()
	d.checkFixity()
}

// checkType sets the specification's version from the type.
func (d *decoder) checkType() {
	if d.out.typeID == "" {
		if d.seen["type"] {
			d.fault("E038", "type is not the URI of a specification")
		}
		return
	}
	rest, ok := strings.CutPrefix(d.out.typeID, "https://ocfl.io/")
	spec, ok2 := strings.CutSuffix(rest, "/spec/#inventory")
	if !ok || !ok2 || spec != Spec10 && spec != Spec11 {
		d.fault("E038", "type is %q, want the inventory section of OCFL 1.0 or 1.1", d.out.typeID)
		return
	}
	d.out.inv.Spec = spec
}

// checkContentDirectory checks the key. An invalid value is replaced by the default.
func (d *decoder) checkContentDirectory() {
	inv := &d.out.inv
	switch name := inv.ContentDirectory; {
	case strings.Contains(name, "/"):
		d.fault("E017", "contentDirectory %q contains a slash", name)
		d.fault("E108", "contentDirectory %q is not a direct child", name)
	case name == "." || name == "..":
		d.fault("E018", "contentDirectory is %q", name)
	case name == "":
		d.fault("E017", "contentDirectory is empty")
	default:
		return
	}
	inv.ContentDirectory = defaultContent
}

// checkVersionNames checks the keys of versions, and the head.
func (d *decoder) checkVersionNames() {
	out := d.out
	count := 0
	for _, name := range out.names {
		if _, _, ok := parseVersionName(name); !ok {
			d.fault("E046", "%q is not a version name", name)
			d.fault(versionNameCode(name), "%q is not a version name: want v and a number from 1 on", name)
			continue
		}
		count++
	}
	out.names, out.inv.Versions = out.names[:count], out.inv.Versions[:count]
	if count == 0 {
		if d.seen["versions"] {
			d.fault("E008", "there is no version")
		}
		if d.seen["head"] && out.head != "" {
			d.fault("E040", "head is %q, and there is no version", out.head)
		}
		return
	}
	first, padding, _ := parseVersionName(out.names[0])
	out.inv.padding = padding
	if first != 1 {
		d.fault("E009", "the first version is %s", out.names[0])
	}
	last := 0
	for _, name := range out.names {
		n, pad, _ := parseVersionName(name)
		if n > last+1 && last > 0 {
			d.fault("E010", "%s does not follow %s", name, versionName(last, padding))
		}
		if pad != padding {
			d.fault("E012", "%s is not padded as %s is", name, out.names[0])
			d.fault("E013", "%s is not padded as %s is", name, out.names[0])
			if pad == 0 {
				d.fault("E011", "%s has no leading zero", name)
			}
		}
		last = n
	}
	if padding > 0 {
		d.fault("W001", "version numbers are zero-padded")
	}
	if newest := out.names[count-1]; d.seen["head"] && out.head != "" && out.head != newest {
		d.fault("E040", "head is %q, the newest version is %s", out.head, newest)
	}
}

// checkManifest checks the content paths, and that every digest is used.
func (d *decoder) checkManifest() {
	inv := &d.out.inv
	if inv.Manifest == nil {
		return
	}
	used := make([]bool, len(inv.Manifest))
	for i := range inv.Versions {
		for _, f := range inv.Versions[i].State {
			if place, ok := inv.find(f.Digest); ok {
				used[place] = true
			}
		}
	}
	paths := make([]string, 0, len(inv.Manifest))
	for i, e := range inv.Manifest {
		if addresses(inv.Algorithm) && !isDigest(inv.Algorithm, e.Digest) {
			d.fault(encodingCode(inv.Algorithm), "manifest: %q is not a %s digest", e.Digest, inv.Algorithm)
			if other := inv.otherAlgorithm(e.Digest); other != "" {
				d.fault("E039", "manifest: %q is a %s digest, and digestAlgorithm %s", e.Digest, other, inv.Algorithm)
			}
		}
		if len(e.Paths) == 0 {
			d.fault("E092", "manifest: %s has no path", e.Digest)
		}
		if !used[i] {
			d.fault("E107", "manifest: no version uses %s", e.Digest)
			if inv.Spec == Spec10 {
				d.fault("E050", "manifest: no version uses %s", e.Digest)
			}
		}
		for _, path := range e.Paths {
			d.checkContentPath("manifest", path)
		}
		paths = append(paths, e.Paths...)
	}
	conflicts(paths, func(a, b string) { d.fault("E101", "manifest: %q conflicts with %q", b, a) })
}

// otherAlgorithm returns the content-addressing algorithm other than the inventory's that the
// digest has the length of, or "".
func (inv *Inventory) otherAlgorithm(digest string) string {
	for _, algorithm := range []string{SHA512, SHA256} {
		if algorithm != inv.Algorithm && isDigest(algorithm, digest) {
			return algorithm
		}
	}
	return ""
}

// encodingCode returns the code for a malformed digest of the algorithm, or "" if there is no
// specific one.
func encodingCode(algorithm string) string {
	switch algorithm {
	case "sha1":
		return "E029"
	case SHA256:
		return "E030"
	case SHA512:
		return "E031"
	case "blake2b-512":
		return "E032"
	}
	return ""
}

// checkContentPath checks a path of the manifest or of a fixity block.
func (d *decoder) checkContentPath(block, path string) {
	bad := false
	if reason := badElements(path); reason != "" || path == "" {
		d.fault("E099", "%s: content path %q %s", block, path, reason)
		bad = true
	}
	if strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		d.fault("E100", "%s: content path %q begins or ends with a slash", block, path)
		bad = true
	}
	if bad {
		return
	}
	version, rest, _ := strings.Cut(path, "/")
	folder, file, _ := strings.Cut(rest, "/")
	if slices.Contains(d.out.names, version) && folder == d.out.inv.ContentDirectory && file != "" {
		return
	}
	d.fault("E042", "%s: content path %q is in no content folder of a version", block, path)
	if slices.Contains(d.out.names, version) && file != "" && !d.out.inv.contentDeclared {
		d.fault("E021", "%s: content path %q is not in the folder %s, and no contentDirectory says otherwise", block, path, defaultContent)
	}
	if n, _, ok := parseVersionName(version); ok && n <= len(d.out.names) && !slices.Contains(d.out.names, version) {
		d.fault("E014", "%s: content path %q names a version folder as %s, not by its own name", block, path, version)
	}
	if strings.Contains(path, `\`) && !strings.Contains(path, "/") {
		for _, code := range []string{"E035", "E098"} {
			d.fault(code, "%s: content path %q has no slash as separator", block, path)
		}
	}
}

// checkStates checks the logical paths, and that the manifest has their digests in the same case.
func (d *decoder) checkStates() {
	inv := &d.out.inv
	for i := range inv.Versions {
		name := d.out.names[i]
		var paths []string
		for _, f := range inv.Versions[i].State {
			if _, ok := findEntry(inv.Manifest, f.Digest); !ok && inv.Manifest != nil {
				d.fault("E050", "%s: state has the digest %s, which the manifest lacks", name, f.Digest)
			}
			if reason := badElements(f.Path); reason != "" || f.Path == "" {
				d.fault("E052", "%s: logical path %q %s", name, f.Path, reason)
			}
			if strings.HasPrefix(f.Path, "/") || strings.HasSuffix(f.Path, "/") {
				d.fault("E053", "%s: logical path %q begins or ends with a slash", name, f.Path)
			}
			paths = append(paths, f.Path)
		}
		conflicts(paths, func(a, b string) { d.fault("E095", "%s: logical path %q conflicts with %q", name, b, a) })
	}
}

// checkFixity checks the fixity block against the manifest.
func (d *decoder) checkFixity() {
	inv := &d.out.inv
	if d.out.fixityIsNoObject {
		d.fault("E111", "fixity is not an object")
		if inv.Spec == Spec10 {
			d.fault("E056", "fixity is not an object")
		}
		return
	}
	var known []string
	if len(inv.Fixity) > 0 {
		known = newShared(inv).paths
	}
	for algorithm, entries := range inv.Fixity {
		if algorithm == "" {
			d.fault("E056", "fixity: a block without the name of an algorithm")
		}
		var paths []string
		for _, e := range entries {
			if newHash(algorithm) != nil && !isDigest(algorithm, e.Digest) {
				d.fault("E057", "fixity %s: %q is not such a digest", algorithm, e.Digest)
				if code := encodingCode(algorithm); code != "" {
					d.fault(code, "fixity %s: %q is not such a digest in hexadecimal", algorithm, e.Digest)
				}
			}
			for _, path := range e.Paths {
				d.checkContentPath("fixity", path)
				if _, ok := slices.BinarySearch(known, path); !ok {
					d.fault("E057", "fixity %s: content path %q is not in the manifest", algorithm, path)
				}
			}
			paths = append(paths, e.Paths...)
		}
		conflicts(paths, func(a, b string) { d.fault("E101", "fixity %s: %q conflicts with %q", algorithm, b, a) })
	}
}

// isURI reports whether text is an absolute URI.
func isURI(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && len(text) > len(u.Scheme)+1
}
