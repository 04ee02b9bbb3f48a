package unpack

import (
	"archive/zip"
	"encoding/binary"
	"time"
)

// Ids of a zip's extra fields with times (APPNOTE 4.5 and 4.6, and Info-ZIP's
// proginfo/extrafld.txt).
const (
	ntfsExtra     = 0x000a
	unixExtra     = 0x000d // PKWARE's
	timeExtra     = 0x5455 // Info-ZIP's extended timestamp
	oldUnixExtra  = 0x5855 // Info-ZIP's first one
	ntfsTimes     = 1      // the attribute of ntfsExtra that holds the times
	timeModified  = 1      // the bit of timeExtra for the time of modification
	dosLeastYear  = 1980
	dosFirstDate  = 1<<5 | 1 // 1 January 1980, which programs write if they know no date
	signed32Years = 2038     // the end of signed 32-bit times
)

// tarTime returns the time in a tar's header, or the zero time for 0, which programs write if they
// know none.
func tarTime(t time.Time) time.Time {
	if t.Unix() == 0 && t.Nanosecond() == 0 {
		return time.Time{}
	}
	return calendar(t)
}

// calendar returns a time in UTC, truncated to microseconds, or the zero time if its year has not
// one to four digits.
func calendar(t time.Time) time.Time {
	t = t.UTC().Truncate(time.Microsecond)
	if y := t.Year(); y < 1 || y > 9999 {
		return time.Time{}
	}
	return t
}

// zipTime returns the time of a zip's entry: the most precise one of its extra fields, which are in
// UTC, or else the MS-DOS time, whose zone is unknown.
func zipTime(f *zip.File) (t time.Time, noZone bool) {
	found := map[uint16]time.Time{}
	for id, field := range extraFields(f.Extra) {
		if t := extraTime(id, field, f); !t.IsZero() {
			found[id] = t
		}
	}
	for _, id := range []uint16{ntfsExtra, timeExtra, oldUnixExtra, unixExtra} {
		if t, ok := found[id]; ok {
			return calendar(t), false
		}
	}
	t = dosTime(f)
	return t, !t.IsZero()
}

// extraTime returns the time of modification in an extra field, or the zero time if there is none
// or it is 0.
func extraTime(id uint16, field []byte, f *zip.File) time.Time {
	switch {
	case id == timeExtra && len(field) >= 5 && field[0]&timeModified != 0:
		return unixTime(field[1:], f)
	case (id == unixExtra || id == oldUnixExtra) && len(field) >= 8: // the time of access comes first
		return unixTime(field[4:], f)
	case id == ntfsExtra && len(field) >= 4:
		for attribute, times := range extraFields(field[4:]) {
			if attribute == ntfsTimes && len(times) >= 8 {
				return ntfsTime(binary.LittleEndian.Uint64(times))
			}
		}
	}
	return time.Time{}
}

// unixTime reads a 32-bit time. It is signed, but some programs continue after 2038 as unsigned;
// the MS-DOS time shows which.
func unixTime(field []byte, f *zip.File) time.Time {
	seconds := int64(int32(binary.LittleEndian.Uint32(field))) //nolint:gosec // it is signed
	if dos := dosTime(f); seconds < 0 && dos.Year() >= signed32Years-1 {
		seconds += 1 << 32
	}
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// ntfsTime reads a count of 100 nanoseconds since 1601.
func ntfsTime(ticks uint64) time.Time {
	const second, from1601 = 10_000_000, 11_644_473_600
	if ticks == 0 {
		return time.Time{}
	}
	return time.Unix(int64(ticks/second)-from1601, int64(ticks%second)*100) //nolint:gosec // a 64th of what an int64 holds
}

// dosTime reads an MS-DOS time as UTC. It returns the zero time if the date is invalid, or is the
// earliest possible one.
func dosTime(f *zip.File) time.Time {
	date, clock := f.ModifiedDate, f.ModifiedTime // the raw fields, which archive/zip does not interpret
	if date == dosFirstDate && clock == 0 {
		return time.Time{}
	}
	year, month, day := dosLeastYear+int(date>>9), time.Month(date>>5&0xf), int(date&0x1f)
	t := time.Date(year, month, day, int(clock>>11), int(clock>>5&0x3f), int(clock&0x1f)*2, 0, time.UTC)
	if t.Month() != month || t.Day() != day {
		return time.Time{}
	}
	return t
}
