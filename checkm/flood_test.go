package checkm_test

import (
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/holdfast/holdfast/checkm"
)

// flood is an object manifest of any number of rows, made as it is read.
type flood struct {
	rows, made int
	name       string
	buf, rest  []byte
}

func newFlood(rows int, name string) *flood {
	return &flood{rows: rows, name: name, rest: []byte(objectHead)}
}

func (f *flood) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		switch {
		case f.made < f.rows:
			f.buf = fmt.Appendf(f.buf[:0], "https://data.example.org/collection/2026/%08d.tif | sha256 | %064x | 1024 | 2026-11-21T06:58:27Z | "+f.name+" | image/tiff\n",
				f.made, f.made, f.made)
		case f.made == f.rows:
			f.buf = append(f.buf[:0], eof...)
		default:
			return 0, io.EOF
		}
		f.made++
		f.rest = f.buf
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// BenchmarkReader reads rows; the figure of interest is rows/s.
func BenchmarkReader(b *testing.B) {
	text, err := io.ReadAll(newFlood(10_000, "f%08d.tif"))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	rows := 0
	for b.Loop() {
		r := checkm.NewReader(newRepeat(text), checkm.Options{})
		for {
			_, _, err := r.Next()
			if err != nil {
				break
			}
			rows++
		}
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkCheck checks 100,000 rows with names in lower case, and then with capitals.
func BenchmarkCheck(b *testing.B) {
	for _, name := range []string{"f%08d.tif", "Box/F%08d.TIF"} {
		b.Run(name[:1], func(b *testing.B) {
			text, err := io.ReadAll(newFlood(100_000, name))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			rows := 0
			for b.Loop() {
				rep, err := checkm.Check(newRepeat(text), checkm.Options{})
				if err != nil || !rep.OK() {
					b.Fatal(rep, err)
				}
				rows += int(rep.Rows)
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkCheckMillion reports the most memory that a check of a million rows has from
// the system.
func BenchmarkCheckMillion(b *testing.B) {
	for _, name := range []string{"f%08d.tif", "Box/F%08d.TIF"} {
		b.Run(name[:1], func(b *testing.B) {
			var peak uint64
			for b.Loop() {
				probe := &memoryProbe{r: newFlood(1_000_000, name)}
				rep, err := checkm.Check(probe, checkm.Options{})
				if err != nil || !rep.OK() || rep.Rows != 1_000_000 {
					b.Fatal(rep, err)
				}
				peak = max(peak, probe.peak)
			}
			b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
		})
	}
}

// memoryProbe looks at the heap now and then while it is read from.
type memoryProbe struct {
	r     io.Reader
	reads int
	peak  uint64
}

func (m *memoryProbe) Read(p []byte) (int, error) {
	if m.reads++; m.reads%10_000 == 0 {
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		m.peak = max(m.peak, s.HeapInuse+s.StackInuse)
	}
	return m.r.Read(p)
}

// BenchmarkWriter writes rows.
func BenchmarkWriter(b *testing.B) {
	r := checkm.NewReader(newFlood(1, "f%08d.tif"), checkm.Options{})
	row, _, err := r.Next()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	w := checkm.NewWriter(io.Discard, checkm.Object)
	for b.Loop() {
		if err := w.Write(row); err != nil {
			b.Fatal(err)
		}
	}
}
