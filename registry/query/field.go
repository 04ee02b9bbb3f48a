package query

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Field describes a field of the query language, for help texts.
type Field struct {
	Name    string
	Example string // of a value
	Means   string
}

// Fields returns every field of the query language, in the order in which people want to read of
// them.
func Fields() []Field {
	fields := allFields()
	out := make([]Field, len(fields))
	for i, f := range fields {
		out[i] = Field{Name: f.name, Example: f.example, Means: f.means}
	}
	return out
}

// field is one field with the way its values are read.
type field struct {
	name, example, means string
	list                 bool // a comma separates values, any of which matches
	// one reads one value and returns how it is spelled, and what is wrong with it.
	one func(value string) (string, *valueError)
}

type valueError struct {
	problem string
	known   []string
}

func allFields() []field {
	return []field{
		{"state", "failed,held", "the state that people see", true, oneOfNames("state", stateNames())},
		{"status", "pending", "what is happening to it at its stage", true, oneOfNames("status", texts(registry.Statuses()))},
		{"stage", "download", "where on its route it stands", true, oneOfNames("stage", texts(registry.Stages()))},
		{"action", "batch", "what is to be done: ingest is a job", true, oneOfNames("action", actionNames())},
		{"collection", "demo", "the collection's mnemonic", true, asGiven},
		{"batch", "ID", "the jobs of a batch, by its id or the first 8 characters of it or more, in the order of its rows", true, asGiven},
		{"graph", "ID", "what was prepared together, by its id or the first 8 characters of it or more", true, asGiven},
		{"id", "0199f3c2", "an id, or its first 8 characters or more", true, idStart},
		{"name", "thesis", "part of the name", false, asGiven},
		{"error", "timeout", "part of the note that says what went wrong", false, asGiven},
		{"class", "content", "whose fault the failure is", true, oneOfNames("class", texts([]registry.ErrorClass{registry.ContentFault, registry.SystemFault, registry.JobsFault}))},
		{"cause", "9f86d081884c7d65", "failed for this cause, as item failures shows it", true, causeFingerprint},
		{"by", "alice", "who submitted it", true, asGiven},
		{"held", "yes", "whether a hold keeps it from starting", false, oneOfNames("held", []string{"yes", "no"})},
		{"delayed", "yes", "whether it waits for the time of its next try", false, oneOfNames("delayed", []string{"yes", "no"})},
		{"priority", "<10", "lower goes first; with <, <=, > or >= a range", false, comparison},
		{"retries", ">0", "how often it was sent back by an admin", false, comparison},
		{"older", "2h", "submitted before that long ago: s, m, h, d, w", false, age},
		{"newer", "30m", "submitted within that time", false, age},
	}
}

// fieldNamed returns a field by its name in any case.
func fieldNamed(name string) (field, bool) {
	fields := allFields()
	i := slices.IndexFunc(fields, func(f field) bool { return strings.EqualFold(f.name, name) })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

// read returns a value as it is kept.
func (f field) read(value string) (string, *valueError) {
	if !f.list {
		return f.one(value)
	}
	parts := strings.Split(value, ",")
	for i, part := range parts {
		if part == "" {
			return "", &valueError{problem: fmt.Sprintf("%q has an empty value between its commas", value)}
		}
		spelled, wrong := f.one(part)
		if wrong != nil {
			return "", wrong
		}
		parts[i] = spelled
	}
	return strings.Join(parts, ","), nil
}

func texts[T ~string](names []T) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}

func stateNames() []string {
	states := registry.States()
	out := make([]string, len(states))
	for i, s := range states {
		out[i] = strings.ToLower(string(s))
	}
	return out
}

func actionNames() []string {
	var out []string
	for _, r := range registry.Routes() {
		out = append(out, string(r.Action))
	}
	return out
}

func asGiven(value string) (string, *valueError) { return value, nil }

func oneOfNames(what string, names []string) func(string) (string, *valueError) {
	return func(value string) (string, *valueError) {
		lower := strings.ToLower(value)
		if slices.Contains(names, lower) {
			return lower, nil
		}
		problem := fmt.Sprintf("%q is no %s", value, what)
		if near := registry.Nearest(lower, names); near != "" {
			problem += fmt.Sprintf("; did you mean %s?", near)
		}
		return "", &valueError{problem, names}
	}
}

func idStart(value string) (string, *valueError) {
	if !registry.IDStart(value) {
		return "", &valueError{problem: fmt.Sprintf("%q is no id; it must be one, or at least its first 8 characters", value)}
	}
	return strings.ToLower(value), nil
}

// CompareNumber splits the value of a field that is compared, such as <10, into operator and
// number.
func CompareNumber(value string) (op string, n int64, err error) {
	op = "="
	for _, known := range []string{"<=", ">=", "<", ">", "="} {
		if rest, ok := strings.CutPrefix(value, known); ok {
			op, value = known, rest
			break
		}
	}
	n, err = strconv.ParseInt(value, 10, 32)
	return op, n, err
}

func comparison(value string) (string, *valueError) {
	op, n, err := CompareNumber(value)
	if err != nil {
		return "", &valueError{problem: fmt.Sprintf("%q is no whole number, which may have <, <=, >, >= or = before it", value)}
	}
	if op == "=" {
		op = ""
	}
	return op + strconv.FormatInt(n, 10), nil
}

// Age is the time that the value of a field such as older stands for.
func Age(value string) (time.Duration, error) {
	const day = 24 * time.Hour
	const longest = 100 * 365 * day
	if len(value) < 2 {
		return 0, fmt.Errorf("%q is no time", value)
	}
	unit, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': day, 'w': 7 * day}[value[len(value)-1]]
	n, err := strconv.ParseUint(value[:len(value)-1], 10, 32)
	if !ok || err != nil || time.Duration(n) > longest/unit {
		return 0, fmt.Errorf("%q is no time of at most 100 years", value)
	}
	return time.Duration(n) * unit, nil
}

func age(value string) (string, *valueError) {
	lower := strings.ToLower(value)
	if _, err := Age(lower); err != nil {
		return "", &valueError{problem: fmt.Sprintf("%q is no time; it is a whole number and s, m, h, d or w, such as 30m, and at most 100 years", value)}
	}
	if digits := strings.TrimLeft(lower[:len(lower)-1], "0"); digits != "" {
		return digits + lower[len(lower)-1:], nil
	}
	return "0" + lower[len(lower)-1:], nil
}

func causeFingerprint(value string) (string, *valueError) {
	lower := strings.ToLower(value)
	if _, err := hex.DecodeString(lower); err != nil || len(lower) != registry.FingerprintLen {
		return "", &valueError{problem: fmt.Sprintf("%q is no cause; it must be the %d digits that item failures shows", value, registry.FingerprintLen)}
	}
	return lower, nil
}
