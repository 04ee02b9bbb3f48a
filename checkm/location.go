package checkm

import (
	"net/url"
	"strings"
	"unicode"
)

// checkURL returns the URL in raw, or what is wrong with it.
func checkURL(raw string) (*url.URL, *Fault) {
	fault := func(rule Rule, expected, fix string) *Fault {
		return &Fault{Rule: rule, Severity: Error, Expected: expected, Found: shownURL(raw), Fix: fix}
	}
	if raw == "" {
		return nil, &Fault{
			Rule: RuleURLMissing, Severity: Error, Expected: "an absolute URL", Found: "nothing",
			Fix: "give the URL that the file can be fetched from",
		}
	}
	if raw[0] == '@' {
		return nil, fault(RuleURL, "an absolute URL", "list the rows of the included manifest here: @ includes are not supported")
	}
	if hasSpaceOrControl(raw) {
		return nil, fault(RuleURL, "a URL without spaces or control characters", "write a space as %20; a no-break space counts as one")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fault(RuleURL, "a well-formed URL", "check the percent signs, the host and the port")
	}
	switch u.Scheme {
	case "http", "https", "s3":
		if u.Host == "" {
			return nil, fault(RuleURL, "an absolute URL with a host", "write it as "+u.Scheme+"://host/path")
		}
	case "upload":
		if u.Opaque == "" && u.Host == "" && u.Path == "" {
			return nil, fault(RuleURL, "the id of an upload", "write it as upload:ID")
		}
	case "":
		return nil, fault(RuleURL, "an absolute URL", "begin it with https://")
	default:
		return nil, fault(RuleURLScheme, "a URL of scheme http, https or s3", "put the file where it can be fetched over one of these")
	}
	return u, nil
}

func hasSpaceOrControl(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return true
		}
		if s[i] >= 0x80 {
			return strings.IndexFunc(s[i:], func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) >= 0
		}
	}
	return false
}

// lastPart returns the unescaped last part of the URL's path, or "" when it has none.
func lastPart(u *url.URL) string {
	p := u.Opaque
	if p == "" {
		p = u.EscapedPath()
	}
	name, err := url.PathUnescape(p[strings.LastIndexByte(p, '/')+1:])
	if err != nil {
		return ""
	}
	return name
}

// shownURL drops what may be secret in a URL: credentials and the query.
func shownURL(raw string) string {
	if i := strings.IndexByte(raw, '?'); i >= 0 {
		raw = raw[:i] + "?…"
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return shown(raw)
	}
	host, path, slash := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = "…" + host[i:]
	}
	if slash {
		host += "/"
	}
	return shown(scheme + "://" + host + path)
}
