package config

import (
	"cmp"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// Secrets returns the names of the secret variables that a role uses, sorted. role is registry,
// worker or migrate; stages are the worker's. Give a process no other secrets: an attacker in it
// would have them, too.
func Secrets(role string, stages ...registry.Stage) []string {
	return secrets(func(_ string, users []string) bool { return uses(users, role, stages) })
}

// AllSecrets returns the names of all secret variables, sorted.
func AllSecrets() []string { return secrets(func(string, []string) bool { return true }) }

// Unneeded returns the names of secret variables that are set but not used by the role, sorted.
func Unneeded(role string, stages ...registry.Stage) []string {
	return secrets(func(name string, users []string) bool { return os.Getenv(name) != "" && !uses(users, role, stages) })
}

// StageSettings returns the names of the variables that this stage uses and other stages do not,
// sorted.
func StageSettings(s registry.Stage) []string {
	return named(func(_ reflect.StructTag, users []string) bool {
		return !slices.Contains(users, "worker") && uses(users, "", []registry.Stage{s})
	})
}

// Declaration describes one variable, as its tags do.
type Declaration struct {
	Name      string // with the prefix
	Subject   string // the heading that it stands below
	Does      string
	Want      string // the form of a value
	Otherwise string // what applies if it is not set; "" if Default has a value
	Secret    bool
	users     []string
}

// UsedBy reports whether a role uses the setting; role and stages are as in [Secrets].
func (d Declaration) UsedBy(role string, stages ...registry.Stage) bool {
	return uses(d.users, role, stages)
}

// Declarations returns all variables in the order of docs/configuration.md.
func Declarations() (all []Declaration) {
	subject := ""
	for _, f := range fieldsOf(&Config{}, Prefix) {
		tag := f.typ.Tag
		subject = cmp.Or(tag.Get("subject"), subject)
		all = append(all, Declaration{
			Name: f.name, Subject: subject, Does: tag.Get("desc"), Want: tag.Get("want"), Otherwise: tag.Get("otherwise"),
			Secret: tag.Get("secret") == "true", users: strings.Fields(tag.Get("for")),
		})
	}
	return all
}

// uses reports whether a role, or one of a worker's stages, is among the users of a setting.
func uses(users []string, role string, stages []registry.Stage) bool {
	return slices.Contains(users, role) || slices.ContainsFunc(stages, func(s registry.Stage) bool {
		step, _ := registry.StepOf(s)
		return slices.Contains(users, string(s)) || step.Fetches != registry.NoSource && slices.Contains(users, "fetching")
	})
}

// secrets returns the names of the secret variables that take accepts, sorted.
func secrets(take func(name string, users []string) bool) []string {
	return named(func(tag reflect.StructTag, users []string) bool {
		return tag.Get("secret") == "true" && take(Prefix+"_"+tag.Get("envconfig"), users)
	})
}

// named returns the names of the variables that take accepts, sorted.
func named(take func(tag reflect.StructTag, users []string) bool) (names []string) {
	for _, f := range fieldsOf(&Config{}, Prefix) {
		if take(f.typ.Tag, strings.Fields(f.typ.Tag.Get("for"))) {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}
