// Package ui puts the HTML pages together: those of each subject, over what package page shares.
package ui

import (
	"github.com/holdfast/holdfast/web/ui/account"
	"github.com/holdfast/holdfast/web/ui/admin"
	"github.com/holdfast/holdfast/web/ui/deposit"
	"github.com/holdfast/holdfast/web/ui/function"
	"github.com/holdfast/holdfast/web/ui/help"
	"github.com/holdfast/holdfast/web/ui/item"
	"github.com/holdfast/holdfast/web/ui/object"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/ui/queue"
	"github.com/holdfast/holdfast/web/ui/search"
)

// New returns all pages. The caller must decide who may see them. Errors are programming errors.
func New(o page.Options) (*page.Site, error) {
	s, err := page.New(o)
	if err != nil {
		return nil, err
	}
	for _, add := range []func(*page.Site){deposit.Add, item.Add, object.Add, queue.Add, search.Add, function.Add, admin.Add, account.Add, help.Add} {
		add(s)
	}
	return s, s.Check()
}
