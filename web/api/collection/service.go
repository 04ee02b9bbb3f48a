// Package collection serves collections and the versions of their profiles.
package collection

import (
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
)

// Service serves the operations on collections. All fields must be set.
type Service struct {
	*endpoint.Server
	Registry Registry
	Objects  ocfl.Roots // the storages that a profile can name
}

// Registry is what a Service needs of the Registry, limited to what the caller may see.
type Registry interface {
	registry.Profiles
	registry.Tasking
}
