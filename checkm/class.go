package checkm

// class says what a byte may be part of. One look into a table costs a fraction of comparing, which
// counts where every byte of a million rows is looked at.
type class uint8

const (
	hostByte  class = 1 << iota // of a host's name
	pathByte                    // of a URL's path, where it stands for itself; slashes, too
	hexByte                     // of a hex number
	upperByte                   // a capital letter
	nameByte                    // printable ASCII, which nothing in a name can make harmful but a slash or dot
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
