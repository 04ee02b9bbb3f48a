package ocfl

import (
	"errors"
	"io"
	"unicode/utf8"
)

// utf8Reader records whether the bytes read are UTF-8, and any error other than io.EOF.
type utf8Reader struct {
	r       io.Reader
	held    []byte // the start of a character, at most three bytes
	invalid bool
	err     error
}

// Read implements io.Reader.
func (u *utf8Reader) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	text := append(u.held, p[:n]...)
	if n > 0 && len(u.held) == 0 {
		text = p[:n]
	}
	cut := len(text)
	for i := 1; i <= min(utf8.UTFMax-1, len(text)); i++ {
		if c := text[len(text)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(text[len(text)-i:]) {
				cut = len(text) - i
			}
			break
		}
	}
	u.invalid = u.invalid || !utf8.Valid(text[:cut])
	u.held = append([]byte(nil), text[cut:]...)
	switch {
	case errors.Is(err, io.EOF):
		u.invalid = u.invalid || len(u.held) > 0
	case err != nil:
		u.err = err
	}
	return n, err
}
