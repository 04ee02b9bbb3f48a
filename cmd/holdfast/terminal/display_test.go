package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestPlain_ALineEveryFewSeconds(t *testing.T) {
	var out bytes.Buffer
	p := &plain{w: &out}
	at := time.Unix(0, 0)
	for range 100 { // ten seconds
		p.Show(at, Picture{Line: "going on", Below: []string{"a file"}})
		at = at.Add(100 * time.Millisecond)
	}
	p.Done(at, Picture{Line: "done"})
	p.Done(at, Picture{Line: "done"})
	if got, want := out.String(), "going on\ndone\n"; got != want {
		t.Errorf("wrote %q, want %q: a line that stands there already is not repeated", got, want)
	}
}

// The first line comes within a second. Later ones come only if they say something new.
func TestPlain_NothingTwice(t *testing.T) {
	var out bytes.Buffer
	p := &plain{w: &out}
	begun := time.Unix(0, 0)
	for i := range 21 {
		said := "waiting"
		if i >= 12 {
			said = "running"
		}
		p.Show(begun.Add(time.Duration(i)*time.Second), Picture{Line: SpanText(time.Duration(i)*time.Second) + " " + said, Same: said})
	}
	p.Done(begun.Add(30*time.Second), Picture{Line: "0:30 running", Same: "running"})
	p.Done(begun.Add(30*time.Second), Picture{Line: "0:30 running", Same: "running", Cause: "after: a\nfault"})
	if got, want := out.String(), "0:01 waiting\n0:12 running\n0:30 running  after: a fault\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

// The cause stands below the line: while it is redrawn in few lines, none of which the terminal wraps;
// at the end whole, with addresses that can be copied.
func TestBlock_Cause(t *testing.T) {
	var out bytes.Buffer
	b := &block{w: &out, width: func() int { return 30 }}
	address := "https://example.org/" + strings.Repeat("images/", 5)
	cause := "after: open " + address + ": the server is away\x1b[2J" + strings.Repeat(" and away", 20)
	b.Show(time.Time{}, Picture{Line: "waiting", Cause: cause})
	drawn := strings.Split(strings.TrimSuffix(out.String(), "\n"+eraseBelow), "\n")
	if len(drawn) != 1+causeLines || !strings.HasSuffix(drawn[causeLines], "…"+eraseLine) || strings.Contains(out.String(), "\x1b[2J") {
		t.Errorf("drew %q", drawn)
	}
	for _, line := range drawn {
		if n := Cells(strings.TrimSuffix(line, eraseLine)); n >= 30 {
			t.Errorf("a line of %d columns on a terminal of 30: %q", n, line)
		}
	}
	out.Reset()
	b.Done(time.Time{}, Picture{Line: "given up", Cause: cause})
	if got := out.String(); !strings.HasPrefix(got, "\r\x1b[7A") || !strings.Contains(got, address) || strings.Count(got, "away") != 21 {
		t.Errorf("drew %q, want the whole cause", got)
	}
}

func TestBlock_RedrawsInPlace(t *testing.T) {
	var out bytes.Buffer
	b := &block{w: &out, width: func() int { return 30 }}
	b.Show(time.Time{}, Picture{Line: strings.Repeat("long ", 20), Below: []string{"one", "two\x1b[2J"}})
	first := out.String()
	for line := range strings.Lines(strings.ReplaceAll(first, eraseLine, "")) {
		if n := Cells(strings.TrimSuffix(line, "\n")); n > 30 {
			t.Errorf("a line of %d columns on a terminal of 30: %q", n, line)
		}
	}
	if strings.Contains(first, "\x1b[2J") || strings.Contains(first, "\r") {
		t.Errorf("wrote %q: a name must not move the cursor, and nothing is drawn yet to go back to", first)
	}
	if strings.Contains(first, "\x1b[1m") {
		t.Errorf("colours although none are wanted: %q", first)
	}
	out.Reset()
	b.Show(time.Time{}, Picture{Line: "now", Below: []string{"1", "2", "3", "4", "5", "6"}})
	if got := out.String(); !strings.HasPrefix(got, "\r\x1b[3A") || !strings.Contains(got, "and 2 more") {
		t.Errorf("wrote %q, want to go back three lines and to name four", got)
	}
	out.Reset()
	b.Done(time.Time{}, Picture{Line: "all", Below: []string{"left"}})
	if got := out.String(); !strings.HasPrefix(got, "\r\x1b[6A") || strings.Contains(got, "left") || !strings.HasSuffix(got, "\n"+eraseBelow) {
		t.Errorf("wrote %q, want one last line in place of six", got)
	}
}
