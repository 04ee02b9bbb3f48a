package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Picture is what a Display shows: one line of progress, and the names of what is running for below
// it.
type Picture struct {
	Line  string
	Below []string
}

// Display shows progress. Call Show often; it draws when it sees fit. Call Done once, at the end:
// it leaves the screen fit for what comes after.
type Display interface {
	Show(now time.Time, p Picture)
	Done(now time.Time, p Picture)
}

// NewDisplay chooses how w shows progress: not at all, redrawn in place on a terminal, or by lines.
func NewDisplay(w io.Writer, quiet bool) Display {
	switch {
	case quiet:
		return silent{}
	case IsTerminal(w) && os.Getenv("TERM") != "dumb":
		return &block{w: w, width: func() int { return Width(w) }, color: os.Getenv("NO_COLOR") == ""}
	}
	return &plain{w: w}
}

// plainEvery is the time between lines where nothing can be redrawn.
const plainEvery = 5 * time.Second

// silent shows nothing.
type silent struct{}

func (silent) Show(time.Time, Picture) {}
func (silent) Done(time.Time, Picture) {}

// plain writes a line every few seconds, for logs and pipes.
type plain struct {
	w    io.Writer
	last time.Time
	line string // the last one written
}

func (p *plain) Show(now time.Time, pic Picture) {
	if p.last.IsZero() {
		p.last = now // what is over within seconds needs no line but the last
		return
	}
	if now.Sub(p.last) >= plainEvery {
		p.last = now
		p.write(pic)
	}
}

func (p *plain) Done(_ time.Time, pic Picture) {
	if pic.Line != p.line { // it may have been due just now
		p.write(pic)
	}
}

// A failed write is ignored: the work matters more than its display.
func (p *plain) write(pic Picture) {
	p.line = pic.Line
	_, _ = fmt.Fprintln(p.w, pic.Line)
}

// block redraws a few lines on a terminal.
type block struct {
	w     io.Writer
	width func() int // of the terminal, which may change
	color bool
	drawn int // lines on the screen
}

// currentLines is how many running jobs are named.
const currentLines = 4

func (b *block) Show(_ time.Time, pic Picture) {
	width := max(b.width()-1, 20) // the last column makes some terminals wrap
	lines := []string{cut(pic.Line, width)}
	for i, name := range pic.Below {
		if i == currentLines {
			lines = append(lines, fmt.Sprintf("  and %d more", len(pic.Below)-i))
			break
		}
		lines = append(lines, cut("  "+Clean(name), width))
	}
	if b.color {
		lines[0] = bold + lines[0] + plainText
		for i := range lines[1:] {
			lines[i+1] = faint + lines[i+1] + plainText
		}
	}
	var out strings.Builder
	out.WriteString(b.back())
	for _, l := range lines {
		out.WriteString(l + eraseLine + "\n")
	}
	out.WriteString(eraseBelow)
	b.drawn = len(lines)
	_, _ = io.WriteString(b.w, out.String())
}

// Done leaves one line.
func (b *block) Done(now time.Time, pic Picture) {
	pic.Below = nil
	b.Show(now, pic)
	b.drawn = 0
}

// back moves to the beginning of what is drawn.
func (b *block) back() string {
	if b.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA", b.drawn)
}

// What terminals obey (ECMA-48).
const (
	eraseLine  = "\x1b[K"
	eraseBelow = "\x1b[J"
	bold       = "\x1b[1m"
	faint      = "\x1b[2m"
	plainText  = "\x1b[0m"
)
