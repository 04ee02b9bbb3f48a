package registry_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
)

func TestCanonicalOrigin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://H.test": "https://h.test", "https://h.test:443/": "https://h.test", "HTTPS://h.test:8443": "https://h.test:8443",
		"https://[2001:DB8::1]:443": "https://[2001:db8::1]", "https://[::1]:8443": "https://[::1]:8443", "s3://bucket/": "s3://bucket", "S3://bucket": "s3://bucket",
	} {
		got, err := registry.CanonicalOrigin(text)
		if got != want || err != nil {
			t.Errorf("%s: %q, %v; want %s", text, got, err, want)
		}
		if again, err := registry.CanonicalOrigin(got); again != got || err != nil {
			t.Errorf("%s again: %q, %v", got, again, err)
		}
	}
	for _, text := range []string{
		"", "h.test", "https://", "https:///", "https://u:s3cr3t@h.test", "https://h.test/path", "https://h.test?s3cr3t", "https://h.test#s3cr3t",
		"http://h.test", "ftp://h.test", "https://h.test:0", "https://h.test:0443", "https://h.test:65536", "s3://bucket:1", "s3://bucket/key", "s3:bucket", "https:s3cr3t", "signing:", "signing:s3cr3t/", "signing:s3 cr3t", "Signing:s3cr3t",
	} {
		if got, err := registry.CanonicalOrigin(text); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %q, %v; want it refused and not repeated", text, got, err)
		}
	}
}

func TestCredentialCheck_EveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range registry.CredentialKinds() {
		for origin, kinds := range map[string][]registry.CredentialKind{
			"https://h.test": {registry.CredentialBasic, registry.CredentialBearer},
			"s3://bucket":    {registry.CredentialS3, registry.CredentialDefaultChain}, "signing:2026-a": {registry.CredentialSigning},
		} {
			c := registry.Credential{Origin: origin, Kind: kind, Sealed: "x"}
			if err := c.Check(); (err == nil) != slices.Contains(kinds, kind) || err != nil && !errors.Is(err, registry.ErrInvalid) {
				t.Errorf("%s for %s: %v", kind, origin, err)
			}
		}
	}
}
