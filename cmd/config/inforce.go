package config

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// FromDefault is where a setting comes from that nothing sets.
const FromDefault = "default"

const fromEnvironment = "environment"

// Setting is a setting as it is in force.
type Setting struct {
	Name    string   `json:"name"`
	Value   string   `json:"value"`             // empty if it has none, and for a secret
	From    string   `json:"from"`              // environment, FromDefault, or the place in a file or Parameter Store
	Secret  bool     `json:"secret,omitempty"`  // the value is not shown
	Subject string   `json:"subject"`           // the heading in docs/configuration.md
	For     []string `json:"for"`               // its users, as in Config
	Unknown bool     `json:"unknown,omitempty"` // it is no setting of this version; its value, which may be a secret, is not shown
}

// InForce returns the configuration as settings: all in the order of docs/configuration.md, those of
// single stages that are set, and last the unknown names. Its Config and its error are those of Load;
// the settings are valid with it. A value that Load refused is shown as it was found. No value has a
// secret, nor the password of an address.
func InForce(ctx context.Context, defaults Config) ([]Setting, Config, error) {
	c, from, err := load(ctx, defaults, func() bool { return true })
	var all []Setting
	subject := ""
	for _, f := range fieldsOf(&c, Prefix) {
		if s := f.typ.Tag.Get("subject"); s != "" {
			subject = s
		}
		all = append(all, f.inForce(subject, from))
	}
	for _, s := range registry.Stages() {
		for _, f := range fieldsOf(new(Policy), stagePrefix(s)) {
			if os.Getenv(f.name) != "" {
				own := f.inForce("Stage "+string(s), from)
				own.For = []string{string(s)}
				all = append(all, own)
			}
		}
	}
	for _, u := range c.Unknown {
		all = append(all, Setting{Name: u.Name, From: cmp.Or(u.From, fromEnvironment), Subject: "Unknown names", Unknown: true})
	}
	return all, c, err
}

// inForce returns the setting of a field that Load has read.
func (f field) inForce(subject string, from origins) Setting {
	s := Setting{
		Name: f.name, Subject: subject, Secret: f.typ.Tag.Get("secret") != "", For: strings.Fields(f.typ.Tag.Get("for")),
		Value: WithoutPasswords(os.Getenv(f.name)), From: fromEnvironment,
	}
	switch place, ok := from[f.name]; {
	case ok:
		s.From = place
	case s.Value == "":
		s.From, s.Value = FromDefault, shown(f.value.Interface())
		if s.Value == "" {
			s.Value = f.typ.Tag.Get("otherwise")
		}
		return s
	}
	if s.Secret {
		s.Value = ""
	}
	return s
}

// UsedBy reports whether a role, or a worker of the stage with this name, uses the setting. An
// unknown name counts as everybody's.
func (s Setting) UsedBy(role string) bool {
	if s.Unknown {
		return true
	}
	stage := registry.Stage(role)
	if !slices.Contains(registry.Stages(), stage) {
		return uses(s.For, role, nil)
	}
	return uses(s.For, "worker", []registry.Stage{stage})
}

// shown formats a default for people; "" for none.
func shown(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case slog.Level:
		return strings.ToLower(v.String())
	case Duration:
		return span(time.Duration(v))
	case Span:
		return span(time.Duration(v))
	case Rhythm:
		return time.Time{}.Add(v.Offset).Format("15:04")
	case Bytes:
		return size(int64(v))
	case Size:
		return size(int64(v))
	case Percent, Amount, Quota, Days, Lasting, Count:
		if text := fmt.Sprint(v); text != "0" {
			return text
		}
	case Yes:
		return map[Yes]string{true: "yes", false: "no"}[v]
	}
	return ""
}

func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}

func size(n int64) string {
	units := []string{"", "KiB", "MiB", "GiB", "TiB"}
	for len(units) > 1 && n > 0 && n%1024 == 0 {
		n, units = n/1024, units[1:]
	}
	if n <= 0 {
		return ""
	}
	return fmt.Sprint(n, units[0])
}
