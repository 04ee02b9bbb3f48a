package config

import (
	"os"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// Secrets returns the names of the secret variables that a role uses, sorted: role is registry, worker or migrate, and
// stages are a worker's. Whatever another secret gives access to is lost too when such a process is taken over, so no
// process should be given one that is not listed here.
func Secrets(role string, stages ...registry.Stage) []string {
	users := []string{role}
	for _, s := range stages {
		users = append(users, string(s))
	}
	return slices.DeleteFunc(AllSecrets(), func(name string) bool {
		return !slices.ContainsFunc(usersOf(name), func(user string) bool { return slices.Contains(users, user) })
	})
}

// AllSecrets returns the names of all secret variables, sorted.
func AllSecrets() (names []string) {
	for _, f := range fieldsOf(&Config{}, Prefix) {
		if f.typ.Tag.Get("secret") == "true" {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}

// Unneeded returns the secret variables that are set and that the role does not use, sorted.
func Unneeded(role string, stages ...registry.Stage) []string {
	used := Secrets(role, stages...)
	return slices.DeleteFunc(AllSecrets(), func(name string) bool { return os.Getenv(name) == "" || slices.Contains(used, name) })
}

// usersOf returns the roles and stages that use a secret variable.
func usersOf(name string) []string {
	for _, f := range fieldsOf(&Config{}, Prefix) {
		if f.name == name {
			return strings.Fields(f.typ.Tag.Get("for"))
		}
	}
	return nil
}
