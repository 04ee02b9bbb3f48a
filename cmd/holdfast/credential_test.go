package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/web/wire"
)

func TestCredentialCommands(t *testing.T) {
	dir := up(t)
	const secret = "geheim-und-lang"
	in := func(stdin string, args ...string) clitest.Result {
		t.Helper()
		r := holdfastWith(t, stdin, append(append([]string{"collection", "credential"}, args...), "--dir", dir)...)
		if strings.Contains(r.Out+r.Err, secret) {
			t.Errorf("%v tells the secret:\n%s%s", args, r.Out, r.Err)
		}
		return r
	}
	in(secret+"\n", "set", "default", "https://H.test:443", "--basic", "ann").Wants(t, exit.OK).Says(t, "basic for https://h.test", "key")
	file := clitest.WriteFile(t, filepath.Join(t.TempDir(), "secret"), secret+"\r\n")
	in("", "set", "default", "s3://bucket", "--s3", "AKIA", "--endpoint", "http://127.0.0.1:9000", "--path-style", "--secret-file", file).Wants(t, exit.OK)
	in("", "set", "default", "s3://other", "--default-chain", "--json").Wants(t, exit.OK)

	for _, tt := range []struct {
		args []string
		code exit.Code
		says string
	}{
		{[]string{"set", "default", "https://h.test"}, exit.Usage, "--basic USER, --bearer, --s3 KEYID, --default-chain and --signing"},
		{[]string{"set", "default", "https://h.test", "--bearer", "--basic", "ann"}, exit.Usage, "give one of"},
		{[]string{"set", "default", "https://h.test", "--bearer"}, exit.Usage, "no secret"},
		{[]string{"set", "default", "https://h.test", "--bearer", "--secret-file", file + ".none"}, exit.NotFound, "no such file"},
		{[]string{"set", "default", "http://h.test", "--bearer", "--secret-file", file}, exit.Usage, "body.origin"},
		{[]string{"set", "none", "https://h.test", "--bearer", "--secret-file", file}, exit.NotFound, "none"},
		{[]string{"remove", "default", "https://h.test:8443"}, exit.NotFound, "no credential"},
	} {
		in("", tt.args...).Wants(t, tt.code).Says(t, tt.says)
	}

	var origins []string
	for line := range strings.Lines(in("", "list", "default", "--json").Wants(t, exit.OK).Out) {
		var c wire.Credential
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		origins = append(origins, c.Origin+" "+c.Name)
	}
	if got := strings.Join(origins, ", "); got != "https://h.test ann, s3://bucket AKIA, s3://other " {
		t.Errorf("listed: %s", got)
	}
	if table := in("", "list", "default").Wants(t, exit.OK).Out; !strings.Contains(table, "http://127.0.0.1:9000") || !strings.Contains(table, "default-chain") {
		t.Errorf("table:\n%s", table)
	}
	in("", "remove", "default", "https://h.test/").Wants(t, exit.OK).Says(t, "removed")
	if audit := holdfast(t, "audit", "list", "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(audit, "credential-set") || !strings.Contains(audit, "credential-removed") {
		t.Errorf("audit:\n%s", audit)
	}
	info, err := os.Stat(filepath.Join(dir, node.KeyFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v; want it, for its owner only", info, err)
	}
}
