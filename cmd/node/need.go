package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/holdfast/holdfast/interim/redis"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// needTimeout bounds one try to open something, needPause lies between two.
const (
	needTimeout = 5 * time.Second
	needPause   = 500 * time.Millisecond
)

// need is something that a role cannot start without: a service that must answer, or a place that
// must be there.
type need struct {
	setting string                      // the variable that says where it is
	address string                      // its value; "" when it is not set, which is a fault of its own
	what    string                      // it is
	fix     string                      // what to do
	open    func(context.Context) error // may be called again after an error
}

// NeedError says that something which a role cannot start without is wrong or does not answer, and
// what to do.
type NeedError struct {
	Setting string // the variable that says where it is
	What    string // it is
	Fix     string
	Down    bool // it does not answer, which may pass by itself
	Err     error
}

// Error names the setting, what is wrong and what to do.
func (e *NeedError) Error() string {
	return fmt.Sprintf("%s: %s: %v; %s", e.Setting, e.What, e.Err, e.Fix)
}

// Unwrap returns what is wrong.
func (e *NeedError) Unwrap() error { return e.Err }

// meet opens all that a role needs, all at once. What does not answer is asked again until Wait is
// over, since in a fleet processes start in any order; what is wrong would be wrong then, too. The
// error joins a *NeedError for each that is not met, beside Faults, or is the cause of ctx.
func (n *Node) meet(ctx context.Context, needs []need) error {
	needs = slices.DeleteFunc(needs, func(nd need) bool { return nd.address == "" })
	if n.Faults != nil {
		_, errs, _ := tryAll(ctx, needs)
		return errors.Join(n.Faults, errors.Join(errs...))
	}
	begun, told := time.Now(), false
	for {
		var errs []error
		var final bool
		needs, errs, final = tryAll(ctx, needs)
		switch {
		case len(errs) == 0:
			if told {
				n.Log.InfoContext(ctx, "all services answer", "after", time.Since(begun).Round(time.Millisecond))
			}
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final || time.Since(begun) >= n.Wait:
			return errors.Join(errs...)
		case !told:
			told = true
			n.Log.WarnContext(ctx, "waiting for services that do not answer", "at_most", n.Wait, "err", errors.Join(errs...))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(needPause):
		}
	}
}

// tryAll opens needs side by side and returns those that are not met, each with its error; final
// says that waiting is of no use.
func tryAll(ctx context.Context, needs []need) (unmet []need, errs []error, final bool) {
	ctx, cancel := context.WithTimeout(ctx, needTimeout)
	defer cancel()
	results := make([]error, len(needs))
	var opening sync.WaitGroup
	for i, nd := range needs {
		opening.Go(func() { results[i] = nd.open(ctx) })
	}
	opening.Wait()
	for i, nd := range needs {
		if err := results[i]; err != nil {
			down := isDown(err)
			unmet, final = append(unmet, nd), final || !down
			if own := new(NeedError); errors.As(err, &own) {
				errs = append(errs, own) // which knows better which setting is wrong
				continue
			}
			errs = append(errs, &NeedError{Setting: nd.setting, What: nd.what, Fix: nd.fix, Down: down, Err: err})
		}
	}
	return unmet, errs, final
}

// isDown tells what does not answer, or not yet, from what is wrong.
func isDown(err error) bool {
	var refused *wire.Problem
	var sql interface{ SQLState() string }
	var connecting *net.OpError
	var answered interface{ HTTPStatusCode() int } // of S3
	var name *net.DNSError                         // in a fleet, names come with the processes that have them
	switch {
	case errors.As(err, &refused):
		return refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests
	case errors.As(err, &sql):
		// The database answers: it is starting or stopping, or has no room for another connection.
		return strings.HasPrefix(sql.SQLState(), "57P") || strings.HasPrefix(sql.SQLState(), "53")
	case errors.As(err, &answered):
		return answered.HTTPStatusCode() >= http.StatusInternalServerError || answered.HTTPStatusCode() == http.StatusTooManyRequests
	case errors.Is(err, queue.ErrRefused), errors.Is(err, syscall.EADDRNOTAVAIL):
		return false
	}
	return errors.As(err, &connecting) || errors.As(err, &name) || goredis.IsLoadingError(err) || slices.ContainsFunc([]error{
		ErrInUse, registry.ErrUnavailable, queue.ErrUnavailable, context.DeadlineExceeded, context.Canceled, redis.ErrTimeout, io.EOF, io.ErrUnexpectedEOF,
	}, func(e error) bool { return errors.Is(err, e) })
}

// listening is the need to bind HOLDFAST_LISTEN; the listener is put where it is wanted.
func (n *Node) listening(l *net.Listener, listen func(context.Context) (net.Listener, error)) need {
	return need{
		"HOLDFAST_LISTEN", n.Listen, "its own address", "stop what listens there, or give another address of this machine",
		func(ctx context.Context) (err error) {
			*l, err = listen(ctx)
			return err
		},
	}
}
