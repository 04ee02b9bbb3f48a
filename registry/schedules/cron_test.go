package schedules

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// TestTimes: the times of expressions over changes of the clock. An hour that does not exist, and
// one that comes twice.
func TestTimes(t *testing.T) {
	for _, test := range []struct{ name, cron, zone, after, want string }{
		{"plain", "30 2 * * *", "UTC", "2026-11-23T02:29:59Z", "2026-11-23T02:30:00Z 2026-11-24T02:30:00Z"},
		{"strictly after", "30 2 * * *", "UTC", "2026-11-23T02:30:00Z", "2026-11-24T02:30:00Z"},
		{"fractions", "30 2 * * *", "UTC", "2026-11-23T02:29:59.9Z", "2026-11-23T02:30:00Z"},
		{"zone ahead", "0 0 * * *", "Asia/Kathmandu", "2026-11-23T00:00:00Z", "2026-11-23T18:15:00Z 2026-11-24T18:15:00Z"},
		{"either day", "0 0 13 * 5", "UTC", "2026-11-01T00:00:00Z", "2026-11-06T00:00:00Z 2026-11-13T00:00:00Z 2026-11-20T00:00:00Z"},
		{"Sunday is 0 and 7", "0 0 * * 7", "UTC", "2026-11-23T00:00:00Z", "2026-11-29T00:00:00Z"},
		{"descriptor", "@monthly", "UTC", "2026-11-23T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"leap day over 2100", "0 0 29 2 *", "Europe/Berlin", "2096-03-01T00:00:00Z", "2104-02-28T23:00:00Z"},
		{"never", "0 0 30 2 *", "Europe/Berlin", "2026-11-23T00:00:00Z", "never"},
		{"the last day of a leap year", "0 0 * * *", "Europe/Berlin", "2040-12-30T23:00:00Z", "2040-12-31T23:00:00Z 2041-01-01T23:00:00Z"},

		// Berlin, 29 March 2026: 02:00 becomes 03:00 at 01:00 UTC.
		{"gap: a skipped time fires after it", "30 2 * * *", "Europe/Berlin", "2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z"},
		{"gap: its start", "0 2 * * *", "Europe/Berlin", "2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:00:00Z"},
		{"gap: its end fires once", "0 3 * * *", "Europe/Berlin", "2026-03-28T03:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T01:00:00Z"},
		{"gap: several skipped times fire once", "0,20,40 2 * * *", "Europe/Berlin", "2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:00:00Z"},
		{"gap: skipped and next hour", "0 2,3 * * *", "Europe/Berlin", "2026-03-28T03:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:00:00Z"},
		{"gap: of another day", "30 2 1 * *", "Europe/Berlin", "2026-03-28T03:00:00Z", "2026-04-01T00:30:00Z"},
		{"gap: every hour follows elapsed time", "30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T00:30:00Z 2026-03-29T01:30:00Z"},
		{"gap: after it has fired", "30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		{"gap: inside the first minute after it", "30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:30Z", "2026-03-30T00:30:00Z"},

		// Berlin, 25 October 2026: 03:00 becomes 02:00 at 01:00 UTC.
		{"twice: fires at the first", "30 2 * * *", "Europe/Berlin", "2026-10-24T01:00:00Z", "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z"},
		{"twice: between both", "30 2 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", "2026-10-26T01:30:00Z"},
		{"twice: at the second", "15,45 2 * * *", "Europe/Berlin", "2026-10-25T01:20:00Z", "2026-10-26T01:15:00Z"},
		{"twice: the hour after", "0 3 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z 2026-10-26T02:00:00Z"},
		{"twice: every hour fires in both", "30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", "2026-10-25T00:30:00Z 2026-10-25T01:30:00Z 2026-10-25T02:30:00Z"},
		{"twice: every quarter", "*/15 * * * *", "Europe/Berlin", "2026-10-25T00:40:00Z", "2026-10-25T00:45:00Z 2026-10-25T01:00:00Z 2026-10-25T01:15:00Z"},

		// Half an hour, on Lord Howe: 4 October 2026 02:00 becomes 02:30; 5 April 2026 02:00 becomes 01:30.
		{"half an hour skipped", "15 2 * * *", "Australia/Lord_Howe", "2026-10-02T16:00:00Z", "2026-10-03T15:30:00Z 2026-10-04T15:15:00Z"},
		{"half an hour twice", "45 1 * * *", "Australia/Lord_Howe", "2026-04-03T15:00:00Z", "2026-04-04T14:45:00Z 2026-04-05T15:15:00Z"},
		// A midnight that does not exist: Cairo, 24 April 2026 00:00 becomes 01:00.
		{"midnight skipped", "0 0 * * *", "Africa/Cairo", "2026-04-22T22:00:00Z", "2026-04-23T22:00:00Z 2026-04-24T21:00:00Z"},
		{"after a skipped midnight", "0 1 24 4 *", "Africa/Cairo", "2026-04-22T22:00:00Z", "2026-04-23T22:00:00Z 2027-04-23T23:00:00Z"},
		// A whole day that does not exist: Samoa had no 30 December 2011.
		{"gap: the end of a day", "59 23 * * *", "America/Nuuk", "2024-03-30T02:00:00Z", "2024-03-31T01:00:00Z 2024-04-01T00:59:00Z"},
		{"day skipped", "0 12 * * *", "Pacific/Apia", "2011-12-29T22:00:00Z", "2011-12-30T10:00:00Z 2011-12-30T22:00:00Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := parse(test.cron, test.zone)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, test.after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range strings.Fields(test.want) {
				if at = s.next(at); at.IsZero() {
					got = append(got, "never")
					break
				}
				got = append(got, at.UTC().Format(time.RFC3339))
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
}

// TestTimes_Everywhere: in zones with odd changes, times rise, and each wall-clock time of a day
// fires exactly once, over years.
func TestTimes_Everywhere(t *testing.T) {
	for _, zone := range []string{"UTC", "America/New_York", "America/St_Johns", "Africa/Casablanca", "Asia/Gaza", "Antarctica/Troll", "America/Nuuk", "Pacific/Chatham", "Australia/Lord_Howe"} {
		for _, expression := range []string{"30 2 * * *", "0 0 * * *", "15 1 * * *", "45 22 * * *", "30 3 * * *"} {
			s, err := parse(expression, zone)
			if err != nil {
				t.Fatal(err)
			}
			at := time.Date(2020, 1, 1, 23, 59, 30, 0, s.zone)
			for day := 2; day < 2000; day++ {
				next := s.next(at)
				want := time.Date(2020, 1, day, 12, 0, 0, 0, s.zone).Format(time.DateOnly)
				if got := next.In(s.zone).Format(time.DateOnly); got != want || !next.After(at) {
					t.Fatalf("%s in %s: after %s comes %s, expected a time on %s", expression, zone, at, next, want)
				}
				at = next
			}
		}
	}
}

// TestParse_Refuses: what is no expression, and what would mean something else in another process.
func TestParse_Refuses(t *testing.T) {
	for _, test := range []struct{ cron, zone string }{
		{"", "UTC"},
		{"* * * *", "UTC"},
		{"60 * * * *", "UTC"},
		{"0 0 0 * * *", "UTC"},
		{"@every 1h", "UTC"},
		{"@reboot", "UTC"},
		{"TZ=Asia/Tokyo 0 0 * * *", "UTC"},
		{"CRON_TZ=Asia/Tokyo 0 0 * * *", "UTC"},
		{"H H * * *", "UTC"},
		{"x * * * *", "UTC"},
		{"0 0 * * *", ""},
		{"0 0 * * *", "Local"},
		{"0 0 * * *", "Mars/Olympus"},
		{"0 0 * * *", "../etc/passwd"},
	} {
		if _, err := parse(test.cron, test.zone); !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("%q in %q: %v", test.cron, test.zone, err)
		}
	}
}
