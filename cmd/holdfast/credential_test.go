package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/web/wire"
)

// holdfastWith runs the program with something on standard input.
func holdfastWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return result{code: code, out: out.String(), err: errs.String()}
}

func TestCredentialCommands(t *testing.T) {
	dir := up(t)
	const secret = "geheim-und-lang"
	in := func(stdin string, args ...string) result {
		t.Helper()
		r := holdfastWith(t, stdin, append(append([]string{"collection", "credential"}, args...), "--dir", dir)...)
		if strings.Contains(r.out+r.err, secret) {
			t.Errorf("%v tells the secret:\n%s%s", args, r.out, r.err)
		}
		return r
	}
	in(secret+"\n", "set", "default", "https://H.test:443", "--basic", "ann").wants(t, exitOK).says(t, "basic for https://h.test", "key")
	file := writeFile(t, filepath.Join(t.TempDir(), "secret"), secret+"\r\n")
	in("", "set", "default", "s3://bucket", "--s3", "AKIA", "--endpoint", "http://127.0.0.1:9000", "--path-style", "--secret-file", file).wants(t, exitOK)
	in("", "set", "default", "s3://other", "--default-chain", "--json").wants(t, exitOK)

	for _, tt := range []struct {
		args []string
		code outcome
		says string
	}{
		{[]string{"set", "default", "https://h.test"}, exitUsage, "--basic USER, --bearer, --s3 KEYID, --default-chain and --signing"},
		{[]string{"set", "default", "https://h.test", "--bearer", "--basic", "ann"}, exitUsage, "give one of"},
		{[]string{"set", "default", "https://h.test", "--bearer"}, exitUsage, "no secret"},
		{[]string{"set", "default", "https://h.test", "--bearer", "--secret-file", file + ".none"}, exitNotFound, "no such file"},
		{[]string{"set", "default", "http://h.test", "--bearer", "--secret-file", file}, exitUsage, "body.origin"},
		{[]string{"set", "none", "https://h.test", "--bearer", "--secret-file", file}, exitNotFound, "none"},
		{[]string{"remove", "default", "https://h.test:8443"}, exitNotFound, "no credential"},
	} {
		in("", tt.args...).wants(t, tt.code).says(t, tt.says)
	}

	var origins []string
	for line := range strings.Lines(in("", "list", "default", "--json").wants(t, exitOK).out) {
		var c wire.Credential
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		origins = append(origins, c.Origin+" "+c.Name)
	}
	if got := strings.Join(origins, ", "); got != "https://h.test ann, s3://bucket AKIA, s3://other " {
		t.Errorf("listed: %s", got)
	}
	if table := in("", "list", "default").wants(t, exitOK).out; !strings.Contains(table, "http://127.0.0.1:9000") || !strings.Contains(table, "default-chain") {
		t.Errorf("table:\n%s", table)
	}
	in("", "remove", "default", "https://h.test/").wants(t, exitOK).says(t, "removed")
	if audit := holdfast(t, "audit", "list", "--dir", dir).wants(t, exitOK).out; !strings.Contains(audit, "credential-set") || !strings.Contains(audit, "credential-removed") {
		t.Errorf("audit:\n%s", audit)
	}
	info, err := os.Stat(filepath.Join(dir, node.KeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v; want it, for its owner only", info, err)
	}
}
