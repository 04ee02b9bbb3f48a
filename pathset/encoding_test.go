package pathset_test

import (
	"testing"

	"github.com/holdfast/holdfast/pathset"
)

func TestEncoding(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ encoding, raw, want string }{
		{"cp437", "caf\x82", "café"},
		{"IBM437", "M\x81ller", "Müller"},
		{"iso-8859-1", "caf\xe9", "café"},
		{"windows-1252", "\x80uro", "€uro"},
		{"shift_jis", "\x93\xfa\x96{.txt", "日本.txt"},
		{"koi8-r", "\xc4\xc1", "да"},
		{"windows-1252", "caf\x81", ""}, // no character has this byte
		{"shift_jis", "x\x93", ""},
		{"", "caf\xe9", ""},
	} {
		e, err := pathset.ParseEncoding(tt.encoding)
		if err != nil {
			t.Fatalf("%s: %v", tt.encoding, err)
		}
		got, ok := e.Decode(tt.raw)
		if ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%s: %q is %q, %v, want %q", tt.encoding, tt.raw, got, ok, tt.want)
		}
	}
	if got, want := pathset.Escape("M\xfc%l\n é.txt"), "M%FC%25l%0A %C3%A9.txt"; got != want {
		t.Errorf("escaped %q, want %q", got, want)
	}
	for _, bad := range []string{"utf-8", "UTF-16", "utf-16le", "ebcdic", "IBM037", "klingon"} {
		if e, err := pathset.ParseEncoding(bad); err == nil {
			t.Errorf("%s is taken as %s", bad, e)
		}
	}
}
