package terminal

import (
	"testing"
	"time"
)

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{
		-1: "?", 0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1024*1024 - 1: "1.0 MiB", 1 << 20: "1.0 MiB",
		5 << 30: "5.0 GiB", 1 << 40: "1.0 TiB", 1<<63 - 1: "8.0 EiB",
	} {
		if got := SizeText(n); got != want {
			t.Errorf("size of %d is %q, want %q", n, got, want)
		}
	}
	if got, want := ExactSize(1288490189), "1.2 GiB (1,288,490,189 bytes)"; got != want {
		t.Errorf("exact size is %q, want %q", got, want)
	}
}

func TestSpanText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0:00", 42 * time.Second: "0:42", 250 * time.Second: "4:10", 3723 * time.Second: "1:02:03", 59600 * time.Millisecond: "1:00",
	} {
		if got := SpanText(d); got != want {
			t.Errorf("span of %s is %q, want %q", d, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "a\nb\tc": "a b c", "\x1b[2Jgone": "\uFFFD[2Jgone", "a\u202etxt.exe": "a\uFFFDtxt.exe", "größe 図": "größe 図",
	} {
		if got := Clean(text); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, tt := range []struct {
		text  string
		limit int
		want  string
	}{
		{"short", 10, "short"}, {"exactly10!", 10, "exactly10!"}, {"rather long", 6, "rathe…"}, {"図書館", 4, "図…"}, {"x", 0, ""},
	} {
		got := cut(tt.text, tt.limit)
		if got != tt.want || Cells(got) > tt.limit {
			t.Errorf("cut(%q, %d) = %q of %d columns, want %q", tt.text, tt.limit, got, Cells(got), tt.want)
		}
	}
}
