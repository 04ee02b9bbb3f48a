package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/cfntest"
	"github.com/holdfast/holdfast/internal/proctest"
)

// documents returns the documents whose blocks are checked, from this folder: all but the changelog, which
// tells of commands of the past.
func documents(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && slices.Contains([]string{"testdata", ".git", "bin", "dist", "node_modules"}, d.Name()) {
			return filepath.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".md") && d.Name() != "CHANGELOG.md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 30 {
		t.Fatalf("found the documents %q: %v", files, err)
	}
	return files
}

// otherPrograms check the commands of other programs than holdfast, each given the words after its name.
var otherPrograms = map[string]func(t *testing.T, args []string) error{
	"make":    makeTarget,
	"docker":  composeService,
	"kubectl": func(_ *testing.T, args []string) error { return exists("deploy/kubernetes", args, "apply", "-k", ".") },
	"go":      goCommand,
	"aws":     awsCommand,
	"curl":    apiRequest,
}

// TestDocuments_OtherPrograms checks the blocks of commands: a shell can read them, and what they say to
// make, docker compose, kubectl, go, aws and our API is there.
func TestDocuments_OtherPrograms(t *testing.T) {
	checked := map[string]int{}
	command := regexp.MustCompile(`(?m)(?:^|[;&|(]|\bdo|\$\()\s*(?:[A-Z_]+=\S+\s+)*(make|docker|kubectl|go|aws|curl)\s+([^\n]*)`)
	for _, b := range blocks(t) {
		shell := b.lang == "sh" || b.lang == "console" || b.lang == "" && (command.MatchString(b.text) || strings.Contains(b.text, "holdfast "))
		if !shell || strings.Contains(b.text, "─") {
			continue // a picture
		}
		text := b.text
		if b.lang == "console" {
			text = ""
			for line := range strings.Lines(continued.ReplaceAllString(b.text, " ")) {
				if said, ok := strings.CutPrefix(line, "$ "); ok {
					text += said
				}
			}
		}
		if !strings.Contains(text, " | show") && !strings.HasSuffix(b.file, "commands.md") { // a list of what may stand there
			read := exec.CommandContext(t.Context(), "bash", "-n")
			read.Stdin = strings.NewReader(text)
			if out, err := read.CombinedOutput(); err != nil {
				t.Errorf("%s: no commands of a shell: %s", b, out)
			}
		}
		for _, m := range command.FindAllStringSubmatch(joined(text), -1) {
			checked[m[1]]++
			if err := otherPrograms[m[1]](t, words(m[2])); err != nil {
				t.Errorf("%s: %s %s: %v", b, m[1], m[2], err)
			}
		}
	}
	for name := range otherPrograms {
		if checked[name] == 0 {
			t.Errorf("no document has a command of %s", name)
		}
	}
	for program, wrong := range map[string]string{
		"make": "demmo", "docker": "compose logs token", "go": "test ./no/such", "aws": "cloudformation deploy --template-file ecs/data.yaml --parameter-overrides Vcp=1",
		"curl": "$api/no-such-path", "kubectl": "apply -k elsewhere",
	} {
		if otherPrograms[program](t, strings.Fields(wrong)) == nil {
			t.Errorf("%s %s was accepted", program, wrong)
		}
	}
}

// joined makes commands that go on in the next line, or in quotes over several, one line each.
func joined(text string) string {
	return regexp.MustCompile(`'[^']*'`).ReplaceAllStringFunc(continued.ReplaceAllString(text, " "), func(quoted string) string {
		return strings.ReplaceAll(quoted, "\n", " ")
	})
}

func exists(folder string, args []string, want ...string) error {
	if !slices.Equal(args, want) {
		return fmt.Errorf("want %v", want)
	}
	_, err := os.Stat("../../" + folder)
	return err
}

func makeTarget(t *testing.T, args []string) error {
	t.Helper()
	if !strings.Contains(readFile(t, "../../Makefile"), "\n"+args[0]+": ") {
		return fmt.Errorf("the Makefile has no such target")
	}
	return nil
}

// composeService checks that a command of Docker Compose names services of compose.yaml.
func composeService(t *testing.T, args []string) error {
	t.Helper()
	known := []string{"up", "logs", "cp", "run", "exec"}
	if len(args) < 2 || args[0] != "compose" || !slices.Contains(known, args[1]) {
		return fmt.Errorf("want compose and one of %v", known)
	}
	for _, word := range args[2:] {
		service, _, _ := strings.Cut(word, ":")
		if strings.HasPrefix(word, "-") {
			continue
		}
		if name, n, scales := strings.Cut(word, "="); scales && n != "" {
			service = name
		}
		if !strings.Contains(readFile(t, "../../docker/compose.yaml"), "\n  "+service+":\n") {
			return fmt.Errorf("compose.yaml has no service %s", service)
		}
		if args[1] != "up" {
			return nil // what follows is the service's
		}
	}
	return nil
}

// goCommand checks that the packages and the tests of a command are there.
func goCommand(t *testing.T, args []string) error {
	t.Helper()
	var folders []string
	for _, a := range args {
		if folder, ok := strings.CutPrefix(a, "./"); ok && !strings.ContainsAny(a, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			if _, err := os.Stat(filepath.Join("../..", strings.TrimSuffix(folder, "..."))); err != nil {
				return err
			}
			folders = append(folders, folder)
		}
	}
	for flag, kind := range map[string]string{"-run": "", "-bench": "Benchmark"} {
		i := slices.Index(args, flag)
		if i < 0 || len(folders) != 1 || strings.HasSuffix(folders[0], "...") {
			continue
		}
		name := regexp.MustCompile(`^\^?\(?(\w+)`).FindStringSubmatch(args[i+1])
		if name == nil || name[1] == "NAME" {
			continue // none, or any
		}
		files, err := filepath.Glob(filepath.Join("../..", folders[0], "*_test.go"))
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(files, func(f string) bool { return strings.Contains(readFile(t, f), "func "+kind+name[1]) }) {
			return fmt.Errorf("nothing there begins with %s", kind+name[1])
		}
	}
	return nil
}

// awsCommand checks that the template of a deployment is there and has its parameters.
func awsCommand(t *testing.T, args []string) error {
	t.Helper()
	file, over := slices.Index(args, "--template-file"), slices.Index(args, "--parameter-overrides")
	if file < 0 {
		return nil // AWS's own
	}
	template := cfntest.Load(t, filepath.Join("../..", args[file+1]))
	for _, word := range args[over+1:] {
		name, _, given := strings.Cut(word, "=")
		if over < 0 || !given {
			continue
		}
		if template.Parameters[name] == nil {
			return fmt.Errorf("%s has no parameter %s", args[file+1], name)
		}
	}
	return nil
}

// apiRequest checks that our API has the path and the method of a request, and that what is sent is JSON.
func apiRequest(t *testing.T, args []string) error {
	t.Helper()
	var spec struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal([]byte(readFile(t, "../../docs/openapi.json")), &spec); err != nil {
		return err
	}
	method, path := "get", ""
	for i, a := range args {
		switch _, after, ours := strings.Cut(a, "$api/"); {
		case a == "-d" && method == "get":
			method = "post"
		case a == "-X":
			method = strings.ToLower(args[i+1])
		case ours:
			path, _, _ = strings.Cut(after, "?")
		}
		if a == "-d" && !strings.Contains(args[i+1], "$") && !json.Valid([]byte(strings.ReplaceAll(args[i+1], "…", "x"))) {
			return fmt.Errorf("%s is no JSON", args[i+1])
		}
	}
	if path == "" {
		return nil // another service's
	}
	parts := strings.Split(path, "/")
	for known, methods := range spec.Paths {
		of := strings.Split(strings.Trim(known, "/"), "/")
		same := len(of) == len(parts) && methods[method] != nil
		for i := range of {
			if same && !strings.HasPrefix(of[i], "{") {
				was, err := url.PathUnescape(parts[i])
				same = err == nil && was == of[i]
			}
		}
		if same {
			return nil
		}
	}
	return fmt.Errorf("the API has no %s /%s", strings.ToUpper(method), path)
}

// codeOfPrograms checks code of programs: declarations, or statements with "..." for what is theirs.
func codeOfPrograms(t *testing.T, code string) error {
	t.Helper()
	code = regexp.MustCompile(`(?m)^\s*\.\.\.$`).ReplaceAllString(code, "panic(0)")
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+code, 0)
	if err != nil {
		if file, err = parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+code+"}", 0); err != nil {
			return err
		}
	}
	ours := map[string]string{"task": "../../task", "remote": "../../task/remote", "process": "../../process", "registry": "../../registry", "client": "../../web/client"}
	ast.Inspect(file, func(n ast.Node) bool {
		use, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		of, ok := use.X.(*ast.Ident)
		if !ok || ours[of.Name] == "" {
			return true
		}
		declared := regexp.MustCompile(`(?m)^(?:func|type|var|const|\t)\s*` + use.Sel.Name + `\b`)
		files, globbed := filepath.Glob(ours[of.Name] + "/*.go")
		if globbed != nil || !slices.ContainsFunc(files, func(f string) bool { return declared.MatchString(readFile(t, f)) }) {
			err = fmt.Errorf("there is no %s.%s", of.Name, use.Sel.Name)
		}
		return true
	})
	return err
}

// TestDocuments_Redis starts the redis-server of each command in the documents, with a certificate and a
// port of the test: it answers over TLS only.
func TestDocuments_Redis(t *testing.T) {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		proctest.Absent(t, "redis-server (apt-get install redis-server)", err)
	}
	site := httptest.NewTLSServer(nil) // for its certificate
	site.Close()
	folder := t.TempDir()
	key, err := x509.MarshalPKCS8PrivateKey(site.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"redis.pem": {Type: "CERTIFICATE", Bytes: site.Certificate().Raw}, "redis.key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(site.Certificate())
	trusting := &tls.Config{RootCAs: roots}
	found := 0
	for _, b := range blocks(t) {
		for _, m := range regexp.MustCompile(`(?m)^redis-server (.*--tls-port 6379.*)$`).FindAllStringSubmatch(b.text, -1) {
			found++
			var server *proctest.Server
			err := proctest.OnFreePort(t, func(address string) (err error) {
				_, port, _ := net.SplitHostPort(address)
				cmd := exec.Command(program, append(words(strings.Replace(m[1], "6379", port, 1)), "--bind", "127.0.0.1", "--save", "")...)
				cmd.Dir = folder
				server, err = proctest.Start(cmd, func(context.Context) bool {
					conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", address, trusting)
					if err != nil {
						return false
					}
					defer conn.Close()
					answer := make([]byte, len("+PONG"))
					_, err = fmt.Fprint(conn, "PING\r\n")
					if err == nil {
						_, err = io.ReadFull(conn, answer)
					}
					return err == nil && string(answer) == "+PONG"
				})
				return err
			})
			if err != nil {
				t.Errorf("%s: redis-server %s: %v", b, m[1], err)
				continue
			}
			server.End(os.Kill)
		}
	}
	if found == 0 {
		t.Error("no document starts redis-server")
	}
}
