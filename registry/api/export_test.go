package api

import "github.com/holdfast/holdfast/registry"

// Access is the access table.
func Access() map[string][]registry.Role { return access() }
