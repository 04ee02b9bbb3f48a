package wire

import (
	"net/url"
	"time"
)

// EvidencePeriod reads the first and the last day of an evidence report from the query of a request, and
// says what is wrong with them.
func EvidencePeriod(query url.Values, now time.Time) (first, last time.Time, faults []Fault) {
	read := func(name string) time.Time {
		at, err := time.Parse(time.DateOnly, query.Get(name))
		if err != nil {
			faults = append(faults, Fault{Location: "query." + name, Message: "not a day, such as 2027-01-31", Found: query.Get(name)})
		}
		return at
	}
	first, last = read("from"), read("to")
	switch {
	case len(faults) > 0:
	case last.Before(first):
		faults = append(faults, Fault{Location: "query.to", Message: "the last day is before the first day", Found: query.Get("to")})
	case last.After(now):
		faults = append(faults, Fault{Location: "query.to", Message: "the last day is in the future", Found: query.Get("to")})
	}
	return first, last, faults
}
