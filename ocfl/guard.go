package ocfl

import (
	"fmt"
	"io"
)

const (
	// mostNested is how deep values may be nested in an inventory. Its own blocks go five deep.
	mostNested = 64
	// longestToken bounds a string or number in an inventory, in bytes.
	longestToken = 1 << 20
)

// jsonGuard ends the reading of JSON that would take very much memory by its form alone: a decoder
// holds every string whole, and remembers every bracket that is open.
type jsonGuard struct {
	r       io.Reader
	depth   int
	token   int  // bytes of the string or number so far
	quoted  bool // within a string
	escaped bool // behind a backslash
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
