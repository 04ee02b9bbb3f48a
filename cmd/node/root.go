package node

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/holdfast/holdfast/ocfl"
)

// layoutParameter is what an address of preservation storage may have beside what open.URL takes: how its storage root lays
// out objects, as ocfl.ParseLayout reads it.
const layoutParameter = "layout"

// splitLayout takes the layout out of an address; it is nil where the address names none.
func splitLayout(address string) (rest string, layout ocfl.Layout, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return address, nil, nil //nolint:nilerr // open.URL says what is wrong, and does not quote it
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || !query.Has(layoutParameter) {
		return address, nil, nil //nolint:nilerr // likewise
	}
	if layout, err = ocfl.ParseLayout(query.Get(layoutParameter)); err != nil {
		return "", nil, fmt.Errorf("parameter %s: %w", layoutParameter, err)
	}
	query.Del(layoutParameter)
	u.RawQuery = query.Encode()
	return u.String(), layout, nil
}

// openRoot opens the storage root at an address, and makes it in the layout that the address names where there is none yet.
// One that exists keeps its own: an address that names another is refused.
func (n *Node) openRoot(ctx context.Context, address string) (*ocfl.Root, error) {
	address, layout, err := splitLayout(address)
	if err != nil {
		return nil, err
	}
	s, err := n.openStorage(ctx, address)
	if err != nil {
		return nil, err
	}
	root, err := ocfl.OpenRoot(ctx, s, "", layout)
	if errors.Is(err, ocfl.ErrLayout) {
		err = fmt.Errorf("%w; a storage root keeps the layout that it was made in: leave %s out, or name another folder", err, layoutParameter)
	}
	return root, err
}
