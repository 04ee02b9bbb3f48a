package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/generatedtest"
)

//go:generate go test . -run ^TestGenerated -update

// recorded are the documents whose blocks "console" are runs of a real Holdfast. A line that begins
// with "$ " is a command; what follows is what it printed. Each block of a document goes on where the
// one before ended.
var recorded = []string{"docs/start.md", "docs/integrating.md", "docs/administering.md"}

// TestGenerated_Recordings runs all commands of the recorded documents, and compares what they print
// with what the document shows. A command that fails fails the test, unless its line ends with a
// comment such as "# exit code 6".
//
// Ids, ARKs, times and digests differ in each run. The document has others of the same length
// instead, the same one for the same thing; a command may use them.
func TestGenerated_Recordings(t *testing.T) {
	for _, document := range recorded {
		t.Run(filepath.Base(document), func(t *testing.T) {
			t.Parallel()
			h := up(t)
			s := shell(t, h)
			text, err := os.ReadFile(filepath.Join("..", document))
			if err != nil {
				t.Fatal(err)
			}
			run := 0
			var out strings.Builder
			for i, part := range strings.Split(string(text), "```") {
				commands, ok := strings.CutPrefix(part, "console\n")
				if i%2 == 1 && ok {
					run++
					part = "console\n" + s.replay(commands)
				}
				if i > 0 {
					out.WriteString("```")
				}
				out.WriteString(part)
			}
			if run == 0 {
				t.Error("no block of it was run")
			}
			generatedtest.File(t, document, out.String())
			if document == "docs/start.md" {
				generatedtest.Part(t, "README.md", "recording", excerpt(t, out.String(), "recording"))
			}
		})
	}
}

// excerpt returns what a document has between a line "for README.md: NAME" and the next comment.
func excerpt(t *testing.T, text, name string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, "<!-- for README.md: "+name+" -->\n")
	if !ok {
		t.Fatalf("no part %q", name)
	}
	within, _, _ := strings.Cut(after, "<!--")
	return within
}

// session is a shell whose commands reach a Holdfast as those of a person do.
type session struct {
	t     *testing.T
	in    io.Writer
	out   *bufio.Reader
	known *aliases
	kill  func() // ends it at once
}

// shell starts a shell in an empty folder, beside the folder of h.
func shell(t *testing.T, h *holdfast) *session {
	t.Helper()
	folder, bin := t.TempDir(), t.TempDir()
	for link, target := range map[string]string{
		filepath.Join(folder, "holdfast-data"): h.dir,
		filepath.Join(folder, "holdfast"):      absolute(t, ".."),
		filepath.Join(bin, "holdfast"):         binary,
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "--norc")
	cmd.Dir = folder
	cmd.Env = append(h.environment(), "PATH="+bin+":"+os.Getenv("PATH"), "TZ=UTC", "LC_ALL=C.UTF-8", "NO_COLOR=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return &session{
		t: t, in: in, out: bufio.NewReader(out), known: &aliases{address: h.url()},
		kill: func() { _ = cmd.Process.Kill() }, // it may have ended
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var exitCode = regexp.MustCompile(`# exit code (\d+)$`)

// replay runs the commands of a block, and returns the block with what they print now.
func (s *session) replay(block string) string {
	s.t.Helper()
	var out strings.Builder
	lines := strings.Split(strings.TrimSuffix(block, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		command, ok := strings.CutPrefix(lines[i], "$ ")
		if !ok {
			continue // old output
		}
		for strings.HasSuffix(command, `\`) && i+1 < len(lines) {
			i++
			command += "\n" + lines[i]
		}
		want := 0
		if m := exitCode.FindStringSubmatch(command); m != nil {
			want, _ = strconv.Atoi(m[1]) // digits
		}
		text, code := s.run(command)
		if code != want {
			s.t.Fatalf("%s\nended with %d, want %d:\n%s", command, code, want, text)
		}
		out.WriteString("$ " + command + "\n" + text)
	}
	return out.String()
}

const mark = "the-command-ended"

// run runs one command, and returns what a person sees of it, but for progress, and its exit code.
func (s *session) run(command string) (text string, code int) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.in, "{ %s\n} </dev/null 2>&1; printf '\\n%s %%d\\n' $?\n", s.known.real(command), mark); err != nil {
		s.t.Fatal(err)
	}
	tooLong := time.AfterFunc(patience, s.kill)
	defer tooLong.Stop()
	var out strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%s\nprinted %s\nand then %v", command, out.String(), err)
		}
		if n, err := fmt.Sscanf(line, mark+" %d\n", &code); n == 1 && err == nil {
			break
		}
		if !strings.HasPrefix(line, "[0:") { // progress, which depends on the machine
			out.WriteString(line)
		}
	}
	text = strings.TrimSuffix(out.String(), "\n") // of the mark
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return s.known.alias(text), code
}

// aliases replaces what differs in each run.
type aliases struct {
	address string
	pairs   [][2]string // what it is, and what the document says
}

var (
	varying  = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b|\bark:/99999/fk4\w+|\b[a-z2-7]{26}\b`)
	moment   = regexp.MustCompile(`\b20\d\d-\d\d-\d\d(T| )\d\d:\d\d:\d\d(?:\.\d+)?(Z| UTC)`)
	exact    = regexp.MustCompile(` \([\d,]+ bytes\)`) // depends on names that differ
	digest64 = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
)

const (
	documentAddress = "http://127.0.0.1:8080"
	documentMoment  = "2026-03-02${1}09:30:00${2}"
)

func (a *aliases) alias(text string) string {
	for _, real := range varying.FindAllString(text, -1) {
		if !a.has(real) {
			n := len(a.pairs) + 1
			alias := fmt.Sprintf("01a2%04x-0000-7000-8000-%012x", 0x1f00+n, n)
			if begin := "ark:/99999/fk4"; strings.HasPrefix(real, begin) {
				alias = fmt.Sprintf("%s%0*d", begin, len(real)-len(begin), n)
			} else if !strings.Contains(real, "-") { // a token's id
				alias = strings.Repeat("t", len(real)-1) + string(rune('a'+n))
			}
			a.pairs = append(a.pairs, [2]string{real, alias})
		}
	}
	for _, p := range a.pairs {
		text = strings.ReplaceAll(text, p[0], p[1])
	}
	text = strings.ReplaceAll(text, a.address, documentAddress)
	text = digest64.ReplaceAllString(text, strings.Repeat("0", 64))
	text = exact.ReplaceAllString(text, "")
	return moment.ReplaceAllString(text, documentMoment)
}

func (a *aliases) has(real string) bool {
	for _, p := range a.pairs {
		if p[0] == real {
			return true
		}
	}
	return false
}

// real returns a command of the document as it runs here.
func (a *aliases) real(command string) string {
	for _, p := range a.pairs {
		command = strings.ReplaceAll(command, p[1], p[0])
	}
	return strings.ReplaceAll(command, documentAddress, a.address)
}
