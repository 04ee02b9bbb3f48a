package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Picture is the content of a Display: a line of progress, and below it the names of what is
// running.
type Picture struct {
	Line  string
	Below []string
	// Same is the part of Line that says something new when it changes; "": all of Line. Elapsed time
	// alone is nothing new.
	Same string
}

// said returns what is new in the picture when it changes.
func (p Picture) said() string {
	if p.Same != "" {
		return p.Same
	}
	return p.Line
}

// Display shows progress. Call Show often; the Display decides when to draw. Call Done once, at the
// end: it leaves the terminal ready for other output.
type Display interface {
	Show(now time.Time, p Picture)
	Done(now time.Time, p Picture)
}

// NewDisplay returns a Display for w: none if quiet, redrawn in place on a terminal, else by lines.
func NewDisplay(w io.Writer, quiet bool) Display {
	switch {
	case quiet:
		return silent{}
	case IsTerminal(w) && os.Getenv("TERM") != "dumb":
		return &block{w: w, width: func() int { return Width(w) }, color: os.Getenv("NO_COLOR") == ""}
	}
	return &plain{w: w}
}

// plainFirst is when the first line comes, plainEvery the interval of later ones.
const (
	plainFirst = time.Second
	plainEvery = 5 * time.Second
)

// silent is a Display that shows nothing.
type silent struct{}

func (silent) Show(time.Time, Picture) {}
func (silent) Done(time.Time, Picture) {}

// plain is a Display that writes a line every few seconds if there is something new, for logs and
// pipes.
type plain struct {
	w    io.Writer
	next time.Time // when the next line may come
	same string    // what the last line said
}

func (p *plain) Show(now time.Time, pic Picture) {
	if p.next.IsZero() {
		p.next = now.Add(plainFirst) // short work gets its last line only
		return
	}
	if !now.Before(p.next) && pic.said() != p.same {
		p.next = now.Add(plainEvery)
		p.write(pic)
	}
}

func (p *plain) Done(_ time.Time, pic Picture) {
	if pic.said() != p.same { // else it stands there already
		p.write(pic)
	}
}

// It ignores write errors: the work matters more than its display.
func (p *plain) write(pic Picture) {
	p.same = pic.said()
	_, _ = fmt.Fprintln(p.w, pic.Line)
}

// block is a Display that redraws a few lines on a terminal.
type block struct {
	w     io.Writer
	width func() int // of the terminal, which may change
	color bool
	drawn int // lines on the screen
}

// currentLines limits the names of running jobs.
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

// Done replaces the block with one line.
func (b *block) Done(now time.Time, pic Picture) {
	pic.Below = nil
	b.Show(now, pic)
	b.drawn = 0
}

// back returns the codes that move to the beginning of the block.
func (b *block) back() string {
	if b.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA", b.drawn)
}

// Terminal codes (ECMA-48).
const (
	eraseLine  = "\x1b[K"
	eraseBelow = "\x1b[J"
	bold       = "\x1b[1m"
	faint      = "\x1b[2m"
	plainText  = "\x1b[0m"
)
