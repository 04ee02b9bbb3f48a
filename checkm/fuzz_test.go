package checkm_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/checkm"
)

// FuzzReader checks that no input causes a panic, that Check and Reader agree, and that the usable
// rows of a valid manifest can be written and read again unchanged.
func FuzzReader(f *testing.F) {
	f.Add([]byte(object(row1)))
	f.Add([]byte(batch("https://h.test/a%7Cb.zip | | | | | a%7cb | ark:/99999/x | l1; l%sc2 | c | t | d\r\n")))
	f.Add([]byte("#%columns | nfo:fileName | nfo:fileUrl\r" + row1 + eof))
	f.Add([]byte("\xEF\xBB\xBF#%profile http://uc3.cdlib.org/registry/store/manifest/mrt-object-manifest\na | | | | 2020-01-01T00:00.000Z\n#%EOF x\n\n"))
	f.Add([]byte(object("https://h.test/a%2520b\n", "upload:x\n", "s3://b/k\n", "\xff\x00\n") + row1))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkm.Detect(data)
		r := checkm.NewReader(bytes.NewReader(data), checkm.Options{Kind: checkm.Unknown})
		var rows []checkm.Row
		var all, refused int64
		var end error
		for {
			row, faults, err := r.Next()
			if err != nil {
				end = err
				break
			}
			all++
			if checkm.Refused(faults) {
				refused++
				continue
			}
			rows = append(rows, row)
		}
		sound := errors.Is(end, io.EOF)
		rep, err := checkm.Check(bytes.NewReader(data), checkm.Options{})
		if err != nil || rep.Rows != all || rep.Refused < refused || rep.Sound != sound || rep.Kind != r.Kind() {
			t.Fatalf("Check %+v, %v; Reader: %d rows, %d refused, %v", rep, err, all, refused, end)
		}
		if !sound || len(rows) == 0 {
			return
		}
		var b strings.Builder
		w := checkm.NewWriter(&b, r.Kind())
		for _, row := range rows {
			if err := w.Write(row); err != nil {
				t.Fatalf("write %+v: %v", row, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := readAll(t, b.String(), checkm.Options{})
		if err != nil || len(again) != len(rows) {
			t.Fatalf("read again: %d rows, %v; want %d in\n%s", len(again), err, len(rows), b.String())
		}
		for i := range rows {
			if !again[i].Equal(rows[i]) {
				t.Fatalf("row %d: %+v, want %+v", i, again[i], rows[i])
			}
		}
	})
}
