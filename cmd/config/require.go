package config

import (
	"errors"
	"os"
	"slices"
	"strings"
)

// Needs of roles, for [Config.Require].
var (
	RegistryNeeds = []string{"DATABASE_URL", "STAGING_URL", "STORAGE_URL", "NSQD_ADDR NSQLOOKUPD_ADDRS", "RECEIPT_KEY"}
	WorkerNeeds   = []string{"URL", "TOKEN", "REDIS_URL", "STAGING_URL", "STORAGE_URL", "NSQD_ADDR NSQLOOKUPD_ADDRS"}
)

// Needs of other commands, for [LoadFor].
var (
	// ClientNeeds are those of commands that speak to a running Holdfast. With --dir they need none.
	ClientNeeds = []string{"URL", "TOKEN"}
	// HealthNeeds are those of the check of a process's health.
	HealthNeeds = []string{"LISTEN URL"}
	// DatabaseNeeds are those of commands that open the Registry's database themselves.
	DatabaseNeeds = []string{"DATABASE_URL"}
	// SetupNeeds are those of the command that makes the keys of an installation.
	SetupNeeds = []string{"DATABASE_URL", "REDIS_URL"}
)

// MissingError is the error of a missing setting that a role needs.
type MissingError struct {
	Names []string // the variables, any of which suffices
	Role  string   // the command that needs it
	Want  string   // the form of the first
}

// Error returns the variables and the expected form.
func (e *MissingError) Error() string {
	return strings.Join(e.Names, " or ") + ": not set, and holdfast " + e.Role + " needs it; expected " + e.Want
}

// Require checks that a role's settings are set. Each need is a setting's name without its prefix,
// or several separated by spaces, any of which suffices. The error joins a *MissingError for each
// unmet need.
func (c Config) Require(role string, needs ...string) error {
	fields := fieldsOf(&c, Prefix)
	var missing []error
	for _, need := range needs {
		e := &MissingError{Role: role}
		there := false
		for _, name := range strings.Fields(need) {
			i := slices.IndexFunc(fields, func(f field) bool { return f.name == Prefix+"_"+name })
			if i < 0 {
				return errors.New("no setting is called " + name)
			}
			if e.Want == "" {
				e.Want = fields[i].typ.Tag.Get("want")
			}
			e.Names = append(e.Names, fields[i].name)
			there = there || os.Getenv(fields[i].name) != "" // a wrong value is reported by Load
		}
		if !there {
			missing = append(missing, e)
		}
	}
	return errors.Join(missing...)
}
