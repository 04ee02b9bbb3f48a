package checkm

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestPlainModified_EveryDay compares the fast parser of dates with the general one for every day
// of every month and for times around the ends of hours and days.
func TestPlainModified_EveryDay(t *testing.T) {
	t.Parallel()
	taken := 0
	for _, year := range []int{0, 1, 99, 1582, 1900, 1970, 1999, 2000, 2023, 2024, 9999} {
		for month := range 14 {
			for day := range 33 {
				for _, clock := range []string{"00:00:00", "09:08:07", "23:59:59", "24:00:00", "23:60:00", "23:59:60", "06:58:27"} {
					s := fmt.Sprintf("%04d-%02d-%02dT%sZ", year, month, day, clock)
					got, ok := plainModified(s)
					want, valid := anyModified(s)
					if ok && (!valid || got != want) {
						t.Fatalf("%s: %v, want %v, %t", s, got, want, valid)
					}
					if valid && !ok && day <= 28 {
						t.Fatalf("%s is left to the long way", s)
					}
					if ok {
						taken++
					}
				}
			}
		}
	}
	if want := 11 * 12 * 28 * 4; taken != want {
		t.Errorf("%d dates were taken the short way, want %d", taken, want)
	}
}

// FuzzModified checks that the general parser gives exactly the same time for whatever the fast one
// accepts.
func FuzzModified(f *testing.F) {
	for _, s := range []string{"2026-11-21T06:58:27Z", "2024-02-29T23:59:59Z", "2023-02-29T00:00:00Z", "2026-11-21T06:58:27z", "２026-11-21T06:5Z"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := plainModified(s)
		if !ok {
			return
		}
		if want, valid := anyModified(s); !valid || got != want || got.Location() != time.UTC {
			t.Fatalf("%s: %v, want %v, %t", strings.ToValidUTF8(s, "?"), got, want, valid)
		}
	})
}
