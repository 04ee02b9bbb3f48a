package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// View is a list of items that a person saved under a name: its query, columns and order.
type View struct {
	ID    string `json:"id"`
	Name  string `json:"name"` // unique among the owner's
	Owner string `json:"owner"`
	// Shared views are seen by everyone who sees all collections.
	Shared  bool     `json:"shared"`
	Query   string   `json:"query"`
	Columns []string `json:"columns,omitempty"` // of the page; none: the usual ones
	Oldest  bool     `json:"oldest,omitempty"`  // the oldest items come first
	// Version grows with each edit.
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"created_at"`
	ChangedAt time.Time `json:"changed_at"`
}

// ViewKeeper keeps saved views.
type ViewKeeper interface {
	// Views lists a person's views by name, then the shared ones of others by name, at most 200.
	Views(ctx context.Context, owner string) ([]View, error)
	// View returns a view. ErrNotFound: there is none.
	View(ctx context.Context, id string) (View, error)
	// AddView saves a view of v.Owner, and gives it an id. A repeat changes nothing. ErrViewExists:
	// the owner has another one of this name. ErrTooManyViews: the owner has MostViews. ErrInvalid:
	// [View.Check] refuses it.
	AddView(ctx context.Context, v View) (View, error)
	// EditView replaces name, query, columns, order and sharing of v.Owner's view v.ID. A repeat
	// changes nothing. ErrViewChanged: v.Version is neither 0 nor that of the view. ErrViewExists
	// and ErrInvalid as for AddView. ErrNotFound: the owner has no such view.
	EditView(ctx context.Context, v View) (View, error)
	// RemoveView deletes a view. ErrNotFound: there is none.
	RemoveView(ctx context.Context, id, actor string) error
}

// Bounds of views.
const (
	MostViews    = 50 // of a person
	mostViewName = 64 // characters
	mostColumns  = 20
)

// Errors of views.
var (
	// ErrViewExists: the person has another view of this name.
	ErrViewExists = errors.New("another one of your views has this name")
	// ErrViewChanged: the view was changed since it was read.
	ErrViewChanged = errors.New("the view was changed since it was read")
	// ErrTooManyViews: the person has as many views as one may have.
	ErrTooManyViews = fmt.Errorf("a person may have %d views", MostViews)
)

// Types of events about shared views. Their item_id is the ViewOwner of the id. Nothing is recorded of
// views that only their owner sees.
const (
	EventViewSet     = "view-set"
	EventViewRemoved = "view-removed"
)

// viewOwner distinguishes views from items in events.
const viewOwner = "view:"

// ViewOwner returns what represents a view in the item_id of events.
func ViewOwner(id string) string { return viewOwner + id }

// Check returns ErrInvalid, with the reason, for an impossible view. It does not parse the query.
func (v View) Check() error {
	switch {
	case v.Name == "" || utf8.RuneCountInString(v.Name) > mostViewName || v.Name != strings.TrimSpace(v.Name):
		return InField("name", fmt.Errorf("%w: a view's name has 1 to %d characters, and no space at its ends", ErrInvalid, mostViewName))
	case !utf8.ValidString(v.Name) || strings.ContainsFunc(v.Name, unicode.IsControl):
		return InField("name", fmt.Errorf("%w: a view's name has no control characters", ErrInvalid))
	case v.Owner == "":
		return fmt.Errorf("%w: a view has an owner", ErrInvalid)
	case len(v.Query) > MaxQueryBytes:
		return fmt.Errorf("%w: a query has at most %d bytes", ErrInvalid, MaxQueryBytes)
	case len(v.Columns) > mostColumns:
		return fmt.Errorf("%w: a view has at most %d columns", ErrInvalid, mostColumns)
	}
	for _, c := range v.Columns {
		if err := checkWord("a column's name", c); err != nil {
			return err
		}
	}
	return nil
}

// Same reports whether two views list the same items in the same way, under the same name.
func (v View) Same(o View) bool {
	return v.Name == o.Name && v.Shared == o.Shared && v.Query == o.Query && v.Oldest == o.Oldest && strings.Join(v.Columns, ",") == strings.Join(o.Columns, ",")
}
