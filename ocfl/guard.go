package ocfl

import (
	"fmt"
	"io"
)

const (
	// mostNested bounds the nesting of values in an inventory. Its own blocks are five deep.
	mostNested = 64
	// longestToken bounds a string or number in an inventory, in bytes.
	longestToken = 1 << 20
)

// jsonGuard stops reading JSON whose form would take very much memory: a decoder holds every string
// as a whole, and remembers every open bracket.
type jsonGuard struct {
	r       io.Reader
	depth   int
	token   int  // bytes of the string or number so far
	quoted  bool // inside a string
	escaped bool // after a backslash
}

// Read implements io.Reader.
func (g *jsonGuard) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	for _, c := range p[:n] {
		if err := g.see(c); err != nil {
			return 0, err
		}
	}
	return n, err
}

func (g *jsonGuard) see(c byte) error {
	if g.token++; g.token > longestToken {
		return fmt.Errorf("%w: a string or number of more than %d bytes", errSyntax, longestToken)
	}
	switch {
	case g.escaped:
		g.escaped = false
	case g.quoted:
		g.escaped, g.quoted = c == '\\', c != '"'
	case c == '"':
		g.quoted, g.token = true, 0
	case c == '{', c == '[':
		g.token = 0
		if g.depth++; g.depth > mostNested {
			return fmt.Errorf("%w: values nested more than %d deep", errSyntax, mostNested)
		}
	case c == '}', c == ']':
		g.depth--
		g.token = 0
	case c == ',', c == ':', c == ' ', c == '\t', c == '\r', c == '\n':
		g.token = 0
	}
	return nil
}
