package sqldb

import (
	"database/sql"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// NewID returns a UUIDv7: unique, and sorted by time.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// Micros returns a time in microseconds, as tables store it.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// FromMicros is the inverse of Micros, in UTC.
func FromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// aDay is a day in the microseconds of the database.
const aDay = int64(24 * time.Hour / time.Microsecond)

// Day returns the day of a time of the database, in days since 1970 in UTC.
func Day(us int64) int64 { return us / aDay }

// FromDay returns the beginning of a day in UTC.
func FromDay(day int64) time.Time { return FromMicros(day * aDay) }

// Clean makes text storable in every database: valid UTF-8, without NUL, at most 2,000 bytes (R10).
func Clean(s string) string {
	const limit = 2000
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= limit {
		return s
	}
	s = s[:limit]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}

// Optional returns the time in a nullable column, or nil.
func Optional(at sql.NullInt64) *time.Time {
	if !at.Valid {
		return nil
	}
	t := FromMicros(at.Int64)
	return &t
}

// HumanCount returns a number with a comma between groups of three digits.
func HumanCount(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
