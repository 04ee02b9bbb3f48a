package source_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/source"
)

func FuzzRedact(f *testing.F) {
	for _, seed := range []string{"https://h/p?X-Amz-Signature=abc", "http://u:p@h/", "http://u:p@h:x/", "http:u:p@h", "?", "upload:1", "//u@h"} {
		f.Add(seed, "s3cr3t")
	}
	f.Fuzz(func(t *testing.T, raw, secret string) {
		_ = source.Redact(raw)
		if len(secret) < 6 || strings.ContainsAny(secret, "@/?#:\\&;% []<>\"^`{|}=+") || strings.ContainsFunc(secret, func(r rune) bool { return r < '!' || r > '~' }) {
			return
		}
		for _, address := range []string{"https://user:" + secret + "@host/x", "https://host/x?token=" + secret + "&a=b", "http://user:" + secret + "@host:port/"} {
			if got := source.Redact(address); strings.Contains(got, secret) && !strings.Contains("https://redacted@host/x?token=redacted&a=b http:redacted@host:port/", secret) {
				t.Errorf("Redact(%q)=%q", address, got)
			}
		}
	})
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://ann:pw@host/a%20b?id=7#frag":                                                        "https://redacted@host/a%20b?id=7",
		"https://h/f?X-Amz-Algorithm=AWS4&X-Amz-Credential=AKIA&X-Amz-Signature=ab&X-Amz-Expires=60": "https://h/f?X-Amz-Algorithm=AWS4&X-Amz-Credential=redacted&X-Amz-Signature=redacted&X-Amz-Expires=60",
		"https://h/f?x=0123456789012345678901234567890123456789":                                     "https://h/f?x=redacted",
		"https://h/f?0123456789012345678901234567890123456789":                                       "https://h/f?redacted",
		"https://h/f?%74oken=abc":                                                                    "https://h/f?%74oken=redacted",
		"http://u:p/w@host:80/":                                                                      `"http:redacted@host:80/"`, // the parser takes p for a bad port
		"http://u:pa ss@host/?q=1":                                                                   `"http:redacted@host/"`,
		"s3://AKIA/Sec/ret@bucket/f":                                                                 `"s3:redacted@bucket/f"`, // a secret key may have a slash
		"s3:/AKIA:Sec/ret@bucket/f":                                                                  `"s3:redacted@bucket/f"`,
		"s3://AKIA:Sec/ret@bucket/f":                                                                 `"s3:redacted@bucket/f"`,
		"s3://bucket/mail@example.org":                                                               "s3://bucket/mail@example.org",
		"http:u:p@host":                                                                              `"http:redacted@host"`,
		"upload:abc":                                                                                 "upload:abc",
	} {
		if got := source.Redact(raw); got != want {
			t.Errorf("Redact(%q)=%q, want %q", raw, got, want)
		}
	}
	if got := source.Redact("http://h/" + strings.Repeat("x", 10000)); len(got) > 600 {
		t.Errorf("a long address makes a message of %d bytes", len(got))
	}
}
