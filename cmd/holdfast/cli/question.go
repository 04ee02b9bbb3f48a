package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

// Decide returns nil if yes is set or the user confirms at the terminal. Any other answer, or no
// terminal, is an *exit.UndecidedError.
func (a *App) Decide(question string, yes bool) error {
	if yes {
		return nil
	}
	in, ok := a.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return &exit.UndecidedError{Question: question}
	}
	_, _ = fmt.Fprintf(a.Err, "%s [y/N] ", question)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return &exit.UndecidedError{Question: question}
	}
	return nil
}

// ReadSecret reads a secret from a file, or from standard input if file is "". It removes a final
// line break. A terminal does not echo the secret.
func (a *App) ReadSecret(file string) (string, error) {
	const most = 64 << 10
	var raw []byte
	var err error
	switch in, ok := a.In.(*os.File); {
	case file != "":
		raw, err = os.ReadFile(file)
	case ok && term.IsTerminal(int(in.Fd())):
		_, _ = fmt.Fprint(a.Err, "secret: ")
		raw, err = term.ReadPassword(int(in.Fd()))
		_, _ = fmt.Fprintln(a.Err)
	default:
		raw, err = io.ReadAll(io.LimitReader(a.In, most))
	}
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	raw = bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	if len(raw) == 0 {
		return "", exit.Usagef("no secret: give it on standard input, or in a file by --secret-file")
	}
	return string(raw), nil
}
