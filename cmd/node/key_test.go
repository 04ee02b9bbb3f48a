package node_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// TestUp_Key: the folder gets a key once, unless one is configured. A configured key takes
// precedence, and damage is reported at the start.
func TestUp_Key(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	name := filepath.Join(dir, node.KeyFile)
	const given = "a key that is given and has 32 characters"
	// start says under which key a credential is sealed.
	start := func(secretKey string) string {
		t.Helper()
		o := options(t, dir)
		o.SecretKey = secretKey
		n, err := node.Up(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		c := client.New(n.URL(), n.Token(), client.Options{})
		defer c.Close()
		set, err := c.PutCredential(t.Context(), "default", wire.CredentialRequest{Origin: "https://h.test", Kind: "bearer", Secret: "geheim"})
		if err != nil {
			t.Error(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		return set.KeyID
	}
	theirs := start(given)
	if _, err := os.Stat(name); err == nil {
		t.Error("the folder got a key although one was given")
	}
	own := start("")
	first, err := os.ReadFile(name)
	if err != nil || len(strings.TrimSpace(string(first))) < 32 {
		t.Fatalf("the folder's key has %d bytes, %v", len(first), err)
	}
	if again := start(""); again != own || own == theirs || own == "" {
		t.Errorf("sealed under %s, then under %s, and by the given one under %s", own, again, theirs)
	}
	if got := start(given); got != theirs {
		t.Errorf("sealed under %s, want the given key, %s", got, theirs)
	}
	if now, err := os.ReadFile(name); err != nil || !bytes.Equal(first, now) {
		t.Errorf("the folder's key changed: %v", err)
	}
	for _, damaged := range []string{"geheim\n", ""} {
		if err := os.WriteFile(name, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := node.Up(t.Context(), options(t, dir)); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("a damaged key: %v", err)
		}
	}
}

// TestUp_ReceiptKey: the folder gets a key for receipts at its first start and keeps it. Damage is
// reported at the start.
func TestUp_ReceiptKey(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	name := filepath.Join(dir, node.ReceiptKeyFile)
	var texts []string
	for range 2 {
		n, err := node.Up(t.Context(), options(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 || texts[0] != texts[1] {
		t.Errorf("mode %v, %v; the key changed: %v", info.Mode(), err, texts[0] != texts[1])
	}
	if _, err := receipt.ParseKey(texts[0]); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(name, []byte("geheim\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := node.Up(t.Context(), options(t, dir)); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "geheim") {
		t.Errorf("a damaged key: %v", err)
	}
}
