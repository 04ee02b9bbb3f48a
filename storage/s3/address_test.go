package s3_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
)

// TestAddress: errors about an address do not quote it, since it may contain a secret.
func TestAddress(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-west-1")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	for address, want := range map[string]string{
		"s3://bucket":                       "s3://bucket/",
		"s3://bucket/":                      "s3://bucket/",
		"s3://bucket/a/b":                   "s3://bucket/a/b/",
		"s3://bucket/a/b/?path_style=true":  "s3://bucket/a/b/",
		"s3://bucket/a?region=us-east-2":    "s3://bucket/a/",
		"s3://b/?endpoint=http://[::1]:900": "s3://b/",
		"s3://b/p?class=GLACIER_IR":         "s3://b/p/",
	} {
		s, err := s3.Open(t.Context(), address)
		if err != nil {
			t.Errorf("open %s: %v", address, err)
			continue
		}
		if s.String() != want {
			t.Errorf("%s is %s, want %s", address, s, want)
		}
		_ = s.Close()
	}
	for _, address := range []string{
		"", "s3:", "s3://", "s3:///a", "http://bucket/a", "s3://hunter2:hunter2@bucket/a", "s3://bucket:80/a", "s3://bucket/a#hunter2",
		"s3://bucket/a//b", "s3://bucket/../b", "s3://bucket/%ff", "s3://bucket/a?secret=hunter2", "s3://bucket/a?region=x&region=y",
		"s3://bucket/a?path_style=hunter2", "s3://bucket/a?endpoint=http://hunter2:hunter2@host", "s3://bucket/a?endpoint=hunter2",
		"s3://bucket/hunter2%zz", "s3://bucket/a?class=GLACIER", "s3://bucket/a?class=DEEP_ARCHIVE", "s3://bucket/a?class=hunter2", "s3://bucket/" + strings.Repeat("a/", 200),
	} {
		s, err := s3.Open(t.Context(), address)
		if err == nil {
			t.Errorf("%q was opened", address)
			_ = s.Close()
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("open %q: %v, which tells a secret", address, err)
		}
	}
	t.Setenv("AWS_REGION", "")
	if s, err := s3.Open(t.Context(), "s3://bucket"); err == nil || !strings.Contains(err.Error(), "region") {
		t.Errorf("without a region: %v, want an error that says so", err)
		if err == nil {
			_ = s.Close()
		}
	}
}

// TestSecretsStayOut: errors about credentials do not contain them.
func TestSecretsStayOut(t *testing.T) {
	server := start(t)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
	s := open(t, server.Address("p"))
	_, err := storage.Put(t.Context(), s, "folder/k", []byte("x"))
	_, ready := s.Ready(t.Context())
	for _, err := range []error{err, ready} {
		if err == nil || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "Signature=") {
			t.Errorf("with a wrong secret: err = %v, want one without it", err)
		}
	}
	if err != nil && (!strings.Contains(err.Error(), `"folder/k"`) || !strings.Contains(err.Error(), "SignatureDoesNotMatch")) {
		t.Errorf("err = %v, want what happened to which key", err)
	}
	if content := (interface{ ContentFault() bool })(nil); errors.As(err, &content) {
		t.Error("the depositor is blamed for it")
	}
}
