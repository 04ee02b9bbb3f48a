package bagit_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/cputest"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/bagit"
	"github.com/holdfast/holdfast/safefs"
)

// BenchmarkSmallFiles validates a bag of many small files that lie in the cache, beside SHA-256 of
// the same files on all cores. Other work on the machine changes the processor's time less than the
// clock's.
func BenchmarkSmallFiles(b *testing.B) {
	const files, size = 5000, 20 << 10
	folder := b.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "data"), 0o700); err != nil {
		b.Fatal(err)
	}
	var manifest strings.Builder
	var names []string
	for i := range files {
		base := fmt.Sprintf("%05d.bin", i)
		content := []byte(strings.Repeat(base+"\n", size/10))
		fmt.Fprintf(&manifest, "%x  data/%s\n", sha256.Sum256(content), base)
		names = append(names, filepath.Join(folder, "data", base))
		if err := os.WriteFile(names[i], content, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"bagit.txt": "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n", "manifest-sha256.txt": manifest.String(),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for name, run := range map[string]func() error{
		"ValidateFS": func() error {
			root, err := safefs.Open(folder)
			if err != nil {
				return err
			}
			defer root.Close()
			report, err := bagit.ValidateFS(b.Context(), root, bagit.Options{})
			if err == nil && !report.Valid {
				err = fmt.Errorf("not valid: %v", report.Faults)
			}
			return err
		},
		"Bare": func() error { return hashAll(names) },
	} {
		b.Run(name, func(b *testing.B) {
			before := cputest.Used(b)
			runs := 0
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
				runs++
			}
			b.ReportMetric((cputest.Used(b)-before).Seconds()*1000/float64(runs), "cpu-ms/op")
		})
	}
}

func hashAll(names []string) error {
	var g errgroup.Group
	cores := runtime.GOMAXPROCS(0)
	for core := range cores {
		g.Go(func() error {
			buf := make([]byte, 1<<20)
			for i := core; i < len(names); i += cores {
				f, err := os.Open(names[i])
				if err != nil {
					return err
				}
				h := sha256.New()
				if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, buf); err != nil {
					return err
				}
				h.Sum(nil)
				if err := f.Close(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}
