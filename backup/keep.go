package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Keep says which backups stay: the newest of each of the last Days days that have one, and the newest
// of each of the last Weeks weeks (from Monday) that have one, in UTC. Days without a backup do not
// count, so a long outage removes nothing.
type Keep struct{ Days, Weeks int }

// DefaultKeep is a week of days and two months of weeks.
func DefaultKeep() Keep { return Keep{Days: 7, Weeks: 8} }

// mostKept bounds the days and the weeks.
const mostKept = 10_000

// Decode reads what String returns. It has the form of a setting: 7d8w, 7d or 8w.
func (k *Keep) Decode(text string) error {
	var out Keep
	rest := strings.TrimSpace(text)
	for _, part := range []struct {
		unit string
		to   *int
	}{{"d", &out.Days}, {"w", &out.Weeks}} {
		digits, after, ok := strings.Cut(rest, part.unit)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 || n > mostKept {
			return errKeep
		}
		*part.to, rest = n, after
	}
	if rest != "" || out == (Keep{}) {
		return errKeep
	}
	*k = out
	return nil
}

var errKeep = errors.New("not of the form 7d8w")

// String returns the form of a setting.
func (k Keep) String() string {
	text := ""
	if k.Days > 0 {
		text = fmt.Sprintf("%dd", k.Days)
	}
	if k.Weeks > 0 {
		text += fmt.Sprintf("%dw", k.Weeks)
	}
	return text
}

// old returns the backups that are not to be kept, of those of one Registry, oldest first. The newest
// is always kept.
func (k Keep) old(files []File) (out []File) {
	days, weeks := map[string]bool{}, map[string]bool{}
	for i, f := range slices.Backward(files) {
		year, number := f.At.ISOWeek()
		keep := i == len(files)-1
		for _, rule := range []struct {
			seen map[string]bool
			span string
			most int
		}{{days, f.At.Format("2006-01-02"), k.Days}, {weeks, fmt.Sprint(year, " ", number), k.Weeks}} {
			if !rule.seen[rule.span] && len(rule.seen) < rule.most {
				rule.seen[rule.span], keep = true, true
			}
		}
		if !keep {
			out = append(out, f)
		}
	}
	slices.Reverse(out)
	return out
}

// rotate removes what is not to be kept of the Registry whose newest backup was just made and found
// right. It never removes that one, nor a younger one.
func rotate(ctx context.Context, p place, k Keep, newest File) (removed []string, err error) {
	removed = []string{}
	if k == (Keep{}) {
		return removed, nil
	}
	all, err := p.list(ctx)
	if err != nil {
		return removed, fmt.Errorf("list the backups to remove old ones: %w", err)
	}
	own := slices.DeleteFunc(all, func(f File) bool { return f.Of != newest.Of || f.At.After(newest.At) })
	for _, f := range k.old(own) {
		if f.Name == newest.Name {
			continue
		}
		if err := p.remove(ctx, f.Name); err != nil {
			return removed, fmt.Errorf("remove the old backup %s: %w", f.Name, err)
		}
		removed = append(removed, f.Name)
	}
	return removed, nil
}
