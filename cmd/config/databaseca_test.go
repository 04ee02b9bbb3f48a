package config

import (
	"encoding/pem"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVerified(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}))
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const database = "postgres://u:p%2Fw@db.example.org:5432/holdfast?sslmode=require"
	for _, authorities := range []string{text, file} {
		got, err := verified(database, authorities)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(got)
		if err != nil {
			t.Fatal(err)
		}
		if q := u.Query(); q.Get("sslmode") != "verify-full" || q.Get("sslrootcert") != strings.TrimSpace(text) || !strings.HasPrefix(got, "postgres://u:p%2Fw@db.example.org:5432/holdfast?") {
			t.Errorf("got %s", got)
		}
	}
	for _, same := range []string{database, "sqlite:/data/registry.db", ""} {
		authorities := text
		if same == database {
			authorities = ""
		}
		if got, err := verified(same, authorities); got != same || err != nil {
			t.Errorf("%q becomes %q, %v", same, got, err)
		}
	}
	for _, wrong := range [][2]string{{database, file + "x"}, {database, "-----BEGIN"}, {"postgres://h/d?sslmode=disable", text}} {
		if got, err := verified(wrong[0], wrong[1]); err == nil {
			t.Errorf("%q is accepted: %s", wrong, got)
		}
	}
}
