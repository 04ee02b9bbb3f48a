package schedules

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
	_ "time/tzdata" // so that zones are known on machines without a time zone database

	cron "github.com/netresearch/go-cron"

	"github.com/holdfast/holdfast/registry"
)

// times computes the times of a schedule.
//
// The library parses the expression and searches matching times in UTC, where each time exists
// once. So it never meets daylight saving, which cron libraries treat differently and with gaps:
// robfig/cron, which is not maintained any more, drops what falls into a skipped hour; this is its
// maintained fork. [registry.ScheduleSpec] has the rules, which are those of cron(8).
type times struct {
	spec *cron.SpecSchedule
	zone *time.Location
	// elapsed says that the expression matches every hour, so it follows the elapsed time.
	elapsed bool
}

// Months of four February 29ths that fall on a given day of the week are 40 years apart.
const searchYears = 40

var parser = cron.MustNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor | cron.DowOrDom).WithMaxSearchYears(searchYears)

// parse returns the times of an expression in a zone, or ErrInvalid.
func parse(expression, zone string) (times, error) {
	// The library would take a zone in the expression, and an interval since the program's start.
	if strings.Contains(expression, "=") || strings.HasPrefix(expression, "@every") {
		return times{}, registry.InField("cron", fmt.Errorf("%w: cron expression %.100q: expected five fields, such as \"30 2 * * *\", or @daily; the time zone has a field of its own", registry.ErrInvalid, expression))
	}
	parsed, err := parser.Parse(expression)
	if err != nil {
		return times{}, registry.InField("cron", fmt.Errorf("%w: cron expression %.100q: %w", registry.ErrInvalid, expression, err))
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return times{}, registry.InField("cron", fmt.Errorf("%w: cron expression %.100q has no fixed times", registry.ErrInvalid, expression))
	}
	spec.Location = time.UTC
	// "Local" is the machine's zone, which may differ between replicas.
	if zone == "" {
		return times{}, registry.InField("zone", fmt.Errorf("%w: the time zone is missing; give its IANA name, such as Europe/Berlin, or UTC", registry.ErrInvalid))
	}
	at, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return times{}, registry.InField("zone", fmt.Errorf("%w: unknown time zone %.100q; give its IANA name, such as Europe/Berlin, or UTC", registry.ErrInvalid, zone))
	}
	const everyHour = 1<<24 - 1
	return times{spec: spec, zone: at, elapsed: bits.OnesCount64(spec.Hour&everyHour) == 24}, nil
}

// next returns the first time after a moment, or the zero time if none comes in the years that are
// searched.
func (s times) next(after time.Time) time.Time {
	after = after.Truncate(time.Second)
	wall := wallOf(after.In(s.zone)) // search after this time on the wall
	limit := after.AddDate(searchYears, 0, 0)
	for moment := after; moment.Before(limit); {
		// Between two changes of the clock, the difference between the wall and UTC is constant.
		from, until := moment.In(s.zone).ZoneBounds()
		if !until.IsZero() && !until.After(moment) {
			// On the last day of leap years from 2040 on, ZoneBounds of Go 1.26 ends at that day's
			// start. No zone changes its clock on that day.
			until = moment.Add(24 * time.Hour)
		}
		shift := offset(moment.In(s.zone))
		if !from.IsZero() && !s.elapsed {
			before := offset(from.Add(-time.Second).In(s.zone))
			shown := wallOf(from.In(s.zone)) // the first time on the wall after the change
			was := shown.Add(before - shift) // the time on the wall that the change replaced
			if shift > before && from.After(after) {
				// The wall skipped the times from was to shown.
				if w := s.spec.Next(was.Add(-time.Second)); !w.IsZero() && w.Before(shown) {
					return from
				}
			}
			if shift < before && wall.Before(was) {
				wall = was.Add(-time.Second) // the wall shows the times up to was once more
			}
		}
		w := s.spec.Next(wall)
		if w.IsZero() {
			return time.Time{}
		}
		if at := w.Add(-shift); until.IsZero() || at.Before(until) {
			return at
		}
		moment, wall = until, wallOf(until.In(s.zone)).Add(-time.Second)
	}
	return time.Time{}
}

// wallOf returns what the wall's clock shows, as if it were UTC.
func wallOf(t time.Time) time.Time { return t.Add(offset(t)).UTC() }

// offset returns how far a zone is ahead of UTC at a time.
func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}
