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
	// Cause is why the work waits; "": it does not. It stands below the line.
	Cause string
	// Same is the part of Line that says something new when it changes; "": all of Line. Elapsed time
	// alone is nothing new.
	Same string
}

// said returns what is new in the picture when it changes.
func (p Picture) said() string {
	if p.Same != "" {
		return p.Same + p.Cause
	}
	return p.Line + p.Cause
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
	line := pic.Line
	if pic.Cause != "" {
		line += "  " + Clean(pic.Cause)
	}
	_, _ = fmt.Fprintln(p.w, line)
}

// block is a Display that redraws a few lines on a terminal.
type block struct {
	w     io.Writer
	width func() int // of the terminal, which may change
	color bool
	drawn int // lines on the screen
}

// currentLines limits the names of running jobs, causeLines the lines of the cause while the block is
// redrawn: it must not become higher than the terminal.
const (
	currentLines = 4
	causeLines   = 6
)

func (b *block) Show(_ time.Time, pic Picture) { b.draw(pic, causeLines) }

// draw draws the picture, with at most causes lines of its cause; 0: any number.
func (b *block) draw(pic Picture, causes int) {
	width := max(b.width()-1, 20) // the last column makes some terminals wrap
	lines := []string{cut(pic.Line, width)}
	if pic.Cause != "" {
		for _, text := range causeText(pic.Cause, width-2, causes) {
			lines = append(lines, "  "+text)
		}
	}
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

// causeText wraps a cause. Up to most lines it also breaks addresses that are longer than a line, since
// what the terminal wraps by itself cannot be drawn again.
func causeText(cause string, width, most int) (lines []string) {
	wrapped := Wrapped(Clean(cause), width, 0)
	if most == 0 {
		return wrapped
	}
	for _, text := range wrapped {
		for text != "" {
			if len(lines) == most {
				last, _ := split(lines[most-1], width-1)
				lines[most-1] = last + "…"
				return lines
			}
			var line string
			line, text = split(text, width)
			lines = append(lines, line)
		}
	}
	return lines
}

// Done replaces the block with its line and the whole cause.
func (b *block) Done(_ time.Time, pic Picture) {
	pic.Below = nil
	b.draw(pic, 0)
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
