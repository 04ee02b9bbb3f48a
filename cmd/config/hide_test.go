package config

import "testing"

func TestHide(t *testing.T) {
	t.Setenv("HOLDFAST_TOKEN", "hf_ABCDEFGH")
	t.Setenv("HOLDFAST_DATABASE_URL", "postgres://holdfast:p%2Fw-one@db.example.org/holdfast?password=pw-two&sslmode=require")
	t.Setenv("HOLDFAST_STORAGE_URL", "file:///srv/storage,second=s3://KEY:pw-three@bucket/prefix")
	t.Setenv("HOLDFAST_REDIS_URL", "redis://cache.example.org:6380/0")
	t.Setenv("HOLDFAST_SECRET_KEY", "key-newer-key-newer-key-newer-key,key-older-key-older-key-older-key")
	for text, want := range map[string]string{
		"token hf_ABCDEFGH is refused":              "token (secret) is refused",
		"user holdfast, p/w-one or p%2Fw-one":       "user holdfast, (secret) or (secret)",
		"pw-two at db.example.org":                  "(secret) at db.example.org",
		"/srv/storage and bucket/prefix pw-three":   "/srv/storage and bucket/prefix (secret)",
		"dial cache.example.org:6380":               "dial cache.example.org:6380",
		"by key-older-key-older-key-older-key":      "by (secret)",
		"dial redis://other:pw@cache:6380/0":        "dial redis://other:xxxxx@cache:6380/0",
		"the token of a folder: hf_OTHER, no other": "the token of a folder: (secret), no other",
	} {
		if got := Hide(text, "hf_OTHER", ""); got != want {
			t.Errorf("Hide(%q) = %q, want %q", text, got, want)
		}
	}
}
