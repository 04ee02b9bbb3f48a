package wire

import "github.com/holdfast/holdfast/registry"

// ViewRequest is what a saved view says.
type ViewRequest struct {
	Name    string   `json:"name" doc:"1 to 64 characters; unique among your own" example:"Stuck at the scanner"`
	Query   string   `json:"query,omitempty" doc:"Which items it lists, in the query language; all when empty" example:"state:failed collection:demo"`
	Columns []string `json:"columns,omitempty" doc:"Columns that the page shows; the usual ones when empty"`
	Oldest  bool     `json:"oldest,omitempty" doc:"The oldest items come first"`
	Shared  bool     `json:"shared,omitempty" doc:"Everyone who sees all collections sees the view; operators and admins may share"`
	Version int64    `json:"version,omitempty" doc:"When a view is changed: the version that was read; any when absent"`
}

// ViewRequestOf returns the request that changes nothing of a view.
func ViewRequestOf(v registry.View) ViewRequest {
	return ViewRequest{Name: v.Name, Query: v.Query, Columns: v.Columns, Oldest: v.Oldest, Shared: v.Shared, Version: v.Version}
}
