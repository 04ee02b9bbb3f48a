package unpack_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/holdfast/holdfast/source/unpack"
)

// TestModified checks that the time of a file is the container's, to the microsecond, that an
// unknown time is empty and that a time without a zone is marked as such.
func TestModified(t *testing.T) {
	t.Parallel()
	at := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	exact := at.Add(789_123 * time.Microsecond)
	before1970 := time.Date(1944, 6, 6, 6, 30, 0, 0, time.UTC)
	after2038 := time.Date(2040, 1, 2, 3, 4, 6, 0, time.UTC)
	extra := func(id uint16, body ...any) []byte {
		var b bytes.Buffer
		for _, v := range body {
			must(t, binary.Write(&b, binary.LittleEndian, v))
		}
		head := binary.LittleEndian.AppendUint16(nil, id)
		return append(binary.LittleEndian.AppendUint16(head, uint16(b.Len())), b.Bytes()...)
	}
	ntfs := func(at time.Time) []byte {
		ticks := uint64(at.Unix()+11_644_473_600)*10_000_000 + uint64(at.Nanosecond()/100)
		return extra(0x000a, uint32(0), uint16(1), uint16(24), ticks, ticks, ticks)
	}
	stamp := func(at time.Time) []byte { return extra(0x5455, uint8(1), uint32(at.Unix())) }
	zipped := func(dos time.Time, more []byte) []byte {
		return zipOf(t, []file{{"a", "x"}}, func(h *zip.FileHeader) {
			h.Extra, h.ModifiedDate, h.ModifiedTime = more, 0, 0 //nolint:staticcheck // the very fields are tested
			if !dos.IsZero() {
				h.ModifiedDate = uint16(dos.Day() + int(dos.Month())<<5 + (dos.Year()-1980)<<9) //nolint:staticcheck // likewise
				h.ModifiedTime = uint16(dos.Second()/2 + dos.Minute()<<5 + dos.Hour()<<11)      //nolint:staticcheck // likewise
			}
		})
	}
	tarred := func(at time.Time, format tar.Format) []byte {
		return tarOf(t, []file{{"a", "x"}}, func(h *tar.Header) { h.ModTime, h.Format = at, format })
	}
	local := time.Date(2001, 2, 3, 9, 5, 6, 0, time.UTC) // what a clock five hours ahead showed
	for _, tt := range []struct {
		name   string
		data   []byte
		want   time.Time
		noZone bool
	}{
		{"tar", tarred(at, tar.FormatUSTAR), at, false},
		{"tar, pax", tarred(exact, tar.FormatPAX), exact, false},
		{"tar, before 1970", tarred(before1970, tar.FormatGNU), before1970, false},
		{"tar, 0", tarred(time.Unix(0, 0), tar.FormatUSTAR), time.Time{}, false},
		{"tar, in no calendar", tarred(time.Unix(1<<40, 0), tar.FormatGNU), time.Time{}, false},
		{"zip, MS-DOS's time only", zipped(local, nil), local, true},
		{"zip, none", zipped(time.Time{}, nil), time.Time{}, false},
		{"zip, first moment", zipped(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), nil), time.Time{}, false},
		{"zip, extended timestamp", zipped(local, stamp(at)), at, false},
		{"zip, extended timestamp of 0", zipped(local, stamp(time.Unix(0, 0))), local, true},
		{"zip, extended timestamp without it", zipped(local, extra(0x5455, uint8(2), uint32(5))), local, true},
		{"zip, before 1970", zipped(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC), stamp(before1970)), before1970, false},
		{"zip, after 2038", zipped(after2038, stamp(after2038)), after2038, false},
		{"zip, Info-ZIP's first", zipped(local, extra(0x5855, uint32(7), uint32(at.Unix()))), at, false},
		{"zip, PKWARE's", zipped(local, extra(0x000d, uint32(7), uint32(at.Unix()), uint32(0))), at, false},
		{"zip, NTFS", zipped(local, append(stamp(at), ntfs(exact)...)), exact, false},
	} {
		err := unpack.Walk(t.Context(), unpack.FromReaderAt(bytes.NewReader(tt.data), int64(len(tt.data))), unpack.Limits{}, func(e unpack.Entry, _ io.Reader) error {
			if !e.Modified.Equal(tt.want) || e.NoZone != tt.noZone {
				t.Errorf("%s: %s, without a zone: %v, want %s, %v", tt.name, e.Modified, e.NoZone, tt.want, tt.noZone)
			}
			return nil
		})
		must(t, err)
	}
}
