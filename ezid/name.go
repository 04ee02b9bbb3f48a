package ezid

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/metadata"
)

// Reserve registers a name as ours without publishing it. It also succeeds if an earlier call for
// the same item created the name, whatever its status is now. It returns an error of kind [Taken]
// if somebody else has the name.
func (c *Client) Reserve(ctx context.Context, n Name) error {
	_, err := c.do(ctx, create(n, c.identity(n, reserved)))
	if !Exists.Is(err) {
		return err
	}
	return c.own(ctx, n)
}

// own returns nil if the name is ours.
func (c *Client) own(ctx context.Context, n Name) error {
	o := operation{op: "read", method: http.MethodGet, ark: n.ARK}
	has, err := c.do(ctx, o)
	var denied *Error
	switch {
	case err == nil:
		return c.compare(o, has, n)
	case Missing.Is(err):
		// Reserved names can be deleted, and this one was deleted meanwhile. The retry creates it.
		return c.fault(o, Away, 0, fmt.Errorf("it came and went: %w", err))
	case errors.As(err, &denied) && denied.Status == http.StatusForbidden:
		denied.Kind = Taken // EZID knows the account, because it reported that the name exists
		return denied
	}
	return err
}

// compare returns an error of kind [Taken] unless the elements of a name say that it is ours.
func (c *Client) compare(o operation, has metadata.Record, n Name) error {
	if item, _ := has.First(itemElement); item != n.Item {
		by, _ := has.First("_owner")
		e := c.fault(o, Taken, 0, nil)
		e.Reason = fmt.Sprintf("its %s is %q, not %q; its owner %q", itemElement, item, n.Item, by)
		return e
	}
	return nil
}

// Publish makes a name public with its metadata. If it is already public or unavailable, Publish
// updates the metadata and keeps the status. If EZID has lost the name, as it deletes test names
// after two weeks, Publish creates it again. It returns an error of kind [Taken] if the name is no
// longer ours.
func (c *Client) Publish(ctx context.Context, n Name) error {
	o := operation{op: "read", method: http.MethodGet, ark: n.ARK}
	has, err := c.do(ctx, o)
	if Missing.Is(err) {
		_, err = c.do(ctx, create(n, c.whole(n, public)))
		if !Exists.Is(err) {
			return err
		}
		has, err = c.do(ctx, o) // an earlier try created it and its answer was lost
	}
	if err != nil {
		return err
	}
	if err := c.compare(o, has, n); err != nil {
		return err
	}
	status := ""
	if now, _ := has.First(statusElement); strings.HasPrefix(now, reserved) {
		status = public
	}
	_, err = c.do(ctx, operation{op: "modify", method: http.MethodPost, ark: n.ARK, body: c.whole(n, status)})
	return err
}

// Withdraw makes a public name unavailable with the reason "withdrawn". It then leads to EZID's
// page with that reason. Withdraw does nothing if the name is reserved, already unavailable or
// missing. It returns an error of kind [Taken] if the name is no longer ours.
func (c *Client) Withdraw(ctx context.Context, n Name) error {
	o := operation{op: "read", method: http.MethodGet, ark: n.ARK}
	has, err := c.do(ctx, o)
	if Missing.Is(err) {
		return nil
	} else if err != nil {
		return err
	}
	if err := c.compare(o, has, n); err != nil {
		return err
	}
	if now, _ := has.First(statusElement); !strings.HasPrefix(now, public) {
		return nil
	}
	withdrawn := metadata.Record{}.Add(statusElement, unavailable+" | withdrawn")
	_, err = c.do(ctx, operation{op: "modify", method: http.MethodPost, ark: n.ARK, body: withdrawn})
	return err
}

func create(n Name, elements metadata.Record) operation {
	return operation{op: "create", method: http.MethodPut, ark: n.ARK, body: elements}
}
