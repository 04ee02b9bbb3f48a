package config

import (
	"errors"
	"math"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// errForm: the value does not have the form that its description names. It quotes nothing.
var errForm = errors.New("not of that form")

// Count is a number from 1 to 1000; 0 if not set.
type Count int

// Decode implements envconfig.Decoder.
func (c *Count) Decode(text string) error {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 || n > 1000 {
		return errForm
	}
	*c = Count(n)
	return nil
}

// Workers are numbers of workers, by stage. Stages that this version does not know may be among them: in a
// rolling upgrade processes of two versions have the same variables.
type Workers map[registry.Stage]int

// Decode implements envconfig.Decoder.
func (w *Workers) Decode(text string) error {
	all := Workers{}
	for part := range strings.SplitSeq(text, ",") {
		stage, number, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if stage = strings.TrimSpace(stage); stage == "" || err != nil || n < 0 {
			return errForm
		}
		all[registry.Stage(stage)] = n
	}
	*w = all
	return nil
}

// Duration is a span of time above 0; 0 if not set.
type Duration time.Duration

// Decode implements envconfig.Decoder.
func (d *Duration) Decode(text string) error {
	v, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || v <= 0 {
		return errForm
	}
	*d = Duration(v)
	return nil
}

// LeaseTime is the duration of a lease, above 0; 0 if not set.
type LeaseTime time.Duration

// Decode implements envconfig.Decoder.
func (d *LeaseTime) Decode(text string) error {
	var v Duration
	if err := v.Decode(text); err != nil || time.Duration(v) > registry.MostLease {
		return errForm
	}
	*d = LeaseTime(v)
	return nil
}

// Span is a duration from 0 on.
type Span time.Duration

// Decode implements envconfig.Decoder.
func (s *Span) Decode(text string) error {
	v, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || v < 0 {
		return errForm
	}
	*s = Span(v)
	return nil
}

// Amount is a number above 0, without an upper bound.
type Amount int64

// Decode implements envconfig.Decoder.
func (a *Amount) Decode(text string) error {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 1 {
		return errForm
	}
	*a = Amount(n)
	return nil
}

// Quota is a limit from 0 on; 0 is no limit.
type Quota int64

// Decode implements envconfig.Decoder.
func (q *Quota) Decode(text string) error {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 {
		return errForm
	}
	*q = Quota(n)
	return nil
}

// Percent is above 0 and at most 100.
type Percent float64

// Decode implements envconfig.Decoder. A percent sign may follow.
func (p *Percent) Decode(text string) error {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%")), 64)
	// This form refuses NaN, too.
	if err != nil || !(v > 0 && v <= 100) {
		return errForm
	}
	*p = Percent(v)
	return nil
}

// Rate is a number per second, above 0; 0 if not set.
type Rate float64

// Decode implements envconfig.Decoder.
func (r *Rate) Decode(text string) error {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	// This form refuses NaN, too.
	if err != nil || !(v > 0 && v <= 1e6) {
		return errForm
	}
	*r = Rate(v)
	return nil
}

// Days is a number of days, from 0 on.
type Days float64

// Decode implements envconfig.Decoder.
func (d *Days) Decode(text string) error {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(v >= 0 && v <= 36_500) {
		return errForm
	}
	*d = Days(v)
	return nil
}

// Duration returns it as a time.Duration.
func (d Days) Duration() time.Duration { return time.Duration(float64(d) * 24 * float64(time.Hour)) }

// Lasting is a number of days, above 0.
type Lasting Days

// Decode implements envconfig.Decoder.
func (l *Lasting) Decode(text string) error {
	if err := (*Days)(l).Decode(text); err != nil {
		return err
	}
	if *l == 0 {
		return errForm
	}
	return nil
}

// Duration returns it as a time.Duration.
func (l Lasting) Duration() time.Duration { return Days(l).Duration() }

// Bytes is a number of bytes, from 64 KiB on, with an optional KiB, MiB, GiB or TiB; 0 if not set.
type Bytes int64

// Decode implements envconfig.Decoder.
func (b *Bytes) Decode(text string) error {
	const least = 64 << 10
	n, ok := bytesOf(text)
	if !ok || n < least {
		return errForm
	}
	*b = Bytes(n)
	return nil
}

// Size is a number of bytes, from 0 on, with an optional KiB, MiB, GiB or TiB.
type Size int64

// Decode implements envconfig.Decoder.
func (s *Size) Decode(text string) error {
	n, ok := bytesOf(text)
	if !ok {
		return errForm
	}
	*s = Size(n)
	return nil
}

// bytesOf parses a number of bytes with an optional unit.
func bytesOf(text string) (n int64, ok bool) {
	text, unit := strings.TrimSpace(text), int64(1)
	for name, size := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40} {
		if number, ok := strings.CutSuffix(text, name); ok {
			text, unit = strings.TrimSpace(number), size
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}

// Yes is yes or no.
type Yes bool

// Decode implements envconfig.Decoder.
func (y *Yes) Decode(text string) error {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "yes", "true", "1":
		*y = true
	case "no", "false", "0":
		*y = false
	default:
		return errForm
	}
	return nil
}

// Rhythm is a schedule: once in each Every, Offset after its beginning.
type Rhythm struct{ Every, Offset time.Duration }

// Decode implements envconfig.Decoder.
func (r *Rhythm) Decode(text string) error {
	text = strings.TrimSpace(text)
	if at, err := time.Parse("15:04", text); err == nil {
		*r = Rhythm{Every: 24 * time.Hour, Offset: time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute}
		return nil
	}
	every, err := time.ParseDuration(text)
	if err != nil || every < time.Minute {
		return errForm
	}
	*r = Rhythm{Every: every}
	return nil
}

// Share returns the percentage as a share, 0 to 1.
func (p Percent) Share() float64 { return float64(p) / 100 }

// isURL reports whether text is an absolute URL of one of the schemes.
func isURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains(schemes, strings.ToLower(u.Scheme)) && (u.Host != "" || u.Path != "")
}

// isWeb reports whether text is an http or https address.
func isWeb(text string) bool {
	u, err := url.Parse(text)
	return err == nil && isURL(text, "http", "https") && u.Host != ""
}

// isSecure reports whether text is an https address, or an http address of this machine.
func isSecure(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !isWeb(text) {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return strings.EqualFold(u.Scheme, "https") || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// isAddr reports whether text is host:port.
func isAddr(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n <= 65535
}

func isTopicPrefix(text string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return len(text) <= 32 && !strings.ContainsFunc(text, func(r rune) bool { return !strings.ContainsRune(allowed, r) })
}
