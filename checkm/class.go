package checkm

// class is a set of properties of a byte. A table look-up is several times faster than comparisons,
// which matters for every byte of a million rows.
type class uint8

const (
	hostByte  class = 1 << iota // may be in a host name
	pathByte                    // unescaped in a URL path, or a slash
	hexByte                     // hex digit
	upperByte                   // capital letter
	nameByte                    // printable ASCII; harmless in a name, except for slash and dot
)

var classes = func() (t [256]class) {
	for c := range t {
		digit, small, capital := c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z'
		letter := small || capital
		if digit || letter || c == '.' || c == '-' {
			t[c] |= hostByte | pathByte
		}
		if c == '_' || c == '~' || c == '/' {
			t[c] |= pathByte
		}
		if digit || letter && c|0x20 <= 'f' {
			t[c] |= hexByte
		}
		if capital {
			t[c] |= upperByte
		}
		if c >= ' ' && c < 0x7f {
			t[c] |= nameByte
		}
	}
	return t
}()

func (k class) is(of class) bool { return k&of != 0 }
