package node

import (
	"context"
	"errors"
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

// needTimeout limits one try to open a need; needPause is the time between two tries.
const (
	needTimeout = 5 * time.Second
	needPause   = 500 * time.Millisecond
)

// need is a service or place that a role needs to start.
type need struct {
	setting string                      // the variable with its address
	address string                      // its value; "" if not set, which is a fault of its own
	what    string                      // its name for people
	fix     string                      // what to do
	open    func(context.Context) error // may be called again after an error
}

// NeedError is the error of a need that is wrong or does not answer, with advice.
type NeedError struct {
	Setting string // the variable with its address
	What    string // its name for people
	Fix     string // "" if Err says what to do
	Down    bool   // it does not answer, which may be temporary
	Err     error
}

// Error returns the setting, the fault and the advice.
func (e *NeedError) Error() string {
	text := e.Setting + ": " + e.What + ": " + Plain(e.Err)
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text
}

// Unwrap returns the fault.
func (e *NeedError) Unwrap() error { return e.Err }

// meet opens all needs at once. It retries those that do not answer until Wait is over, because the
// processes of a fleet start in any order. Other faults are final. It returns joined *NeedErrors,
// with Faults, or the cause of ctx.
func (n *Node) meet(ctx context.Context, needs []need) error {
	needs = slices.DeleteFunc(needs, func(nd need) bool { return nd.address == "" })
	if n.Faults != nil {
		_, errs, _ := tryAll(ctx, needs)
		return errors.Join(n.Faults, errors.Join(errs...))
	}
	begun, warned := time.Now(), false
	for {
		var errs []error
		var final bool
		needs, errs, final = tryAll(ctx, needs)
		switch {
		case len(errs) == 0:
			if warned {
				n.Log.InfoContext(ctx, "all services answer", "after", time.Since(begun).Round(time.Millisecond))
			}
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final || time.Since(begun) >= n.Wait:
			return errors.Join(errs...)
		case !warned:
			warned = true
			n.Log.WarnContext(ctx, "waiting for services that do not answer", "at_most", n.Wait, "err", errors.Join(errs...))
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(needPause):
		}
	}
}

// tryAll opens needs at once. It returns the failed ones with their errors; final says that
// retrying is useless.
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
			down := IsDown(err)
			unmet, final = append(unmet, nd), final || !down
			if own := new(NeedError); errors.As(err, &own) {
				errs = append(errs, own) // it names the setting more precisely
				continue
			}
			errs = append(errs, &NeedError{Setting: nd.setting, What: nd.what, Fix: Remedy(err, nd.setting, nd.fix), Down: down, Err: err})
		}
	}
	return unmet, errs, final
}

// IsDown reports whether a service does not answer, or not yet, rather than being wrong.
func IsDown(err error) bool {
	var refused *wire.Problem
	var sql interface{ SQLState() string }
	var connecting *net.OpError
	var answered interface{ HTTPStatusCode() int } // of S3
	var name *net.DNSError                         // in a fleet, names appear with their processes
	switch {
	case errors.As(err, &refused):
		return refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests
	case errors.As(err, &sql):
		// The database is starting or stopping, or has no free connection.
		return strings.HasPrefix(sql.SQLState(), "57P") || strings.HasPrefix(sql.SQLState(), "53")
	case errors.As(err, &answered) && answered.HTTPStatusCode() > 0: // 0: it did not answer
		return answered.HTTPStatusCode() >= http.StatusInternalServerError || answered.HTTPStatusCode() == http.StatusTooManyRequests
	case errors.Is(err, queue.ErrRefused), errors.Is(err, syscall.EADDRNOTAVAIL):
		return false
	}
	return errors.As(err, &connecting) || errors.As(err, &name) || goredis.IsLoadingError(err) || slices.ContainsFunc([]error{
		ErrInUse, registry.ErrUnavailable, queue.ErrUnavailable, context.DeadlineExceeded, context.Canceled, redis.ErrTimeout, io.EOF, io.ErrUnexpectedEOF,
	}, func(e error) bool { return errors.Is(err, e) })
}

// listening is the need to bind HOLDFAST_LISTEN. It stores the listener in l.
func (n *Node) listening(l *net.Listener, listen func(context.Context) (net.Listener, error)) need {
	return need{
		"HOLDFAST_LISTEN", n.Listen, "its own address", "stop what listens there, or give another address of this machine",
		func(ctx context.Context) (err error) {
			*l, err = listen(ctx)
			return err
		},
	}
}
