package page

import (
	"context"

	"github.com/holdfast/holdfast/registry"
)

// Group is a part of the navigation.
type Group struct {
	Title   string // in English, for the catalogue; "": none
	Entries []Entry
}

// Entry is a link of the navigation.
type Entry struct {
	Section string
	Title   string // in English, for the catalogue
	Path    string
	Current bool
}

// entry is an Entry with who sees it: those who may call an operation.
type entry struct {
	section, title, path, operation string
	staff                           bool // not for depositors, who could call the operation
}

// menuOf is the whole navigation.
var menuOf = []struct {
	title   string
	entries []entry
}{
	{"", []entry{
		{section: "deposit", title: "Deposit", path: "/deposit", operation: "submit-payload"},
		{section: "deposits", title: "Deposits", path: "/deposits", operation: "list-batches"},
		{section: "uploads", title: "Uploads", path: "/uploads", operation: "list-uploads"},
		{section: "objects", title: "Objects", path: "/objects", operation: "list-objects"},
	}},
	{"Work", []entry{
		{section: "operations", title: "Operations", path: "/operations", operation: "queue-status", staff: true},
		{section: "items", title: "Items", path: "/items", operation: "list-items", staff: true},
		{section: "holds", title: "Holds", path: "/holds", operation: "list-holds"},
		{section: "schedules", title: "Schedules", path: "/schedules", operation: "list-schedules"},
		{section: "processes", title: "Processes", path: "/processes", operation: "list-processes"},
	}},
	{"Administration", []entry{
		{section: "collections", title: "Collections", path: "/collections", operation: "list-collections", staff: true},
		{section: "storages", title: "Storages", path: "/storages", operation: "list-storages"},
		{section: "deletions", title: "Deletions", path: "/deletions", operation: "list-deletions", staff: true},
		{section: "subscriptions", title: "Subscriptions", path: "/subscriptions", operation: "list-subscriptions"},
		{section: "tokens", title: "Tokens", path: "/tokens", operation: "list-tokens"},
		{section: "audit", title: "Audit", path: "/audit", operation: "list-audit"},
		{section: "evidence", title: "Evidence for a period", path: "/evidence", operation: "evidence-report"},
	}},
	{"Help", []entry{
		{section: "help", title: "Help", path: "/help", operation: "list-batches"},
		{section: "api", title: "API", path: "/api", operation: "list-batches"},
	}},
}

// menu returns the entries that the viewer may open and that this site has.
func (s *Site) menu(ctx context.Context, section string) (menu []Group) {
	depositor := s.Caller(ctx).Role == registry.RoleDepositor
	for _, g := range menuOf {
		group := Group{Title: g.title}
		for _, e := range g.entries {
			if s.paths[e.path] && s.May(ctx, e.operation) && (!e.staff || !depositor) {
				group.Entries = append(group.Entries, Entry{Section: e.section, Title: e.title, Path: e.path, Current: e.section == section})
			}
		}
		if len(group.Entries) > 0 {
			menu = append(menu, group)
		}
	}
	return menu
}
