package profile

import (
	"reflect"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// Fields are the names of all fields of a profile.
func Fields() (names []string) {
	t := reflect.TypeFor[registry.Profile]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
