package source

import (
	"net/url"
	"strconv"
	"strings"
)

const (
	redacted   = "redacted"
	longSecret = 32  // a value this long is probably a secret
	longestURL = 500 // greatest length of an address in a message
)

// Redact returns rawURL for messages and logs: without credentials and fragment, and without query
// values that are or may be secrets (signatures, tokens, keys, anything long).
func Redact(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || strings.Contains(u.Opaque, "@") {
		return redactUnparsed(rawURL)
	}
	// s3://KEY/SECRET@BUCKET/FILE and s3:/KEY:SECRET@BUCKET: a secret key may contain a slash. The
	// part after it looks like a part of the file's key.
	if strings.EqualFold(u.Scheme, S3Scheme) && strings.Contains(u.Path, "@") && !IsBucket(u.Host) {
		return redactUnparsed(rawURL)
	}
	return redactURL(u)
}

// redactURL does the same for a parsed address and does not change it.
func redactURL(u *url.URL) string {
	c := *u
	if c.User != nil {
		c.User = url.User(redacted)
	}
	c.Fragment, c.RawFragment = "", ""
	c.RawQuery = redactQuery(c.RawQuery)
	return shorten(c.String())
}

func redactQuery(query string) string {
	if query == "" {
		return ""
	}
	pairs := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
	for i, pair := range pairs {
		key, value, found := strings.Cut(pair, "=")
		switch {
		case !found && len(key) >= longSecret:
			pairs[i] = redacted
		case found && key == versionKey:
		case found && (len(value) >= longSecret || secretKey(key)):
			pairs[i] = key + "=" + redacted
		}
	}
	return strings.Join(pairs, "&")
}

// secretKey recognizes the names of secrets in query parameters, such as X-Amz-Signature and sig.
func secretKey(key string) bool {
	name, err := url.QueryUnescape(key)
	if err != nil {
		return true
	}
	name = strings.ToLower(name)
	words := []string{
		"sig", "token", "key", "secret", "pass", "pw", "auth", "cred", "sess", "jwt", "ticket", "code", "hash", "hmac", "policy",
	}
	for _, word := range words {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// redactUnparsed removes from an invalid address everything that may be a secret.
func redactUnparsed(raw string) string {
	if i := strings.IndexAny(raw, "?#"); i >= 0 {
		raw = raw[:i]
	}
	if i := strings.LastIndexByte(raw, '@'); i >= 0 {
		scheme, _, found := strings.Cut(raw[:i], ":")
		if !found {
			scheme = ""
		}
		raw = scheme + ":" + redacted + raw[i:]
	}
	return shorten(strconv.Quote(raw))
}

func shorten(s string) string {
	if len(s) <= longestURL {
		return s
	}
	return strings.ToValidUTF8(s[:longestURL], "") + "..."
}
