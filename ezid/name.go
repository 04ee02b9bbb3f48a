package ezid

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/metadata"
)

// Reserve makes a name ours: EZID knows it from now on, and tells nobody. A name that is there
// already for the same item, by an earlier call, is a success whatever became of it since. Kind
// [Taken]: somebody else has it.
func (c *Client) Reserve(ctx context.Context, n Name) error {
	_, err := c.do(ctx, create(n, c.identity(n, reserved)))
	if !Exists.Is(err) {
		return err
	}
	return c.own(ctx, n)
}

// own returns nil when the name is ours.
func (c *Client) own(ctx context.Context, n Name) error {
	o := operation{op: "read", method: http.MethodGet, ark: n.ARK}
	has, err := c.do(ctx, o)
	var denied *Error
	switch {
	case err == nil:
		return c.compare(o, has, n)
	case Missing.Is(err):
		// Reserved names can be deleted, and this one was since it existed. It is asked for again.
		return c.fault(o, Away, 0, fmt.Errorf("it came and went: %w", err))
	case errors.As(err, &denied) && denied.Status == http.StatusForbidden:
		denied.Kind = Taken // EZID knows us, or it would not have told that the name is there
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

// Publish makes a name public with its metadata, or refreshes them when it is: then its status
// stays, also when somebody has made it unavailable. A name that EZID has lost, as it loses those
// for tests after two weeks, is made anew. Kind [Taken]: the name is not ours any more.
func (c *Client) Publish(ctx context.Context, n Name) error {
	o := operation{op: "read", method: http.MethodGet, ark: n.ARK}
	has, err := c.do(ctx, o)
	if Missing.Is(err) {
		_, err = c.do(ctx, create(n, c.whole(n, public)))
		if !Exists.Is(err) {
			return err
		}
		has, err = c.do(ctx, o) // an earlier try has made it, whose answer was lost
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

// Withdraw makes a public name unavailable, with the reason "withdrawn": it leads to EZID's page
// that says so from now on. What people have made unavailable for a reason of theirs, what nobody
// was told of, and what EZID has lost, stay so. Kind [Taken]: the name is not ours any more.
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
