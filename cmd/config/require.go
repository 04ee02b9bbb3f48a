package config

import (
	"errors"
	"os"
	"slices"
	"strings"
)

// What a role cannot do without, as [Config.Require] takes it.
var (
	RegistryNeeds = []string{"DATABASE_URL", "STAGING_URL", "STORAGE_URL", "NSQD_ADDR NSQLOOKUPD_ADDRS", "RECEIPT_KEY"}
	WorkerNeeds   = []string{"URL", "TOKEN", "REDIS_URL", "STAGING_URL", "STORAGE_URL", "NSQD_ADDR NSQLOOKUPD_ADDRS"}
)

// MissingError says that a role cannot do without a setting.
type MissingError struct {
	Names []string // of the variables, any of which would do
	Role  string   // the command that needs it
	Want  string   // what should stand in the first
}

// Error names the variables and what should stand there.
func (e *MissingError) Error() string {
	return strings.Join(e.Names, " or ") + ": not set, and holdfast " + e.Role + " needs it; expected " + e.Want
}

// Require checks that a role's settings are there. Each need is the name of one, without its
// prefix, or several with spaces between them, of which any will do. The error joins a
// *MissingError for each that is not met.
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
			there = there || os.Getenv(fields[i].name) != "" // what is set and wrong is a fault of its own
		}
		if !there {
			missing = append(missing, e)
		}
	}
	return errors.Join(missing...)
}
