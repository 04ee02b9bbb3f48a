package node

import (
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/registry/api"
	"github.com/holdfast/holdfast/ui"
)

// handler is the API over the node's stores, and the pages beside it. Streams end with done.
func (s *stores) handler(o Options, done <-chan struct{}) (http.Handler, error) {
	pages, err := ui.New(ui.Options{Registry: api.Scoped(s.registry), Forms: api.NewForms(s.registry), Log: o.Log, Version: o.Version})
	if err != nil {
		return nil, fmt.Errorf("prepare the pages: %w", err)
	}
	return api.New(api.Options{
		Registry: s.registry, Staging: s.staging, Objects: s.objects, Log: o.Log, Version: o.Version, UI: pages, Done: done,
	})
}
