package terminal

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// Screen is a whole terminal, drawn in place: the lines from before come back when it is closed. It
// is for one goroutine.
type Screen struct {
	// Keys delivers what the user types, byte by byte. Ctrl-C is 3: it makes no signal.
	Keys <-chan byte
	// Resized delivers a value when the terminal has another size.
	Resized <-chan os.Signal

	in, out *os.File
	before  *term.State
	signals chan os.Signal
}

// OpenScreen takes the terminal. ok is false, without an error, if in or out is no terminal or TERM is
// dumb.
func OpenScreen(in io.Reader, out io.Writer) (s *Screen, ok bool, err error) {
	if !IsTerminal(out) || os.Getenv("TERM") == "dumb" {
		return nil, false, nil
	}
	input, isFile := in.(*os.File)
	if !isFile || !term.IsTerminal(int(input.Fd())) {
		return nil, false, nil
	}
	before, err := term.MakeRaw(int(input.Fd()))
	if err != nil {
		return nil, false, err
	}
	keys, signals := make(chan byte), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	go func() { // ends with the process: a read of a terminal cannot be interrupted
		for b := make([]byte, 1); ; {
			if n, err := input.Read(b); err != nil || n == 0 {
				close(keys)
				return
			}
			keys <- b[0]
		}
	}()
	s = &Screen{Keys: keys, Resized: signals, in: input, out: out.(*os.File), before: before, signals: signals} //nolint:forcetypeassert // IsTerminal
	_, err = io.WriteString(s.out, otherScreen+hideCursor)
	return s, true, err
}

// Size returns the columns and lines of the terminal.
func (s *Screen) Size() (columns, lines int) {
	columns, lines, err := term.GetSize(int(s.out.Fd()))
	if err != nil || columns <= 0 || lines <= 0 {
		return 80, 24
	}
	return columns, lines
}

// Draw replaces what the screen shows, in one write and without erasing it first, so that nothing
// flickers. Lines must fit Size.
func (s *Screen) Draw(lines []string) error {
	_, err := io.WriteString(s.out, atHome+strings.Join(lines, eraseLine+"\r\n")+eraseLine+eraseBelow)
	return err
}

// Close gives the terminal back as it was.
func (s *Screen) Close() error {
	signal.Stop(s.signals)
	_, err := io.WriteString(s.out, showCursor+firstScreen)
	if restored := term.Restore(int(s.in.Fd()), s.before); err == nil {
		err = restored
	}
	return err
}

// Terminal codes (ECMA-48 and xterm).
const (
	otherScreen = "\x1b[?1049h"
	firstScreen = "\x1b[?1049l"
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
	atHome      = "\x1b[H"
)
